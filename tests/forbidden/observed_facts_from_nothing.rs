use portcullis::machines::collection::ObservedFacts;

fn main() {
    let _ = ObservedFacts(Vec::new());
}
