//! Reports by themselves, as they come over the wire: well formed ones, whether they fit anything or not, and
//! hostile ones.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;

use super::specs::{environment, spec};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fact::Statement;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::ids::{Ask, JudgeCallId, ModelCallId, NestedCallId, RunId, Ticket, ToolCallId};
use crate::vocabulary::input::{
    CancelOrigin, Decision, GateAnswer, Input, LiveTool, NestedKind, Parent, Reconciliation, Verdict,
};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, Content, FinishReason, ToolRequest, Usage};
use crate::vocabulary::tool::{Recovery, ToolError, ToolOutput};

/// Any report, of every type.
pub fn input() -> impl Strategy<Value = Input> {
    prop_oneof![of_models(), of_tools(), of_plugins(), of_people(), of_runs()]
}

/// Any report as text.
pub fn wire() -> impl Strategy<Value = String> {
    input().prop_map(|input| written(&input))
}

/// Text that is almost a report, and must be refused by whoever reads it: cut, followed by more, with a member
/// too many, twice the same member, another type or none.
pub fn hostile_wire() -> impl Strategy<Value = String> {
    (input(), 0..7u8, any::<u16>()).prop_map(|(input, fault, at)| {
        let (text, tag) = (written(&input), input.tag());
        let inside = text.strip_prefix('{').unwrap_or_default();
        match fault {
            0 => text.chars().take(usize::from(at) % text.chars().count().max(1)).collect(),
            1 => format!("{text}{{}}"),
            2 => format!("{{\"surprise\":0,{inside}"),
            3 => format!("{{\"type\":\"{tag}\",{inside}"),
            4 => text.replacen(tag, "no_such_report", 1),
            5 => text.replacen("\"type\"", "\"typ\"", 1),
            _ => format!("[{text}]"),
        }
    })
}

fn written(input: &Input) -> String {
    // Every report can be written.
    serde_json::to_string(input).unwrap_or_default()
}

fn of_runs() -> BoxedStrategy<Input> {
    let run = select(vec!["a", "run-1", "R.2_x"]).prop_filter_map("a run id", |id| id.parse::<RunId>().ok());
    let parent = (run.clone(), any::<u16>()).prop_map(|(run, seq)| {
        let head = Digest::of("strategies", &[run.as_str().as_bytes()]);
        Parent { run, seq: u64::from(seq), head }
    });
    let started = (run, spec(), "[a-z]{1,8}", of(parent));
    let started = started.prop_map(|(run_id, spec, nonce, forked_from)| {
        let wall_time = "2026-01-01T00:00:00Z".to_owned();
        Input::RunStarted { run_id, spec: Box::new(spec), nonce, wall_time, forked_from }
    });
    let displaced = of_tools().prop_map(Box::new);
    let live = prop_oneof![Just(Recovery::NeverReplay), Just(Recovery::Idempotent), Just(Recovery::ReplaySafe)]
        .prop_map(|recovery| LiveTool { name: "look".to_owned(), recovery });
    prop_oneof![
        started,
        environment().prop_map(|found| Input::EnvironmentResolved { environment: Box::new(found) }),
        text().prop_map(|message| Input::ResolutionFailed { error: ResolutionError::Routing { message } }),
        of(displaced).prop_map(|displaced| Input::DeadlineElapsed { displaced }),
        text().prop_map(|origin| Input::ExecutionCrashed { origin }),
        (1..9u64, vec(live, 0..3)).prop_map(|(epoch, tools)| Input::RunRecovered { epoch, tools }),
        (0..9u64, 1..99u64).prop_map(|(ordinal, bytes)| {
            let digest = Digest::of("a tail", &[&ordinal.to_be_bytes()]);
            Input::TailRepaired { ordinal, bytes, digest }
        }),
        text().prop_map(|receipt| Input::ReleaseDelivered { receipt }),
    ]
    .boxed()
}

fn of_models() -> BoxedStrategy<Input> {
    let call = || (1..4u32).prop_map(ModelCallId);
    let judge = || (1..3u32).prop_map(JudgeCallId);
    let attempt = || 1..4u32;
    let usage = || (of(0..500u64), of(0..500u64));
    let usage = || usage().prop_map(|(input_tokens, output_tokens)| Usage { input_tokens, output_tokens });
    let finish = select(FinishReason::ALL);
    let draft = || text().prop_map(|text| Digest::of("a draft", &[text.as_bytes()]));
    prop_oneof![
        (call(), attempt(), content(), finish, usage()).prop_map(|(call, attempt, content, finish, usage)| {
            Input::ModelResponded { call, attempt, content, finish, usage }
        }),
        (call(), attempt(), error(), of(usage()))
            .prop_map(|(call, attempt, error, usage)| { Input::ModelFailed { call, attempt, error, usage } }),
        (call(), attempt()).prop_map(|(call, attempt)| Input::BackoffElapsed { call, attempt }),
        (judge(), attempt(), draft(), select(Verdict::ALL), of(usage())).prop_map(
            |(call, attempt, draft, verdict, usage)| Input::SemanticsJudged { call, attempt, draft, verdict, usage }
        ),
        (judge(), attempt(), draft(), error())
            .prop_map(|(call, attempt, draft, error)| { Input::SemanticsFailed { call, attempt, draft, error } }),
    ]
    .boxed()
}

fn of_tools() -> BoxedStrategy<Input> {
    let attempt = || 1..4u32;
    let failure = prop_oneof![
        text().prop_map(|message| ToolError::Execution { message }),
        text().prop_map(|message| ToolError::UnavailableBeforeDispatch { message }),
        text().prop_map(|message| ToolError::Unknown { message }),
        text().prop_map(|message| ToolError::InvalidArguments { message }),
    ];
    let nested = || (tool_call(), 0..3u32).prop_map(|(parent, index)| NestedCallId { parent, index });
    prop_oneof![
        vec(tool_call(), 1..4).prop_map(|calls| Input::ToolsDispatched { calls }),
        (tool_call(), attempt(), output()).prop_map(|(call, attempt, output)| Input::ToolCompleted {
            call,
            attempt,
            output
        }),
        (tool_call(), attempt(), failure).prop_map(|(call, attempt, error)| Input::ToolFailed { call, attempt, error }),
        (tool_call(), attempt()).prop_map(|(call, attempt)| Input::ToolTimedOut { call, attempt }),
        (nested(), attempt(), any::<bool>()).prop_map(|(nested, attempt, model)| {
            let kind = if model { NestedKind::Model } else { NestedKind::Tool };
            let (tool, arguments) = if model { (None, None) } else { (Some("look".to_owned()), Some(Json::Null)) };
            Input::NestedCallRequested { parent: nested.parent, attempt, nested, kind, tool, arguments }
        }),
        nested().prop_map(|nested| Input::NestedCompleted { nested, usage: None }),
    ]
    .boxed()
}

fn of_plugins() -> BoxedStrategy<Input> {
    let ask = || (0..5u32).prop_map(Ask);
    let answer = prop_oneof![
        Just(GateAnswer::Allow),
        of(text()).prop_map(|reason| GateAnswer::Block { reason }),
        text().prop_map(|content| GateAnswer::SetResult { content }),
        of(0..99u64).prop_map(|expires_ms| GateAnswer::Confirm { expires_ms }),
    ];
    prop_oneof![
        (ask(), answer).prop_map(|(ask, answer)| Input::GateAnswered { ask, answer }),
        ask().prop_map(|ask| Input::GateFailed { ask }),
        (ask(), of(text())).prop_map(|(ask, context)| Input::HookAnswered { ask, commands: Vec::new(), context }),
        ask().prop_map(|ask| Input::HookFailed { ask }),
    ]
    .boxed()
}

fn of_people() -> BoxedStrategy<Input> {
    let ticket = || "t[1-3]\\.[0-2]-[0-9a-f]{8}".prop_map(Ticket);
    let decision = prop_oneof![
        Just(Decision::Allow),
        text().prop_map(|text| Decision::AllowWith { arguments: Json::String(text) }),
        of(text()).prop_map(|note| Decision::Deny { note }),
    ];
    let outcome = prop_oneof![
        output().prop_map(|output| Reconciliation::Applied { output }),
        Just(Reconciliation::NotApplied),
        Just(Reconciliation::Unknown),
    ];
    prop_oneof![
        (ticket(), text(), decision).prop_map(|(ticket, by, decision)| Input::DecisionGiven { ticket, by, decision }),
        ticket().prop_map(|ticket| Input::TicketExpired { ticket }),
        (tool_call(), text(), outcome).prop_map(|(call, by, outcome)| Input::ToolReconciled { call, by, outcome }),
        (text(), select(CancelOrigin::ALL)).prop_map(|(by, origin)| Input::CancelRequested { by, origin }),
    ]
    .boxed()
}

fn content() -> impl Strategy<Value = Content> {
    let request = (select(vec!["look", "act", "nobody"]), text(), of("call_[0-9]"))
        .prop_map(|(name, arguments, provider_id)| ToolRequest { name: name.to_owned(), arguments, provider_id });
    (of(text()), vec(request, 0..3)).prop_map(|(text, calls)| Content { text, calls, opaque: None })
}

fn error() -> impl Strategy<Value = llm::Error> {
    prop_oneof![
        text().prop_map(|message| llm::Error::Timeout { message }),
        (text(), of(0..99_000u64))
            .prop_map(|(message, retry_after_ms)| llm::Error::RateLimited { message, retry_after_ms }),
        (text(), of(0..99_000u64))
            .prop_map(|(message, reset_after_ms)| llm::Error::UsageLimit { message, reset_after_ms }),
        text().prop_map(|message| llm::Error::ContextOverflow { message }),
    ]
}

fn output() -> impl Strategy<Value = ToolOutput> {
    prop_oneof![
        text().prop_map(ToolOutput::text),
        text().prop_map(ToolOutput::error),
        (text(), vec(text(), 0..3))
            .prop_map(|(content, facts)| ToolOutput::facts(content, facts.into_iter().map(Statement::new))),
    ]
}

fn tool_call() -> impl Strategy<Value = ToolCallId> {
    (1..4u32, 0..4u32).prop_map(|(round, index)| ToolCallId { round, index })
}

/// Text as models, tools and people write it: quotes, line ends, control characters, other scripts.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,12}", "\\PC{0,12}", Just("\"}\n\u{202e}\u{0}\u{e9}".to_owned())]
}
