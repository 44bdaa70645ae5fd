//! The suites have teeth: five embedders that are broken as embedders are, and the rule that names each.

mod forgetful;
#[allow(dead_code)]
mod shown;

use std::sync::Arc;

use embedder::Writer;
use forgetful::Forgetful;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::Outcome;
use portcullis::runtime::conformance::host::{self, Stage};
use portcullis::runtime::conformance::{self, model, store};
use portcullis::runtime::ports::{Model, ModelAnswer, ModelCall, ModelFailure};
use portcullis::runtime::store::Store;

#[tokio::test]
async fn a_port_that_retries_on_its_own_is_caught() {
    let open = async |upstream: model::Upstream| {
        let line = upstream.line();
        Writer(move |request: String| {
            let (first, second) = (line(request.clone()), line(request));
            async move {
                match first.await {
                    Ok(answer) => Ok(answer),
                    Err(_) => second.await,
                }
            }
        })
    };
    let breaches = conformance::model(open).await.expect_err("it passes");
    assert!(breaches.iter().any(|breach| breach.rule == model::Rule::OneRequest), "{breaches:#?}");
}

#[tokio::test]
async fn a_port_that_swallows_a_cancel_is_caught() {
    let open = async |upstream: model::Upstream| {
        let line = upstream.line();
        Writer(move |request: String| {
            let sent = tokio::spawn(line(request));
            async move { sent.await.unwrap_or(Err(None)) }
        })
    };
    let breaches = conformance::model(open).await.expect_err("it passes");
    let rules: Vec<_> = breaches.iter().map(|breach| breach.rule).collect();
    assert_eq!(rules, [model::Rule::GivenUp], "{breaches:#?}");
}

/// Shows what the model writes while it writes it.
struct Streaming(Stage);

impl Model for Streaming {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let answer = self.0.model().respond(call).await?;
        self.0.screen().notice(answer.content.text.clone().unwrap_or_default());
        Ok(answer)
    }
}

#[tokio::test]
async fn a_host_that_releases_unverified_text_is_caught() {
    let store = MemoryStore::new();
    let open = async || Ok(Arc::new(store.session()) as Arc<dyn Store>);
    let streams = async |stage: Stage| {
        let runtime = stage.builder().model(Streaming(stage.clone())).build().expect("a runtime");
        embedder::serve(&runtime, stage.spec(), &shown::OnScreen(stage.screen())).await;
    };
    let breaches = conformance::host(open, streams).await.expect_err("it passes");
    let rules: Vec<_> = breaches.iter().map(|breach| breach.rule).collect();
    assert_eq!(rules, [host::Rule::NothingUnverified], "{breaches:#?}");
}

#[tokio::test]
async fn a_host_that_forgets_to_acknowledge_is_caught() {
    let store = MemoryStore::new();
    let open = async || Ok(Arc::new(store.session()) as Arc<dyn Store>);
    let forgets = async |stage: Stage| {
        let runtime = stage.builder().build().expect("a runtime");
        let run = runtime.start(stage.spec()).await.expect("the run begins");
        if let Ok(Outcome::Ended(ended)) = run.outcome().await {
            let text = serde_json::to_string(&ended.release).expect("a release is JSON");
            stage.screen().release(ended.release.outcome(), text);
        }
    };
    let breaches = conformance::host(open, forgets).await.expect_err("it passes");
    let rules: Vec<_> = breaches.iter().map(|breach| breach.rule).collect();
    assert_eq!(rules, [host::Rule::AcknowledgedOnce], "{breaches:#?}");
}

#[tokio::test]
async fn a_store_that_loses_what_it_acknowledged_is_caught() {
    let inner = MemoryStore::new();
    let open = async || Ok(Arc::new(Forgetful::new(inner.session())) as Arc<dyn Store>);
    let breaches = conformance::store(open).await.expect_err("it passes");
    assert!(breaches.iter().any(|breach| breach.rule == store::Rule::Acknowledged), "{breaches:#?}");
}
