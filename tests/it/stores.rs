//! Every store keeps every rule, and the suite names each rule that a store breaks.

use std::sync::Arc;

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::conformance;
use portcullis::runtime::store::Store;

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn the_store_in_memory_keeps_every_rule() {
    let store = MemoryStore::new();
    let checked = wait(conformance::store(async || Ok(Arc::new(store.session()) as Arc<dyn Store>)));
    assert_eq!(checked, Ok(()));
}

#[cfg(feature = "sqlite")]
#[test]
fn the_store_in_a_file_keeps_every_rule() {
    use portcullis::adapters::stores::sqlite::SqliteStore;
    let folder = crate::support::Scratch::new("stores");
    let path = folder.path().join("runs.db");
    let checked =
        wait(conformance::store(async || Ok(Arc::new(SqliteStore::create_or_open(&path)?) as Arc<dyn Store>)));
    assert_eq!(checked, Ok(()));
}
