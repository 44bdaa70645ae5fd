use portcullis::engine::Request;

fn main() {
    let _: Request = serde_json::from_str(r#"{"type":"abort_in_flight"}"#).unwrap();
}
