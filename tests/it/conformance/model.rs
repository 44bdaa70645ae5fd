//! Models.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis::runtime::conformance::model::{Rule, Upstream, model};
use portcullis::runtime::conformance::{Breach, Turn};
use portcullis::runtime::ports::{Model, ModelAnswer, ModelCall, ModelFailure};
use portcullis::vocabulary::llm;

use super::{unheeding, wait};

/// A model in this process, which may break a rule.
struct Port {
    upstream: Upstream,
    broken: Option<Rule>,
    latest: Arc<Mutex<Option<ModelAnswer>>>,
}

impl Port {
    fn breaks(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    async fn send(&self, request: String) -> Turn<ModelAnswer, llm::Error> {
        let upstream = self.upstream.clone();
        if self.breaks(Rule::GivenUp) {
            return unheeding(async move { upstream.ask(request).await }).await;
        }
        let turn = upstream.ask(request.clone()).await;
        if self.breaks(Rule::OneRequest) && matches!(&turn, Turn::Fail(error) if error.code().retryable()) {
            return upstream.ask(request).await;
        }
        turn
    }

    /// Keeps the answer where the next one overwrites it.
    async fn mixed(&self, answer: ModelAnswer) -> ModelAnswer {
        *self.latest.lock().unwrap() = Some(answer);
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.latest.lock().unwrap().clone().unwrap()
    }
}

impl Model for Port {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let shown = if self.breaks(Rule::WholeRequest) { 1 } else { call.messages.len() };
        let messages = call.messages.iter().rev().take(shown).map(|message| serde_json::to_string(message).unwrap());
        match self.send(messages.collect::<Vec<_>>().join("\n")).await {
            Turn::Answer(mut answer) => {
                if self.breaks(Rule::ExactContent) {
                    answer.content.text = answer.content.text.map(|text| text.replace('\n', " "));
                }
                if self.breaks(Rule::ExactUsage) {
                    answer.usage.input_tokens.get_or_insert(0);
                }
                Ok(if self.breaks(Rule::SideBySide) { self.mixed(answer).await } else { answer })
            }
            Turn::Fail(error) if self.breaks(Rule::KeepsTheClass) => {
                Err(llm::Error::Provider { message: error.to_string() }.into())
            }
            Turn::Fail(error) => Err(error.into()),
            Turn::Break if self.breaks(Rule::NeverAnAnswer) => Ok(ModelAnswer::text("")),
            Turn::Break => Err(llm::Error::Provider { message: "the connection broke".to_owned() }.into()),
        }
    }
}

fn checked(broken: Option<Rule>) -> Result<(), Vec<Breach<Rule>>> {
    wait(model(async |upstream| Port { upstream, broken, latest: Arc::default() }))
}

#[test]
fn a_model_that_keeps_every_rule_passes() {
    assert_eq!(checked(None), Ok(()));
}

#[test]
fn a_model_that_breaks_a_rule_is_told_which() {
    for rule in Rule::ALL {
        let breaches = checked(Some(*rule)).expect_err(rule.word());
        assert!(breaches.iter().any(|breach| breach.rule == *rule), "{rule} is broken, found were {breaches:#?}");
    }
}

#[test]
fn a_model_that_panics_or_never_comes_back_ends_the_suite_all_the_same() {
    struct Panics;
    impl Model for Panics {
        async fn respond(&self, _: ModelCall) -> Result<ModelAnswer, ModelFailure> {
            panic!("on purpose")
        }
    }
    struct Sleeps;
    impl Model for Sleeps {
        async fn respond(&self, _: ModelCall) -> Result<ModelAnswer, ModelFailure> {
            std::future::pending().await
        }
    }
    let breaches = wait(model(async |_| Panics)).expect_err("it passes");
    assert!(breaches.iter().any(|breach| breach.reason.contains("on purpose")), "{breaches:#?}");
    assert_eq!(breaches.len(), Rule::ALL.len());
    let breaches = wait(model(async |_| Sleeps)).expect_err("it passes");
    assert_eq!(breaches.len(), Rule::ALL.len(), "{breaches:#?}");
}

/// A provider need not know every failure, but one that knows none cannot show that it keeps classes apart.
#[test]
fn an_upstream_may_lack_words_for_some_failures_and_not_for_all() {
    struct Narrow {
        upstream: Upstream,
        knows: fn(llm::Code) -> bool,
    }
    impl Model for Narrow {
        async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
            let request = format!("{:?}", call.messages);
            match self.upstream.ask(request.clone()).await {
                Turn::Answer(answer) => Ok(answer),
                Turn::Fail(error) if !(self.knows)(error.code()) => {
                    self.upstream.cannot_say(&request);
                    Ok(ModelAnswer::text("whatever"))
                }
                Turn::Fail(error) => Err(error.into()),
                Turn::Break => Err(llm::Error::Timeout { message: String::new() }.into()),
            }
        }
    }
    let open = |knows: fn(llm::Code) -> bool| wait(model(async move |upstream| Narrow { upstream, knows }));
    let some = |code| matches!(code, llm::Code::Overloaded | llm::Code::Unauthorized);
    assert_eq!(open(some), Ok(()));
    let breaches = open(|_| false).expect_err("it passes");
    assert_eq!(breaches.iter().map(|breach| breach.rule).collect::<Vec<_>>(), [Rule::KeepsTheClass]);
}
