use portcullis::machines::release::EvidencedDraft;
use portcullis::vocabulary::digest::Digest;

fn digest(evidenced: &EvidencedDraft) -> Digest {
    evidenced.digest()
}

fn main() {
    let _: fn(&EvidencedDraft) -> Digest = digest;
}
