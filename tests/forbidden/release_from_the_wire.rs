use portcullis::machines::release::Release;

fn main() {
    let _: Release = serde_json::from_str(r#"{"run":"r","outcome":"success","statement":"s"}"#).unwrap();
}
