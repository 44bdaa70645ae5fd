//! The recordings beside the project, which it does not ship.

use std::path::{Path, PathBuf};

/// The folder of recordings. `None`, with a printed reason, where it is absent, and a failure where
/// `PORTCULLIS_REQUIRE_SHARED` is 1.
pub(crate) fn data() -> Option<PathBuf> {
    let named = std::env::var_os("PORTCULLIS_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let found = named
        .into_iter()
        .chain([beside])
        .map(|shared| shared.join("data"))
        .find(|data| data.join("openai-messages").is_dir());
    if found.is_none() {
        let required = std::env::var_os("PORTCULLIS_REQUIRE_SHARED").is_some_and(|value| value == "1");
        assert!(!required, "PORTCULLIS_REQUIRE_SHARED is 1, but there are no recordings");
        println!("skipped: no ../shared/data here, and PORTCULLIS_SHARED names no folder that has data");
    }
    found
}
