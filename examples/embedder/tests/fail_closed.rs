//! What this embedder promises: whatever happens, nothing unverified is shown, and no part of it makes it so.

mod shown;

use std::sync::Arc;

use embedder::{Orders, Reviewer, Writer, headline};
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::assert_fail_closed;
use portcullis::history::{Policy, replay};
use portcullis::runtime::conformance;
use portcullis::runtime::store::Store;
use portcullis::testkit::proptest::prelude::*;
use portcullis::testkit::strategies::{ended_history, history};
use portcullis::vocabulary::outcome::ReleaseOutcome;
use portcullis::vocabulary::spec::Spec;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_fail_closed(history in history()) {
        assert_fail_closed!(history);
    }

    #[test]
    fn only_a_success_is_called_an_answer(history in ended_history()) {
        let ending = replay(history.as_bytes(), Policy::Stop).unwrap().ending.unwrap();
        let verified = ending.outcome == ReleaseOutcome::Success;
        prop_assert_eq!(headline(ending.outcome) == "Answer", verified);
    }
}

#[tokio::test]
async fn the_ports_keep_every_rule() {
    assert_eq!(conformance::model(async |upstream| Writer(upstream.line())).await, Ok(()));
    assert_eq!(conformance::judge(async |upstream| Reviewer(upstream.line())).await, Ok(()));
    let spec = Spec::new("Order what is missing.", "a-model");
    let tools = conformance::tools(&spec, shown::order, async |upstream| Orders(upstream.line()));
    assert_eq!(tools.await, Ok(()));
}

#[tokio::test]
async fn the_store_and_the_host_keep_every_rule() {
    let store = MemoryStore::new(); // yours
    let open = async || Ok(Arc::new(store.session()) as Arc<dyn Store>);
    assert_eq!(conformance::store(open).await, Ok(()));
    assert_eq!(conformance::host(open, shown::on_a_screen).await, Ok(()));
}
