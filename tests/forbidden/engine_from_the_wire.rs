use portcullis::engine::Engine;

fn main() {
    let _: Engine = serde_json::from_str("{}").unwrap();
}
