//! What every model port must do (SPEC 6).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::upstream::Act;
use super::{Breach, Checked, Turn, Wrong, each, same, within};
use crate::runtime::ports::{Model, ModelAnswer, ModelCall, ModelFailure};
use crate::vocabulary::effect::{Purpose, ToolOffer};
use crate::vocabulary::ids::{ModelCallId, RunId};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, Content, FinishReason, ToolRequest, Usage};
use crate::vocabulary::message::Message;
use crate::vocabulary::spec::{DraftSpec, ModelSpec};
use crate::vocabulary::wire::words;

/// A model's other side.
pub type Upstream = super::Upstream<ModelAnswer, llm::Error>;

words! {
    /// A rule that a model port must keep.
    pub enum Rule {
        /// One call is one request, whatever comes of it: retries are the engine's.
        OneRequest = "one_request",
        /// Every message that the model is to be shown reaches it.
        WholeRequest = "whole_request",
        /// Text, tool calls and the reason to stop come as they were answered.
        ExactContent = "exact_content",
        /// Usage comes as it was told, and what was not told stays unknown.
        ExactUsage = "exact_usage",
        /// A failure keeps its class, and the wait that came with it.
        KeepsTheClass = "keeps_the_class",
        /// A failure, or a connection that breaks, is never an answer.
        NeverAnAnswer = "never_an_answer",
        /// A call that is dropped is given up upstream.
        GivenUp = "given_up",
        /// Calls side by side get each their own answer.
        SideBySide = "side_by_side",
    }
}

/// Checks a model port against every rule. `open` connects a port to an upstream.
///
/// # Errors
/// Every rule that is broken, with what happened.
pub async fn model<M: Model>(open: impl AsyncFn(Upstream) -> M) -> Result<(), Vec<Breach<Rule>>> {
    let ground = &Ground { open };
    each(Rule::ALL, async |rule| match rule {
        Rule::OneRequest => ground.one_request().await,
        Rule::WholeRequest => ground.whole_request().await,
        Rule::ExactContent => ground.exact_content().await,
        Rule::ExactUsage => ground.exact_usage().await,
        Rule::KeepsTheClass => ground.keeps_the_class().await,
        Rule::NeverAnAnswer => ground.never_an_answer().await,
        Rule::GivenUp => ground.given_up().await,
        Rule::SideBySide => ground.side_by_side().await,
    })
    .await
}

struct Ground<F> {
    open: F,
}

type Answered = Result<ModelAnswer, ModelFailure>;

impl<M: Model, F: AsyncFn(Upstream) -> M> Ground<F> {
    async fn opened(&self) -> Result<(Upstream, M), Wrong> {
        let upstream = Upstream::new();
        let port = within("opening the port", (self.open)(upstream.clone())).await?;
        Ok((upstream, port))
    }

    /// One call whose request is met like this; `None` when the upstream has no words for it.
    async fn asked(&self, act: Turn<ModelAnswer, llm::Error>) -> Result<Option<(Answered, usize)>, Wrong> {
        let (upstream, port) = self.opened().await?;
        upstream.plan("marker-alone", Act::Now(act));
        let answered = within("a call", port.respond(call("marker-alone")?)).await?;
        let seen = upstream.seen("marker-alone");
        Ok((!seen.excused).then_some((answered, seen.requests.len())))
    }

    async fn one_request(&self) -> Checked {
        let turns = errors().into_iter().map(Turn::Fail).chain([Turn::Break, Turn::Answer(ModelAnswer::text("fine"))]);
        for turn in turns {
            let what = told(&turn);
            if let Some((_, requests)) = self.asked(turn).await? {
                same(&format!("requests for one call whose upstream {what}"), requests, 1)?;
            }
        }
        Ok(())
    }

    async fn whole_request(&self) -> Checked {
        let (upstream, port) = self.opened().await?;
        upstream.plan("marker-whole", Act::Now(Turn::Answer(ModelAnswer::text("fine"))));
        let _answer = within("a call", port.respond(call("marker-whole")?)).await?;
        let seen = upstream.seen("marker-whole");
        let request = seen.requests.first().ok_or_else(|| Wrong("no request has the task in it".to_owned()))?;
        for part in ["marker-instructions", "marker-prior"] {
            same(&format!("whether the request holds the message {part}"), request.contains(part), true)?;
        }
        Ok(())
    }

    async fn exact_content(&self) -> Checked {
        for answer in answers() {
            let Some((answered, _)) = self.asked(Turn::Answer(answer.clone())).await? else { continue };
            let got = answered.map_err(|failure| Wrong(format!("an answer became {failure:?}")))?;
            same("the text", &got.content.text, &answer.content.text)?;
            same("the tool calls", shown(&got.content.calls), shown(&answer.content.calls))?;
            same("the reason to stop", got.finish, answer.finish)?;
        }
        Ok(())
    }

    async fn exact_usage(&self) -> Checked {
        let usages = [(Some(12), Some(34)), (Some(0), Some(7)), (None, None)];
        for (input_tokens, output_tokens) in usages {
            let usage = Usage { input_tokens, output_tokens };
            let answer = ModelAnswer { usage, ..ModelAnswer::text("fine") };
            let Some((answered, _)) = self.asked(Turn::Answer(answer)).await? else { continue };
            let got = answered.map_err(|failure| Wrong(format!("an answer became {failure:?}")))?;
            same("usage", got.usage, usage)?;
        }
        Ok(())
    }

    async fn keeps_the_class(&self) -> Checked {
        let (mut again, mut never) = (0, 0);
        for error in errors() {
            let Some((answered, _)) = self.asked(Turn::Fail(error.clone())).await? else { continue };
            let code = error.code();
            match answered {
                Err(ModelFailure::Classified { error: got, .. }) => {
                    same("the class of a failure", got.code(), code)?;
                    same(&format!("the wait of {code}"), wait(&got), wait(&error))?;
                }
                other => return Err(Wrong(format!("{code} became {other:?}"))),
            }
            *(if code.retryable() { &mut again } else { &mut never }) += 1;
        }
        same("whether a failure of each kind, retried and not, could be said", again > 0 && never > 0, true)
    }

    async fn never_an_answer(&self) -> Checked {
        for turn in errors().into_iter().map(Turn::Fail).chain([Turn::Break]) {
            let what = told(&turn);
            if let Some((Ok(answer), _)) = self.asked(turn).await? {
                return Err(Wrong(format!("an upstream that {what} became the answer {answer:?}")));
            }
        }
        Ok(())
    }

    async fn given_up(&self) -> Checked {
        let (upstream, port) = self.opened().await?;
        upstream.plan("marker-stalled", Act::Stall);
        let call = call("marker-stalled")?;
        tokio::select! {
            answer = port.respond(call) => return Err(Wrong(format!("a request that nobody answered became {answer:?}"))),
            heard = upstream.heard("marker-stalled") => heard?,
        }
        upstream.given_up("marker-stalled").await
    }

    async fn side_by_side(&self) -> Checked {
        let (upstream, port) = self.opened().await?;
        let markers: Vec<String> = (0..6).map(|number| format!("marker-{number}-of-several")).collect();
        for (marker, delay) in markers.iter().zip([30, 5, 20, 1, 10, 15]) {
            let answer = ModelAnswer::text(format!("the answer to {marker}"));
            upstream.plan(marker, Act::After(Duration::from_millis(delay), Turn::Answer(answer)));
        }
        let calls = markers.iter().map(|marker| call(marker)).collect::<Result<Vec<_>, _>>()?;
        let answers = within("calls side by side", join_all(calls.into_iter().map(|call| port.respond(call)))).await?;
        for (marker, answered) in markers.iter().zip(answers) {
            let got = answered.map_err(|failure| Wrong(format!("an answer became {failure:?}")))?;
            same("the text", got.content.text, Some(format!("the answer to {marker}")))?;
            same("requests of one of several calls", upstream.seen(marker).requests.len(), 1)?;
        }
        Ok(())
    }
}

/// One call whose task is the marker.
fn call(marker: &str) -> Result<ModelCall, Wrong> {
    let run: RunId = "conformance".parse().map_err(|malformed| Wrong(format!("{malformed}")))?;
    let instructions = Message::Instructions { text: "marker-instructions".to_owned() };
    let by = crate::vocabulary::spec::PriorRole::User;
    let prior = Message::Prior { by, text: "marker-prior".to_owned() };
    let task = Message::Task { text: marker.to_owned() };
    Ok(ModelCall {
        run,
        call: ModelCallId(1),
        attempt: 1,
        purpose: Purpose::Step,
        model: ModelSpec::new("conformance"),
        messages: [instructions, prior, task].map(Arc::new).into(),
        tools: Vec::new(),
        offer: ToolOffer::Offered,
        answer: DraftSpec::default(),
    })
}

fn answers() -> Vec<ModelAnswer> {
    let request = |name: &str, arguments: &str, id: &str| ToolRequest {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        provider_id: Some(id.to_owned()),
    };
    let calls = vec![request("look", r#"{"at":1}"#, "call_1"), request("look", r#"{"at":2}"#, "call_2")];
    let both = Content { text: Some("first I look".to_owned()), calls: calls.clone(), opaque: None };
    let draft = r#"{"conclusion":{"statement":"caf\u00e9 \"so\""},"citations":["f1"]}"#;
    vec![
        ModelAnswer::text(draft),
        ModelAnswer::text("two lines:\none \u{1f5dd}, \u{202e}two"),
        ModelAnswer { finish: FinishReason::Length, ..ModelAnswer::text("cut in the mid") },
        ModelAnswer::calls(calls),
        ModelAnswer { content: both, ..ModelAnswer::calls([]) },
    ]
}

/// Calls with their arguments as values: a protocol may spell them otherwise.
fn shown(calls: &[ToolRequest]) -> Vec<(String, Result<Json, String>)> {
    let arguments = |call: &ToolRequest| Json::parse(&call.arguments).map_err(|_| call.arguments.clone());
    calls.iter().map(|call| (call.name.clone(), arguments(call))).collect()
}

/// One failure of each class.
pub(super) fn errors() -> Vec<llm::Error> {
    use llm::Error;
    let message = || "the provider's own words".to_owned();
    vec![
        Error::Provider { message: message() },
        Error::RateLimited { message: message(), retry_after_ms: Some(7_000) },
        Error::Overloaded { message: message(), retry_after_ms: Some(9_000) },
        Error::Timeout { message: message() },
        Error::Binding { message: message() },
        Error::ContextOverflow { message: message() },
        Error::InvalidRequest { message: message() },
        Error::Unauthorized { message: message() },
        Error::UsageLimit { message: message(), reset_after_ms: None },
        Error::LoginRequired { message: message() },
        Error::ModelNotFound { message: message() },
        Error::ContentFiltered { message: message() },
    ]
}

const fn wait(error: &llm::Error) -> Option<u64> {
    use llm::Error;
    match error {
        Error::RateLimited { retry_after_ms, .. } | Error::Overloaded { retry_after_ms, .. } => *retry_after_ms,
        Error::UsageLimit { reset_after_ms, .. } => *reset_after_ms,
        Error::Provider { .. }
        | Error::Timeout { .. }
        | Error::Binding { .. }
        | Error::ContextOverflow { .. }
        | Error::InvalidRequest { .. }
        | Error::Unauthorized { .. }
        | Error::LoginRequired { .. }
        | Error::ModelNotFound { .. }
        | Error::ContentFiltered { .. } => None,
    }
}

/// What an upstream does, in words.
pub(super) fn told<A>(turn: &Turn<A, llm::Error>) -> String {
    match turn {
        Turn::Answer(_) => "answers".to_owned(),
        Turn::Fail(error) => format!("fails with {}", error.code()),
        Turn::Break => "breaks off".to_owned(),
    }
}
