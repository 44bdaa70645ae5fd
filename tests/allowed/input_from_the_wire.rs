use portcullis::vocabulary::input::Input;

fn main() {
    let _: Input = serde_json::from_str(r#"{"type":"deadline_elapsed"}"#).unwrap();
}
