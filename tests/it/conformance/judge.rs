//! Judges.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis::runtime::conformance::judge::{Rule, Upstream, judge};
use portcullis::runtime::conformance::{Breach, Turn};
use portcullis::runtime::ports::{Judge, JudgeQuestion, Judgement};
use portcullis::vocabulary::input::Verdict;
use portcullis::vocabulary::llm;

use super::{unheeding, wait};

/// A judge in this process, which may break a rule.
struct Port {
    upstream: Upstream,
    broken: Option<Rule>,
    latest: Arc<Mutex<Option<Judgement>>>,
}

const LENIENT: Judgement = Judgement { verdict: Verdict::Supported, usage: None };

impl Port {
    fn breaks(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    async fn send(&self, request: String) -> Turn<Judgement, llm::Error> {
        let upstream = self.upstream.clone();
        if self.breaks(Rule::GivenUp) {
            return unheeding(async move { upstream.ask(request).await }).await;
        }
        if self.breaks(Rule::SilenceIsNoVerdict) {
            let answered = tokio::time::timeout(Duration::from_secs(1), upstream.ask(request)).await;
            return answered.unwrap_or(Turn::Answer(LENIENT));
        }
        let turn = upstream.ask(request.clone()).await;
        let again = self.breaks(Rule::OneRequest) && turn == Turn::Break;
        if again { upstream.ask(request).await } else { turn }
    }
}

impl Judge for Port {
    async fn judge(&self, question: JudgeQuestion) -> Result<Judgement, llm::Error> {
        let mut request = format!("{} {} {:?}", question.task, question.statement, question.citations);
        if self.breaks(Rule::WholeRequest) {
            request = question.statement;
        }
        match self.send(request).await {
            Turn::Answer(judgement) if self.breaks(Rule::ExactVerdict) && judgement.verdict == Verdict::Unknown => {
                Ok(Judgement { verdict: Verdict::Unsupported, ..judgement })
            }
            Turn::Answer(judgement) if self.breaks(Rule::SideBySide) => {
                *self.latest.lock().unwrap() = Some(judgement);
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(self.latest.lock().unwrap().unwrap())
            }
            Turn::Answer(judgement) => Ok(judgement),
            Turn::Fail(_) | Turn::Break if self.breaks(Rule::NeverAVerdict) => Ok(LENIENT),
            Turn::Fail(error) => Err(error),
            Turn::Break => Err(llm::Error::Provider { message: "the connection broke".to_owned() }),
        }
    }
}

fn checked(broken: Option<Rule>) -> Result<(), Vec<Breach<Rule>>> {
    wait(judge(async |upstream| Port { upstream, broken, latest: Arc::default() }))
}

#[test]
fn a_judge_that_keeps_every_rule_passes() {
    assert_eq!(checked(None), Ok(()));
}

#[test]
fn a_judge_that_breaks_a_rule_is_told_which() {
    for rule in Rule::ALL {
        let breaches = checked(Some(*rule)).expect_err(rule.word());
        assert!(breaches.iter().any(|breach| breach.rule == *rule), "{rule} is broken, found were {breaches:#?}");
    }
}
