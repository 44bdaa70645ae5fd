//! What every tools port must do (SPEC 7).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::mpsc;

use super::upstream::Act;
use super::{Breach, Checked, Turn, Wrong, each, same, within};
use crate::engine::Engine;
use crate::runtime::clock::SystemClock;
use crate::runtime::ports::{Invocation, Line, Tools, invocation};
use crate::vocabulary::effect::Effect;
use crate::vocabulary::environment::Environment;
use crate::vocabulary::fact::Statement;
use crate::vocabulary::ids::ModelCallId;
use crate::vocabulary::input::Input;
use crate::vocabulary::llm::{Content, FinishReason, ToolRequest, Usage};
use crate::vocabulary::spec::Spec;
use crate::vocabulary::tool::{Recovery, ToolError, ToolOutput};
use crate::vocabulary::wire::words;

/// The other side of tools.
pub type Upstream = super::Upstream<ToolOutput, ToolError>;

words! {
    /// A rule that a tools port must keep.
    pub enum Rule {
        /// The engine takes what resolution finds, and the call that a model makes is entered.
        Accepted = "accepted",
        /// What live tools declare agrees with what was resolved.
        LiveAgrees = "live_agrees",
        /// One invocation is one request, whatever comes of it: attempts are the engine's.
        OneRequest = "one_request",
        /// Results come as they were returned: text, the tool's own error, facts.
        ExactOutput = "exact_output",
        /// A failure, a connection that breaks, or nobody there is never a success.
        NeverASuccess = "never_a_success",
        /// A tool is unavailable before dispatch only where the upstream saw nothing.
        ProofOnly = "proof_only",
        /// Tools whose other side removes repetitions pass the operation id on, the same for every attempt.
        OperationId = "operation_id",
        /// An invocation that is dropped is given up upstream.
        GivenUp = "given_up",
        /// Invocations side by side get each their own result.
        SideBySide = "side_by_side",
    }
}

/// Checks a tools port against every rule. `spec` is what a run would resolve; `call` is what a model would call,
/// with the marker somewhere in its arguments as text, such that no gate and no person is asked; `open` connects a
/// port to an upstream. What resolution asks the upstream for is the port's own matter, and not counted.
///
/// # Errors
/// Every rule that is broken, with what happened.
pub async fn tools<T: Tools>(
    spec: &Spec,
    call: impl Fn(&str) -> ToolRequest,
    open: impl AsyncFn(Upstream) -> T,
) -> Result<(), Vec<Breach<Rule>>> {
    let ground = &Ground { spec, call, open, runs: AtomicU64::new(0) };
    each(Rule::ALL, async |rule| match rule {
        Rule::Accepted => ground.accepted().await,
        Rule::LiveAgrees => ground.live_agrees().await,
        Rule::OneRequest => ground.one_request().await,
        Rule::ExactOutput => ground.exact_output().await,
        Rule::NeverASuccess => ground.never_a_success().await,
        Rule::ProofOnly => ground.proof_only().await,
        Rule::OperationId => ground.operation_id().await,
        Rule::GivenUp => ground.given_up().await,
        Rule::SideBySide => ground.side_by_side().await,
    })
    .await
}

struct Ground<'a, C, F> {
    spec: &'a Spec,
    call: C,
    open: F,
    runs: AtomicU64,
}

type Returned = Result<ToolOutput, ToolError>;

impl<T, C, F> Ground<'_, C, F>
where
    T: Tools,
    C: Fn(&str) -> ToolRequest,
    F: AsyncFn(Upstream) -> T,
{
    async fn opened(&self) -> Result<(Upstream, T, Environment), Wrong> {
        let upstream = Upstream::new();
        let port = within("opening the port", (self.open)(upstream.clone())).await?;
        let environment = self.resolved(&port).await?;
        Ok((upstream, port, environment))
    }

    async fn resolved(&self, port: &T) -> Result<Environment, Wrong> {
        let found = within("resolution", port.resolve(self.spec)).await?;
        found.map_err(|error| Wrong(format!("resolution fails: {error:?}")))
    }

    /// The call with that marker as an engine enters it: a run of its own is taken up to there.
    fn entered(&self, environment: &Environment, marker: &str) -> Result<Invocation, Wrong> {
        let mut engine = Engine::new();
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let run_id = format!("conformance-{number}").parse().map_err(|malformed| Wrong(format!("{malformed}")))?;
        let (spec, nonce) = (Box::new(self.spec.clone()), "conformance".to_owned());
        step(&mut engine, Input::RunStarted { run_id, spec, nonce, wall_time: String::new(), forked_from: None })?;
        step(&mut engine, Input::EnvironmentResolved { environment: Box::new(environment.clone()) })?;
        if let Some(ending) = engine.ending() {
            return Err(Wrong(format!("the engine does not take what was resolved: {:?}", ending.failure)));
        }
        let content = Content { calls: vec![(self.call)(marker)], ..Content::default() };
        let (finish, usage) = (FinishReason::ToolCalls, Usage::default());
        step(&mut engine, Input::ModelResponded { call: ModelCallId(1), attempt: 1, content, finish, usage })?;
        let wave = engine
            .outstanding()
            .into_iter()
            .find_map(|effect| if let Effect::DispatchTools { calls } = effect { Some(calls) } else { None });
        let calls = wave.ok_or_else(|| Wrong(format!("the call is not dispatched: {:?}", engine.outstanding())))?;
        step(&mut engine, Input::ToolsDispatched { calls })?;
        let (wishes, _nobody) = mpsc::channel(1);
        let line = Line::new(wishes, Arc::new(SystemClock::new()));
        let entered = engine.outstanding().into_iter().find_map(|effect| {
            let Effect::InvokeTool { call, attempt, operation_id } = effect else { return None };
            invocation(&engine, call, attempt, &operation_id, &line)
        });
        entered.ok_or_else(|| Wrong("the call is not entered".to_owned()))
    }

    /// One invocation that is met like this; `None` when the upstream has no words for it.
    async fn invoked(&self, turn: Turn<ToolOutput, ToolError>) -> Result<Option<(Returned, usize)>, Wrong> {
        let (upstream, port, environment) = self.opened().await?;
        upstream.plan("marker-alone", Act::Now(turn));
        let returned = within("an invocation", port.invoke(self.entered(&environment, "marker-alone")?)).await?;
        let seen = upstream.seen("marker-alone");
        Ok((!seen.excused).then_some((returned, seen.requests.len())))
    }

    async fn accepted(&self) -> Checked {
        let (_, _, environment) = self.opened().await?;
        self.entered(&environment, "marker-accepted").map(|_| ())
    }

    async fn live_agrees(&self) -> Checked {
        let (_, port, environment) = self.opened().await?;
        let resolved: BTreeMap<&str, Recovery> =
            environment.tools.iter().map(|tool| (tool.name.as_str(), tool.recovery_mode())).collect();
        for live in within("what live tools declare", port.live()).await? {
            let declared = resolved.get(live.name.as_str()).copied();
            same(&format!("the recovery mode of {}", live.name), declared, Some(live.recovery))?;
        }
        Ok(())
    }

    async fn one_request(&self) -> Checked {
        for turn in failures().into_iter().chain([Turn::Answer(ToolOutput::text("done"))]) {
            let what = told(&turn);
            if let Some((_, requests)) = self.invoked(turn).await? {
                same(&format!("requests for one invocation whose upstream {what}"), requests, 1)?;
            }
        }
        Ok(())
    }

    async fn exact_output(&self) -> Checked {
        let facts = [
            Statement::new("the pool is used up"),
            Statement { key: Some("k".to_owned()), ..Statement::new("\u{e9}\"") },
        ];
        let outputs = [
            ToolOutput::text("two lines:\none \u{1f5dd}, two"),
            ToolOutput::error("there is no such table"),
            ToolOutput::facts("seen", facts),
        ];
        let mut said = 0;
        for output in outputs {
            let Some((returned, _)) = self.invoked(Turn::Answer(output.clone())).await? else { continue };
            same("a result", returned, Ok(output))?;
            said += 1;
        }
        same("whether any result could be said", said > 0, true)
    }

    async fn never_a_success(&self) -> Checked {
        for turn in failures() {
            let what = told(&turn);
            if let Some((Ok(output @ ToolOutput::Success { .. }), _)) = self.invoked(turn).await? {
                return Err(Wrong(format!("an upstream that {what} became {output:?}")));
            }
        }
        if let Some(Ok(output @ ToolOutput::Success { .. })) = self.away().await? {
            return Err(Wrong(format!("nobody is there, and that became {output:?}")));
        }
        Ok(())
    }

    /// What an invocation comes to when nobody is there; `None` when resolution fails already.
    async fn away(&self) -> Result<Option<Returned>, Wrong> {
        let port = within("opening the port", (self.open)(Upstream::away())).await?;
        let Ok(environment) = self.resolved(&port).await else { return Ok(None) };
        let invocation = self.entered(&environment, "marker-away")?;
        within("an invocation while nobody is there", port.invoke(invocation)).await.map(Some)
    }

    async fn proof_only(&self) -> Checked {
        for turn in failures() {
            let what = told(&turn);
            let Some((returned, requests)) = self.invoked(turn).await? else { continue };
            if requests > 0 && matches!(returned, Err(ToolError::UnavailableBeforeDispatch { .. })) {
                return Err(Wrong(format!("an upstream that {what} saw the request, and that became {returned:?}")));
            }
        }
        Ok(())
    }

    async fn operation_id(&self) -> Checked {
        let (upstream, port, environment) = self.opened().await?;
        upstream.plan("marker-operation", Act::Now(Turn::Break));
        let first = self.entered(&environment, "marker-operation")?;
        match first.tool().recovery_mode() {
            Recovery::NeverReplay | Recovery::ReplaySafe => return Ok(()),
            Recovery::Idempotent | Recovery::DurableRequest => {}
        }
        let second = Invocation { attempt: 2, ..first.clone() };
        let operation = first.operation_id.clone();
        for attempt in [first, second] {
            let _broken = within("an invocation", port.invoke(attempt)).await?;
        }
        let requests = upstream.seen("marker-operation").requests;
        same("requests of two attempts", requests.len(), 2)?;
        let missing = requests.iter().filter(|request| !request.contains(&operation.0)).count();
        same("attempts without their operation id", missing, 0)
    }

    async fn given_up(&self) -> Checked {
        let (upstream, port, environment) = self.opened().await?;
        upstream.plan("marker-stalled", Act::Stall);
        tokio::select! {
            returned = port.invoke(self.entered(&environment, "marker-stalled")?) => {
                return Err(Wrong(format!("an invocation that nobody answered became {returned:?}")));
            }
            heard = upstream.heard("marker-stalled") => heard?,
        }
        upstream.given_up("marker-stalled").await
    }

    async fn side_by_side(&self) -> Checked {
        let (upstream, port, environment) = self.opened().await?;
        let markers: Vec<String> = (0..6).map(|number| format!("marker-{number}-of-several")).collect();
        for (marker, delay) in markers.iter().zip([30, 5, 20, 1, 10, 15]) {
            let output = ToolOutput::text(format!("the result of {marker}"));
            upstream.plan(marker, Act::After(Duration::from_millis(delay), Turn::Answer(output)));
        }
        let entered = markers.iter().map(|marker| self.entered(&environment, marker)).collect::<Result<Vec<_>, _>>()?;
        let returned = join_all(entered.into_iter().map(|invocation| port.invoke(invocation)));
        for (marker, returned) in markers.iter().zip(within("invocations side by side", returned).await?) {
            same("one of several results", returned, Ok(ToolOutput::text(format!("the result of {marker}"))))?;
            same("requests of one of several invocations", upstream.seen(marker).requests.len(), 1)?;
        }
        Ok(())
    }
}

fn step(engine: &mut Engine, input: Input) -> Checked {
    let tag = input.tag();
    engine.step(0, input).map(|_| ()).map_err(|refusal| Wrong(format!("the engine refuses {tag}: {refusal}")))
}

fn failures() -> [Turn<ToolOutput, ToolError>; 2] {
    [Turn::Fail(ToolError::Execution { message: "the tool's own words".to_owned() }), Turn::Break]
}

/// What an upstream does, in words.
fn told(turn: &Turn<ToolOutput, ToolError>) -> &'static str {
    match turn {
        Turn::Answer(_) => "answers",
        Turn::Fail(_) => "fails",
        Turn::Break => "breaks off",
    }
}
