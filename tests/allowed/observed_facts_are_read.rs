use portcullis::machines::collection::ObservedFacts;

fn count(facts: &ObservedFacts) -> usize {
    facts.as_slice().len()
}

fn main() {
    let _: fn(&ObservedFacts) -> usize = count;
}
