use portcullis::machines::release::{EvidencedDraft, VerifiedDraft};

fn forge(evidenced: EvidencedDraft) -> VerifiedDraft {
    evidenced.supported()
}

fn main() {
    let _: fn(EvidencedDraft) -> VerifiedDraft = forge;
}
