use portcullis::machines::release::VerifiedDraft;

fn judged(verified: &VerifiedDraft) -> bool {
    verified.judged()
}

fn main() {
    let _: fn(&VerifiedDraft) -> bool = judged;
}
