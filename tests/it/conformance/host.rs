//! Hosts.

use std::io::{BufRead, Cursor, Read};
use std::sync::Arc;

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::engine::Ending;
use portcullis::runtime::conformance::Breach;
use portcullis::runtime::conformance::host::{Rule, Stage, host};
use portcullis::runtime::ports::{Model, ModelAnswer, ModelCall, ModelFailure};
use portcullis::runtime::store::{Append, Beginning, Claim, Filter, Lease, Listed, Posted, RequestId, Store, Stored};
use portcullis::runtime::{OnDrop, Outcome};
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::outcome::ReleaseOutcome;

/// A host, which may break a rule.
#[derive(Clone, Copy)]
struct Host(Option<Rule>);

impl Host {
    fn breaks(self, rule: Rule) -> bool {
        self.0 == Some(rule)
    }

    async fn serve(self, stage: Stage) {
        let screen = stage.screen();
        let mut builder = stage.builder();
        if self.breaks(Rule::NothingUnverified) {
            builder = builder.model(Streaming(stage.clone()));
        }
        let runtime = builder.build().expect("a runtime");
        let run = runtime.start(stage.spec()).await.expect("the run begins").on_drop(OnDrop::Detach);
        let ended = match run.outcome().await {
            Ok(Outcome::Ended(ended)) => ended,
            Ok(Outcome::Awaiting(waiting)) => {
                if self.breaks(Rule::ComesBack) {
                    std::future::pending::<()>().await;
                }
                screen.notice(format!("{} questions", waiting.questions.len()));
                return;
            }
            Err(error) => {
                screen.notice(error.failure_code().safe_message());
                if self.breaks(Rule::NothingUnreleased) {
                    screen.release(ReleaseOutcome::Failed, "something went wrong");
                }
                return;
            }
        };
        let text = serde_json::to_string(&ended.release).expect("a release is JSON");
        let shown_as = |ending: &Ending| {
            let friendly = self.breaks(Rule::ShownAsItIs) && ending.outcome == ReleaseOutcome::Fallback;
            if friendly { ReleaseOutcome::Success } else { ending.outcome }
        };
        if self.breaks(Rule::ShownFirst) {
            run.delivered("sent").await.expect("it is accepted");
        }
        let text = if self.breaks(Rule::ShownWhole) { "the report is ready".to_owned() } else { text };
        screen.release(shown_as(&ended.ending), text);
        if !self.breaks(Rule::ShownFirst) && !self.breaks(Rule::AcknowledgedOnce) {
            run.delivered("shown").await.expect("it is accepted");
        }
    }
}

/// Shows what the model writes while it writes it.
struct Streaming(Stage);

impl Model for Streaming {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let answer = self.0.model().respond(call).await?;
        // Word by word.
        for word in answer.content.text.iter().flat_map(|text| text.split_inclusive(' ')) {
            self.0.screen().notice(word);
        }
        Ok(answer)
    }
}

/// In real time: a cancellation comes by way of the store.
fn checked(broken: Option<Rule>) -> Result<(), Vec<Breach<Rule>>> {
    let store = MemoryStore::new();
    let open = async || {
        let session = store.session();
        Ok(if broken == Some(Rule::FailClosed) {
            Arc::new(Rewriting(session)) as Arc<dyn Store>
        } else {
            Arc::new(session)
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(host(open, async |stage| Host(broken).serve(stage).await))
}

#[test]
fn a_host_that_keeps_every_rule_passes() {
    assert_eq!(checked(None), Ok(()));
}

/// Virtual time used to run on to the deadline while a person was waited for, on some machines before the host saw it.
#[test]
fn a_host_that_keeps_every_rule_is_never_blamed_by_chance() {
    for _ in 0..40 {
        assert_eq!(checked(None), Ok(()));
    }
}

#[test]
fn a_host_that_breaks_a_rule_is_told_which() {
    for rule in Rule::ALL {
        let breaches = checked(Some(*rule)).expect_err(rule.word());
        assert!(breaches.iter().any(|breach| breach.rule == *rule), "{rule} is broken, found were {breaches:#?}");
    }
}

#[test]
fn a_host_that_shows_the_draft_of_a_refused_commit_or_a_fallback_is_caught() {
    let store = MemoryStore::new();
    let open = async || Ok(Arc::new(store.session()) as Arc<dyn Store>);
    let reads_history = async |stage: Stage| {
        Host(None).serve(stage.clone()).await;
        let store = stage.store();
        let run = store.list(Filter::All).await.unwrap().pop().unwrap().run;
        let mut text = String::new();
        store.read(&run).await.unwrap().read_to_string(&mut text).unwrap();
        stage.screen().notice(text);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let breaches = runtime.block_on(host(open, reads_history)).expect_err("it passes");
    assert!(breaches.iter().any(|breach| breach.rule == Rule::NothingUnverified), "{breaches:#?}");
}

/// A store that gives a history back with another ending than it was stored with.
struct Rewriting(MemoryStore);

impl Store for Rewriting {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        self.0.create(beginning)
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        self.0.append(append)
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        self.0.claim(run, claim)
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        self.0.release(lease)
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        let run = run.clone();
        Box::pin(async move {
            let mut text = String::new();
            self.0.read(&run).await?.read_to_string(&mut text).expect("a history is text");
            let rewritten = text.replace(r#""outcome":"fallback""#, r#""outcome":"success""#);
            Ok(Box::new(Cursor::new(rewritten)) as Box<dyn BufRead + Send>)
        })
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        self.0.find(run)
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        self.0.list(filter)
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        self.0.origin(run)
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        self.0.post(run, request)
    }

    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        self.0.posted()
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        self.0.answer(request, answer)
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        self.0.answered(request)
    }
}
