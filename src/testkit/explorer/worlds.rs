//! The worlds that together reach every row. Each is small in its own way: one set of bounds cannot reach
//! every row (SPEC 13.9).

use crate::testkit::world::{HookReply, Menu, NestedAsk, Output, World};
use crate::vocabulary::bound::{Allowance, Bound};
use crate::vocabulary::environment::{
    Capability, Environment, Gate, GateOf, Hook, HookPoint, MergePolicy, StateKeySpec, StateScope,
};
use crate::vocabulary::fact::{Origin, PriorFact, Statement};
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::{FactId, RunId, ToolCallId};
use crate::vocabulary::input::{Decision, GateAnswer, Reconciliation, StagedCommand, Verdict};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, FinishReason, ToolRequest, Usage};
use crate::vocabulary::spec::{Assessment, DraftFormat, JudgePolicy, ModelSpec, Spec, ToolSpec};
use crate::vocabulary::tool::{Concurrency, OnIndeterminate, Recovery, ToolError, ToolOutput};

/// Every world, in a fixed order.
#[must_use]
pub fn worlds() -> Vec<World> {
    vec![
        resolution(),
        no_budget(),
        drafts(),
        repairs(),
        repairs_with_hooks(),
        judged_with_hooks(),
        held_for_hooks(),
        plain_text(),
        results(),
        waves(),
        saturation(),
        spent_after_stop(),
        saturated_release(),
        protocol(),
        gates(),
        people(),
        models(),
        budgets(),
        crashes(),
        ends_when_unknown(),
        held_calls(),
        hooks(),
        shared_state(),
        scheduled_actions(),
        earlier_facts(),
        nested(),
        two_doors(),
    ]
}

/// The same worlds with more model calls, and more takeovers, where the states of one world stay a few hundred
/// thousand.
#[must_use]
pub fn wide_worlds() -> Vec<World> {
    worlds().into_iter().map(widened).collect()
}

/// How much more each world is given: model calls and takeovers. One that is not named gets one more of both.
const WIDER: &[(&str, u64, u64)] = &[
    ("no_budget", 0, 3),
    ("waves", 2, 0),
    ("saturation", 1, 0),
    ("saturated_release", 2, 1),
    ("protocol", 3, 1),
    ("gates", 3, 0),
    ("models", 2, 1),
    ("crashes", 2, 0),
    ("held_calls", 2, 0),
    ("shared_state", 1, 0),
];

fn widened(mut world: World) -> World {
    let wider = WIDER.iter().find(|(name, ..)| *name == world.name);
    let (_, model_calls, takeovers) = wider.copied().unwrap_or((world.name, 1, 1));
    let limit = &mut world.spec.budgets.model_calls;
    *limit = limit.map(|limit| limit.saturating_add(model_calls));
    world.recoveries_max = world.recoveries_max.saturating_add(takeovers);
    world
}

/// What the worlds share: one model, no delay, no second thoughts, a short deadline.
fn spec() -> Spec {
    let mut spec = Spec::new("find out", "model");
    spec.budgets.model_calls = Some(2);
    spec.budgets.tool_calls = None;
    spec.deadline_ms = Some(10_000);
    spec.retry.retries_max = 0;
    spec.collection.saturation_after = None;
    spec.release.judge = JudgePolicy::Off;
    spec.release.evidence_repairs = 0;
    spec.limits.note_bytes_max = 64;
    spec
}

/// What the worlds share on the menu: the evidence tool `look`, a good draft, one way to look.
fn menu() -> Menu {
    Menu {
        environments: vec![environment(vec![look()], Vec::new())],
        drafts: vec![draft(GOOD)],
        batches: vec![batch([("look", r#"{"at":1}"#)])],
        usage: Usage { input_tokens: Some(10), output_tokens: Some(5) },
        outputs: vec![Output::Fresh],
        // Whoever is asked answers in the end, so that every run can end.
        tool_gates: vec![GateAnswer::Allow],
        release_gates: vec![GateAnswer::Allow],
        hooks: vec![HookReply::default()],
        decisions: vec![Decision::Allow],
        verdicts: vec![Verdict::Supported],
        reconciliations: vec![Reconciliation::NotApplied],
        ..Menu::default()
    }
}

const fn world(name: &'static str, spec: Spec, menu: Menu) -> World {
    World { name, spec, menu, recoveries_max: 1 }
}

const GOOD: &str = r#"{"conclusion":{"statement":"it is so"},"citations":["f1"],"quotes":{"f1":"seen"}}"#;
const NO_CONCLUSION: &str = r#"{"conclusion":null,"citations":["f1"]}"#;
const UNCITED: &str = r#"{"conclusion":{"statement":"it is so"},"citations":[]}"#;
const UNKNOWN_REFERENCE: &str = r#"{"conclusion":{"statement":"it is so"},"citations":["f1","f99"]}"#;
const MISQUOTED: &str = r#"{"conclusion":{"statement":"it is so"},"citations":["f1"],"quotes":{"f1":"never said"}}"#;

fn draft(text: &str) -> (String, FinishReason) {
    (text.to_owned(), FinishReason::Stop)
}

fn every_draft() -> Vec<(String, FinishReason)> {
    let texts = [GOOD, NO_CONCLUSION, UNCITED, UNKNOWN_REFERENCE, MISQUOTED, " ", "it is so", r#"{"citations":[]}"#];
    let cut = (GOOD.to_owned(), FinishReason::Length);
    let filtered = (GOOD.to_owned(), FinishReason::ContentFilter);
    texts.into_iter().map(draft).chain([cut, filtered]).collect()
}

fn request((name, arguments): (&str, &str)) -> ToolRequest {
    ToolRequest { name: name.to_owned(), arguments: arguments.to_owned(), provider_id: Some("same".to_owned()) }
}

fn batch<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> (Vec<ToolRequest>, FinishReason) {
    (calls.into_iter().map(request).collect(), FinishReason::ToolCalls)
}

/// Looks, and only looks: takes a whole number.
fn look() -> ToolSpec {
    let mut tool = ToolSpec::evidence("look");
    let number = Json::Object([("type".to_owned(), Json::from("integer"))].into());
    let properties = Json::Object([("at".to_owned(), number)].into());
    tool.parameters =
        Json::Object([("type".to_owned(), Json::from("object")), ("properties".to_owned(), properties)].into());
    tool.timeout_ms = None;
    tool.result_bytes_max = 64;
    tool
}

/// Does something that must not be done twice.
fn act() -> ToolSpec {
    ToolSpec { timeout_ms: None, ..ToolSpec::new("act") }
}

fn environment(tools: Vec<ToolSpec>, gates: Vec<Gate>) -> Environment {
    Environment { tools, gates, ..Environment::default() }
}

fn gate(id: &str, of: GateOf) -> Gate {
    Gate { id: id.to_owned(), of, tools: Vec::new() }
}

fn said(statement: &str, key: Option<&str>) -> Output {
    let fact = Statement { statement: statement.to_owned(), key: key.map(str::to_owned) };
    Output::Given(ToolOutput::facts("seen", [fact]))
}

fn message() -> String {
    "for people".to_owned()
}

/// Everything that resolution can come back with.
fn resolution() -> World {
    let (id, plugin) = ("a".to_owned(), "p".to_owned());
    let (first, second) = ("p".to_owned(), "q".to_owned());
    let twice = environment(vec![look(), look()], Vec::new());
    let nameless = environment(vec![ToolSpec::new("")], Vec::new());
    let menu = Menu {
        environments: vec![Environment::default(), twice, nameless],
        unresolved: vec![
            ResolutionError::Routing { message: message() },
            ResolutionError::Bound { plugin: plugin.clone(), contribution: id.clone() },
            ResolutionError::DuplicateTool { id: id.clone(), first: first.clone(), second: second.clone() },
            ResolutionError::DuplicateActionKind { id: id.clone(), first, second },
            ResolutionError::MissingDependency { plugin: plugin.clone(), missing: id.clone() },
            ResolutionError::DependencyCycle { plugins: vec!["p".to_owned(), "q".to_owned()] },
            ResolutionError::DuplicatePlugin { id },
            ResolutionError::Config { plugin, message: message() },
        ],
        ..menu()
    };
    world("resolution", spec(), menu)
}

/// No model call is admitted.
fn no_budget() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(0);
    world("no_budget", spec, menu())
}

/// Every draft, with repairs of both kinds and a judge.
fn drafts() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(4);
    spec.draft.repairs = 1;
    spec.release.evidence_repairs = 1;
    spec.release.judge = JudgePolicy::On;
    let errors = vec![llm::Error::InvalidRequest { message: message() }];
    let menu = Menu { drafts: every_draft(), verdicts: Verdict::ALL.to_vec(), model_errors: errors, ..menu() };
    world("drafts", spec, menu)
}

/// Two repairs of each kind without a judge, and a gate before the release.
fn repairs() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(5);
    spec.draft.repairs = 2;
    spec.release.evidence_repairs = 2;
    let menu = Menu {
        environments: vec![environment(vec![look()], vec![gate("first", GateOf::Release)])],
        drafts: [GOOD, UNCITED, " "].into_iter().map(draft).collect(),
        release_gates: vec![GateAnswer::Allow, GateAnswer::Block { reason: None }],
        ..menu()
    };
    world("repairs", spec, menu)
}

/// The same, and a plugin that is asked before the release.
fn repairs_with_hooks() -> World {
    let World { spec, menu, .. } = repairs();
    let environments = vec![asked_at(HookPoint::BeforeRelease, Vec::new())];
    world("repairs_with_hooks", spec, Menu { environments, ..menu })
}

/// A judge, then a plugin, then a gate: everybody who may hold a release back.
fn judged_with_hooks() -> World {
    let mut spec = spec();
    spec.release.judge = JudgePolicy::On;
    let menu = Menu {
        environments: vec![asked_at(HookPoint::BeforeRelease, vec![gate("first", GateOf::Release)])],
        release_gates: vec![GateAnswer::Allow, GateAnswer::Block { reason: None }],
        ..menu()
    };
    world("judged_with_hooks", spec, menu)
}

/// Each response is held until a plugin has seen it; a judge then judges the draft.
fn held_for_hooks() -> World {
    let mut spec = spec();
    spec.release.judge = JudgePolicy::On;
    world(
        "held_for_hooks",
        spec,
        Menu { environments: vec![asked_at(HookPoint::AfterInference, Vec::new())], ..menu() },
    )
}

fn asked_at(point: HookPoint, gates: Vec<Gate>) -> Environment {
    let bound = Bound { hooks: vec![point], ..Bound::default() };
    Environment {
        tools: vec![look()],
        gates,
        hooks: vec![hook("p", point)],
        plugins: vec!["p".to_owned()],
        capabilities: vec![plugin("p", bound)],
        ..Environment::default()
    }
}

/// Drafts that cannot cite.
fn plain_text() -> World {
    let mut spec = spec();
    spec.draft.format = DraftFormat::Text;
    spec.release.evidence_repairs = 1;
    world("plain_text", spec, Menu { drafts: every_draft(), ..menu() })
}

/// Everything that an invocation can come back with, and everything a call can be closed with before it.
fn results() -> World {
    let timed = ToolSpec { timeout_ms: Some(100), attempts_max: 2, ..look() };
    let malformed = ToolOutput::Success { content: "seen".to_owned(), facts: vec![Json::Null], commands: Vec::new() };
    let menu = Menu {
        environments: vec![environment(vec![timed, act()], Vec::new())],
        batches: vec![
            batch([("look", r#"{"at":1}"#)]),
            batch([("act", "{}")]),
            batch([("nobody", "{}")]),
            batch([("look", "{")]),
            batch([("look", r#"{"at":"here"}"#)]),
            (vec![request(("look", r#"{"at":"#))], FinishReason::Length),
            batch([("look", r#"{"at":1}"#), ("look", r#"{"at":1}"#)]),
        ],
        outputs: vec![
            Output::Fresh,
            Output::Given(ToolOutput::text("nothing")),
            Output::Given(ToolOutput::error("refused")),
            Output::Given(ToolOutput::text("x".repeat(65))),
            Output::Given(malformed),
        ],
        tool_errors: vec![
            ToolError::UnavailableBeforeDispatch { message: message() },
            ToolError::Execution { message: message() },
            ToolError::Unknown { message: message() },
            ToolError::InvalidArguments { message: message() },
        ],
        ..menu()
    };
    world("results", spec(), menu)
}

/// Parallel and serial calls in one batch, completing in every order.
fn waves() -> World {
    let serial = ToolSpec { concurrency: Concurrency::Serial, ..act() };
    let menu = Menu {
        environments: vec![environment(vec![look(), serial], Vec::new())],
        batches: vec![
            batch([("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#), ("look", r#"{"at":3}"#)]),
            batch([("look", r#"{"at":1}"#), ("act", "{}"), ("look", r#"{"at":2}"#)]),
        ],
        outputs: vec![Output::Fresh, said("seen before", None)],
        tool_errors: vec![ToolError::Execution { message: message() }],
        ..menu()
    };
    world("waves", spec(), menu)
}

/// Facts that are new, old or none, until collecting is saturated, and evidence asked for after that.
fn saturation() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(4);
    spec.collection.saturation_after = Some(1);
    let repeatable = ToolSpec { repeatable: true, ..look() };
    let menu = Menu {
        environments: vec![environment(vec![repeatable, act()], Vec::new())],
        drafts: [GOOD, NO_CONCLUSION, UNCITED, " "].into_iter().map(draft).collect(),
        batches: vec![
            batch([("look", r#"{"at":1}"#)]),
            batch([("act", "{}"), ("look", r#"{"at":2}"#)]),
            batch([("act", "{}")]),
        ],
        outputs: vec![Output::Fresh, said("seen again", Some("key")), Output::Given(ToolOutput::text("nothing"))],
        model_errors: vec![llm::Error::Timeout { message: message() }],
        ..menu()
    };
    world("saturation", spec, menu)
}

/// The budget is used up after the stop was delivered.
fn spent_after_stop() -> World {
    let mut spec = spec();
    spec.collection.saturation_after = Some(1);
    let menu = Menu {
        environments: vec![environment(vec![look(), act()], Vec::new())],
        batches: vec![batch([("look", r#"{"at":1}"#)]), batch([("act", "{}")])],
        outputs: vec![Output::Given(ToolOutput::text("nothing"))],
        ..menu()
    };
    world("spent_after_stop", spec, menu)
}

/// Every ending that may come after saturation, so that IS is seen both ways.
fn saturated_release() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(3);
    spec.collection.saturation_after = Some(1);
    spec.release.judge = JudgePolicy::On;
    let repeatable = ToolSpec { repeatable: true, ..look() };
    let end = ToolSpec { on_indeterminate: OnIndeterminate::End, ..act() };
    let menu = Menu {
        environments: vec![environment(vec![repeatable, end], vec![gate("first", GateOf::Release)])],
        drafts: every_draft(),
        batches: vec![batch([("look", r#"{"at":1}"#), ("look", r#"{"at":2}"#)]), batch([("act", "{}")])],
        outputs: vec![Output::Fresh, said("seen again", None), Output::Given(ToolOutput::text("nothing"))],
        release_gates: vec![GateAnswer::Allow, GateAnswer::Block { reason: None }],
        verdicts: vec![Verdict::Supported, Verdict::Unsupported],
        ..menu()
    };
    world("saturated_release", spec, menu)
}

/// Assessments that are missing, malformed or made.
fn protocol() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(5);
    spec.collection.assessment = Assessment::Required;
    spec.collection.violation_limit = 2;
    let assessed = r#"{"at":2,"previous_observation":{"assessment":"informative"}}"#;
    let menu = Menu {
        environments: vec![environment(vec![look(), act()], Vec::new())],
        batches: vec![
            batch([("look", r#"{"at":1}"#)]),
            batch([("look", assessed), ("look", r#"{"at":3,"previous_observation":{"assessment":"good"}}"#)]),
            batch([("look", assessed)]),
            batch([("act", "{}")]),
        ],
        outputs: vec![Output::Fresh, Output::Given(ToolOutput::text("nothing"))],
        ..menu()
    };
    world("protocol", spec, menu)
}

/// Gates before calls and before the release, with every answer, allowed or not.
fn gates() -> World {
    let answers = || {
        vec![
            GateAnswer::Allow,
            GateAnswer::Block { reason: Some("not this one".to_owned()) },
            GateAnswer::SetResult { content: "set".to_owned() },
            GateAnswer::Confirm { expires_ms: None },
            GateAnswer::Confirm { expires_ms: Some(500) },
        ]
    };
    let mut spec = spec();
    spec.budgets.tool_calls = Some(2);
    let stand = vec![gate("door", GateOf::Tool), gate("first", GateOf::Release), gate("second", GateOf::Release)];
    let menu = Menu {
        environments: vec![environment(vec![look(), act()], stand)],
        batches: vec![batch([("look", r#"{"at":1}"#)]), batch([("look", r#"{"at":1}"#), ("act", "{}")])],
        tool_gates: answers(),
        release_gates: answers(),
        decisions: vec![Decision::Allow, Decision::Deny { note: None }],
        ..menu()
    };
    world("gates", spec, menu)
}

/// People who allow, edit, deny or stay silent, while the deadline stands still.
fn people() -> World {
    let mut spec = spec();
    spec.deadline_pauses_while_awaiting = true;
    spec.budgets.tool_calls = Some(1);
    let confirmed = ToolSpec { confirm: true, confirm_expires_ms: Some(500), ..look() };
    let asked = ToolSpec { confirm: true, ..act() };
    let arguments = |text: &str| Json::parse(text).unwrap_or(Json::Null);
    let menu = Menu {
        environments: vec![environment(vec![confirmed, asked], vec![gate("door", GateOf::Tool)])],
        batches: vec![batch([("look", r#"{"at":1}"#), ("act", "{}")]), batch([("act", "{}")])],
        tool_gates: vec![GateAnswer::Allow],
        decisions: vec![
            Decision::Allow,
            Decision::AllowWith { arguments: arguments(r#"{"at":7}"#) },
            Decision::AllowWith { arguments: arguments(r#"{"at":"here"}"#) },
            Decision::Deny { note: Some("no".to_owned()) },
        ],
        ..menu()
    };
    world("people", spec, menu)
}

/// Every class of model error, one retry, one fallback model.
fn models() -> World {
    let mut spec = spec();
    spec.retry.retries_max = 1;
    spec.fallbacks = vec![ModelSpec::new("other")];
    spec.budgets.total_tokens = Some(40);
    spec.draft.repairs = 1;
    let wait = |retry_after_ms| llm::Error::RateLimited { message: message(), retry_after_ms };
    let menu = Menu {
        drafts: vec![draft(GOOD), draft(" ")],
        model_errors: vec![
            llm::Error::Provider { message: message() },
            wait(None),
            wait(Some(2_000)),
            wait(Some(3_600_000)),
            llm::Error::Overloaded { message: message(), retry_after_ms: None },
            llm::Error::Timeout { message: message() },
            llm::Error::Binding { message: message() },
            llm::Error::ContextOverflow { message: message() },
            llm::Error::InvalidRequest { message: message() },
            llm::Error::Unauthorized { message: message() },
            llm::Error::UsageLimit { message: message(), reset_after_ms: None },
            llm::Error::LoginRequired { message: message() },
            llm::Error::ModelNotFound { message: message() },
            llm::Error::ContentFiltered { message: message() },
        ],
        ..menu()
    };
    world("models", spec, menu)
}

/// Every budget at its edge: calls in all and by tool, tokens, and the last call kept for the answer.
fn budgets() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(3);
    spec.budgets.final_call_reserve = 1;
    spec.budgets.tool_calls = Some(2);
    spec.budgets.tool_calls_by_tool = [("act".to_owned(), 1)].into();
    spec.budgets.total_tokens = Some(45);
    spec.release.judge = JudgePolicy::On;
    let stand = vec![gate("door", GateOf::Tool)];
    let menu = Menu {
        environments: vec![environment(vec![look(), act()], stand)],
        drafts: [GOOD, UNCITED].into_iter().map(draft).collect(),
        batches: vec![
            batch([("look", r#"{"at":1}"#)]),
            batch([("act", "{}"), ("act", "{}")]),
            batch([("act", "{}"), ("look", r#"{"at":2}"#), ("look", r#"{"at":3}"#)]),
        ],
        tool_gates: vec![GateAnswer::Allow, GateAnswer::Block { reason: None }],
        ..menu()
    };
    world("budgets", spec, menu)
}

/// Takeovers in a row, up to the one that uses the crash budget up, with calls of every recovery mode.
fn crashes() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(2);
    spec.release.judge = JudgePolicy::On;
    let tool = |name: &str, recovery| ToolSpec { recovery: Some(recovery), attempts_max: 2, ..ToolSpec::new(name) };
    let observed = ToolSpec { on_indeterminate: OnIndeterminate::Observe, ..tool("note", Recovery::NeverReplay) };
    let tools = vec![
        ToolSpec { attempts_max: 2, ..look() },
        tool("act", Recovery::NeverReplay),
        observed,
        tool("pay", Recovery::Idempotent),
    ];
    let menu = Menu {
        environments: vec![environment(tools, Vec::new())],
        batches: vec![batch([("look", r#"{"at":1}"#), ("act", "{}")]), batch([("note", "{}"), ("pay", "{}")])],
        reconciliations: vec![
            Reconciliation::Applied { output: ToolOutput::text("done") },
            Reconciliation::NotApplied,
            Reconciliation::Unknown,
        ],
        ..menu()
    };
    World { recoveries_max: 7, ..world("crashes", spec, menu) }
}

/// A call whose outcome nobody knows ends the run.
fn ends_when_unknown() -> World {
    let end = ToolSpec { on_indeterminate: OnIndeterminate::End, ..act() };
    let menu = Menu {
        environments: vec![environment(vec![look(), end], Vec::new())],
        batches: vec![batch([("look", r#"{"at":1}"#), ("act", "{}")])],
        ..menu()
    };
    World { recoveries_max: 2, ..world("ends_when_unknown", spec(), menu) }
}

/// The same call again, after one whose effect is not known.
fn held_calls() -> World {
    let mut spec = spec();
    spec.budgets.model_calls = Some(3);
    let timed = ToolSpec { timeout_ms: Some(100), concurrency: Concurrency::Serial, ..act() };
    let menu = Menu {
        environments: vec![environment(vec![timed], Vec::new())],
        batches: vec![batch([("act", "{}")]), batch([("act", "{}"), ("act", "{}")])],
        outputs: vec![Output::Given(ToolOutput::text("done"))],
        tool_errors: vec![ToolError::Execution { message: message() }],
        decisions: vec![Decision::Allow, Decision::Deny { note: None }],
        reconciliations: vec![Reconciliation::NotApplied, Reconciliation::Unknown],
        ..menu()
    };
    world("held_calls", spec, menu)
}

/// A plugin that may do all of this, with these hooks.
fn plugin(id: &str, bound: Bound) -> Capability {
    Capability { plugin: id.to_owned(), bound, tools: Vec::new(), gates: Vec::new(), action_kinds: Vec::new() }
}

fn hook(plugin: &str, point: HookPoint) -> Hook {
    Hook { plugin: plugin.to_owned(), point }
}

fn set(key: &str, scope: StateScope) -> StagedCommand {
    StagedCommand::Set { scope, key: key.to_owned(), value: Json::from(1u32) }
}

fn staging(commands: impl IntoIterator<Item = StagedCommand>) -> HookReply {
    HookReply { commands: commands.into_iter().collect(), context: None }
}

/// One hook at every point, beside gates that block, set, confirm and fail.
fn hooks() -> World {
    let mut spec = spec();
    spec.release.evidence_repairs = 1;
    spec.release.judge = JudgePolicy::On;
    spec.budgets.model_calls = Some(3);
    let bound = Bound { hooks: HookPoint::ALL.to_vec(), ..Bound::default() };
    let environment = Environment {
        tools: vec![look()],
        gates: vec![gate("door", GateOf::Tool), gate("first", GateOf::Release)],
        hooks: HookPoint::ALL.iter().map(|point| hook("p", *point)).collect(),
        plugins: vec!["p".to_owned()],
        capabilities: vec![plugin("p", bound)],
        ..Environment::default()
    };
    let menu = Menu {
        environments: vec![environment],
        drafts: [GOOD, UNCITED, " "].into_iter().map(draft).collect(),
        hooks: vec![
            HookReply::default(),
            HookReply { context: Some("mind the gap".to_owned()), ..HookReply::default() },
        ],
        tool_gates: vec![GateAnswer::Allow, GateAnswer::SetResult { content: "set".to_owned() }],
        release_gates: vec![GateAnswer::Allow, GateAnswer::Block { reason: None }],
        ..menu()
    };
    world("hooks", spec, menu)
}

/// Two plugins and a tool write the same keys: within their bounds, beyond them, and against each other.
fn shared_state() -> World {
    let mut spec = spec();
    spec.limits.state_bytes_max = 64;
    let keys = Allowance::ids(["once", "sum"]);
    let p =
        Bound { hooks: vec![HookPoint::AfterTool, HookPoint::RoundEnd], state_keys: keys.clone(), ..Bound::default() };
    let q = Bound {
        hooks: vec![HookPoint::RoundEnd, HookPoint::BeforeRelease, HookPoint::RunEnd],
        state_keys: Allowance::ids(["once"]),
        tools: Allowance::ids(["act"]),
        ..Bound::default()
    };
    let key = |scope, key: &str, policy| StateKeySpec { scope, key: key.to_owned(), policy };
    let environment = Environment {
        tools: vec![look(), act()],
        hooks: vec![
            hook("p", HookPoint::AfterTool),
            hook("p", HookPoint::RoundEnd),
            hook("q", HookPoint::RoundEnd),
            hook("q", HookPoint::BeforeRelease),
            hook("q", HookPoint::RunEnd),
        ],
        state_keys: vec![
            key(StateScope::Run, "once", MergePolicy::Exclusive),
            key(StateScope::Thread, "once", MergePolicy::Exclusive),
            key(StateScope::Run, "sum", MergePolicy::Commutative),
        ],
        plugins: vec!["p".to_owned(), "q".to_owned()],
        capabilities: vec![plugin("p", p), Capability { tools: vec!["act".to_owned()], ..plugin("q", q) }],
        ..Environment::default()
    };
    let once = || set("once", StateScope::Run);
    let remove = StagedCommand::Remove { scope: StateScope::Run, key: "once".to_owned() };
    let long =
        StagedCommand::Set { scope: StateScope::Run, key: "once".to_owned(), value: Json::String("x".repeat(65)) };
    let menu = Menu {
        environments: vec![environment],
        batches: vec![batch([("look", r#"{"at":1}"#)]), batch([("act", "{}"), ("act", "{}")])],
        outputs: vec![Output::Fresh, Output::Given(ToolOutput::text("done").staging([once()]))],
        hooks: vec![
            HookReply::default(),
            staging([once(), set("once", StateScope::Thread)]),
            staging([remove]),
            staging([set("sum", StateScope::Run)]),
            staging([long]),
        ],
        ..menu()
    };
    world("shared_state", spec, menu)
}

/// Actions: scheduled within the bound and beyond it, performed, failing, and scheduling each other for ever.
fn scheduled_actions() -> World {
    let bound = |hooks| Bound { hooks, action_kinds: Allowance::ids(["tidy"]), ..Bound::default() };
    let performer = Capability { action_kinds: vec!["tidy".to_owned()], ..plugin("q", bound(Vec::new())) };
    let environment = Environment {
        tools: vec![look()],
        hooks: vec![hook("p", HookPoint::RoundStart), hook("r", HookPoint::RoundEnd)],
        action_kinds: vec!["tidy".to_owned()],
        plugins: vec!["q".to_owned(), "p".to_owned(), "r".to_owned()],
        capabilities: vec![
            performer,
            plugin("p", bound(vec![HookPoint::RoundStart])),
            plugin("r", Bound { hooks: vec![HookPoint::RoundEnd], ..Bound::default() }),
        ],
        ..Environment::default()
    };
    let tidy = StagedCommand::Schedule { action: "tidy".to_owned(), payload: Json::Null };
    let menu = Menu { environments: vec![environment], hooks: vec![HookReply::default(), staging([tidy])], ..menu() };
    let mut spec = spec();
    spec.budgets.model_calls = Some(1);
    world("scheduled_actions", spec, menu)
}

/// Facts of an earlier run, before any of its own.
fn earlier_facts() -> World {
    let mut spec = spec();
    let seen = |run: RunId| PriorFact {
        origin: Origin { run, fact: FactId(1) },
        call: ToolCallId { round: 1, index: 0 },
        tool: "look".to_owned(),
        statement: "seen before".to_owned(),
        key: None,
    };
    spec.prior_facts = "earlier".parse().ok().map(seen).into_iter().collect();
    spec.collection.saturation_after = Some(1);
    let environments = vec![environment(vec![look()], Vec::new()), environment(vec![ToolSpec::new("")], Vec::new())];
    let menu =
        Menu { environments, drafts: every_draft(), outputs: vec![Output::Fresh, said("seen before", None)], ..menu() };
    world("earlier_facts", spec, menu)
}

/// A call that makes calls of its own: of a tool behind a gate, of one that is done once, and of a model.
fn nested() -> World {
    let mut spec = spec();
    spec.budgets.tool_calls = Some(2);
    spec.budgets.tool_calls_by_tool = [("act".to_owned(), 1)].into();
    let delegate = ToolSpec { attempts_max: 2, ..look() };
    let door = Gate { tools: vec!["act".to_owned()], ..gate("door", GateOf::Tool) };
    let menu = Menu {
        environments: vec![environment(vec![delegate, act()], vec![door])],
        batches: vec![batch([("look", r#"{"at":1}"#)])],
        tool_errors: vec![ToolError::UnavailableBeforeDispatch { message: message() }],
        tool_gates: vec![GateAnswer::Allow, GateAnswer::Confirm { expires_ms: None }],
        nested: vec![
            NestedAsk::Tool { tool: "act".to_owned(), arguments: Json::Object([].into()) },
            NestedAsk::Tool { tool: "nobody".to_owned(), arguments: Json::Null },
            NestedAsk::Model,
        ],
        nested_max: 2,
        ..menu()
    };
    world("nested", spec, menu)
}

/// Two gates before each call, and before each call that a call makes.
fn two_doors() -> World {
    let menu = Menu {
        environments: vec![environment(vec![look()], vec![gate("door", GateOf::Tool), gate("hatch", GateOf::Tool)])],
        tool_gates: vec![GateAnswer::Allow, GateAnswer::Block { reason: None }],
        nested: vec![NestedAsk::Tool { tool: "look".to_owned(), arguments: Json::Object([].into()) }],
        nested_max: 1,
        ..menu()
    };
    world("two_doors", spec(), menu)
}
