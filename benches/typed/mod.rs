//! A record as plain derived types: what replaying is measured against.

#![allow(dead_code)]

use std::collections::BTreeMap;

use serde::Deserialize;

use portcullis::vocabulary::input::Input;

#[derive(Deserialize)]
pub(crate) struct Record {
    v: u32,
    run: String,
    seq: u64,
    at_ms: u64,
    input: Input,
    signals: Vec<Signal>,
    state: State,
    effects: Vec<Effect>,
    prev: String,
    hash: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Signal {
    EnvironmentFixed { digest: String },
    ResponseAccepted { call: String, calls: u32 },
    BatchOpened { round: u32, calls: u32 },
    CallClosed { call: String, code: Option<String> },
    BatchClosed { round: u32 },
    FactsObserved { call: String, first: String, count: u32, new: u32 },
}

#[derive(Deserialize)]
struct State {
    run: Run,
    inference: Inference,
    batch: Option<Batch>,
    collection: Collection,
    release: Release,
    clock: Clock,
    ledger: Ledger,
    environment: Option<String>,
    model: u32,
    rounds: u32,
    asks: u32,
    facts: Sum,
    scopes: Sum,
    unknown_effects: u64,
    transcript: Tally,
    recoveries: Recoveries,
}

#[derive(Deserialize)]
struct Run {
    state: String,
    phase: Option<String>,
    call: Option<String>,
    round: Option<u32>,
}

#[derive(Deserialize)]
struct Inference {
    state: String,
    call: Option<String>,
    attempt: Option<u32>,
    purpose: Option<String>,
    tools: Option<String>,
    model: Option<u32>,
    retries: Option<u32>,
}

#[derive(Deserialize)]
struct Batch {
    round: u32,
    calls: Vec<Call>,
    announced: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Call {
    call: String,
    phase: String,
    attempt: Option<u32>,
    due_ms: Option<u64>,
    plan: Option<String>,
    closing: Option<String>,
}

#[derive(Deserialize)]
struct Collection {
    state: String,
    barren: u32,
    violations: u32,
    evidence: String,
}

#[derive(Deserialize)]
struct Release {
    state: String,
}

#[derive(Deserialize)]
struct Clock {
    at_ms: u64,
    deadline_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Ledger {
    model_calls: u64,
    model_attempts: u64,
    judge_calls: u64,
    tool_calls: u64,
    tool_calls_by_tool: BTreeMap<String, u64>,
    tool_attempts: u64,
    input_tokens: u64,
    output_tokens: u64,
    usage_unknown: u64,
    cost_micros: u64,
    marked: bool,
}

#[derive(Deserialize)]
struct Sum {
    count: u64,
    digest: String,
}

#[derive(Deserialize)]
struct Tally {
    messages: u64,
    bytes: u64,
    digest: String,
}

#[derive(Deserialize)]
struct Recoveries {
    epoch: u64,
    crashes: u32,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Effect {
    ResolveEnvironment,
    StartTimer { kind: String, of: String, due_ms: u64 },
    CallModel { call: String, attempt: u32, model: String, purpose: String, tools: String, request: String },
    DispatchTools { calls: Vec<String> },
    InvokeTool { call: String, attempt: u32, operation_id: String },
}
