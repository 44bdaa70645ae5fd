use portcullis::machines::release::{Body, Release};

fn statement(release: &Release) -> Option<&str> {
    match release.body() {
        Body::Success { statement, .. } => Some(statement),
        _ => None,
    }
}

fn written(release: &Release) -> String {
    serde_json::to_string(release).unwrap()
}

fn main() {
    let _: fn(&Release) -> Option<&str> = statement;
    let _: fn(&Release) -> String = written;
}
