use portcullis::machines::release::{EvidencedDraft, VerifiedDraft};

fn forge(evidenced: EvidencedDraft) -> VerifiedDraft {
    VerifiedDraft { evidenced, judged: true }
}

fn main() {
    let _: fn(EvidencedDraft) -> VerifiedDraft = forge;
}
