//! Tools and where they come from (SPEC 7).

use std::collections::BTreeMap;

use super::model::SecretRef;
use crate::vocabulary::json::{Json, Pointer};
use crate::vocabulary::tool::{Concurrency, OnIndeterminate, Recovery};
use crate::vocabulary::wire::{object, tagged};

object! {
    /// One tool: what it takes, what it gives and how it may be treated.
    pub struct ToolSpec {
        /// The name the model calls: 1 to 128 of `[A-Za-z0-9_.-]`.
        pub name: String,
        /// What the model is told of it. Default: none.
        #[serde(default)]
        pub description: String,
        /// The JSON Schema (2020-12) of its arguments. Default: any object.
        #[serde(default = "any_object")]
        pub parameters: Json,
        /// Whether its successful results are evidence: only such a tool gives facts. Default: no.
        #[serde(default)]
        pub evidence: bool,
        /// Pointers into the arguments that say what it looks at. Default: all arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub scope: Vec<Pointer>,
        /// How a result becomes facts. Default: as the executor reports them.
        #[serde(default = "reported")]
        pub projection: Projection,
        /// Whether the same scope may be asked again (polling). Default: no.
        #[serde(default)]
        pub repeatable: bool,
        /// Whether a person confirms each call. Default: no.
        #[serde(default)]
        pub confirm: bool,
        /// When an open confirmation expires, in milliseconds. Default: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub confirm_expires_ms: Option<u64>,
        /// Whether it runs beside others. Default: `parallel`.
        #[serde(default = "parallel")]
        pub concurrency: Concurrency,
        /// The largest result, in bytes: 0 to `limits.line_bytes_max`. Default: 262,144.
        #[serde(default = "result_bytes_max")]
        pub result_bytes_max: u64,
        /// When a call times out, in milliseconds; `null` for never. Default: 60,000.
        #[serde(default = "timeout_ms")]
        pub timeout_ms: Option<u64>,
        /// What may be done with a call whose end was lost. Default: `replay_safe` for evidence tools, which only
        /// look, else `never_replay`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub recovery: Option<Recovery>,
        /// How often one call may be tried: 1 to 100. Default: 3.
        #[serde(default = "attempts_max")]
        pub attempts_max: u32,
        /// What an indeterminate call does. Default: `await`.
        #[serde(default = "awaiting")]
        pub on_indeterminate: OnIndeterminate,
    }
}

impl ToolSpec {
    /// A tool with nothing but its name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            parameters: any_object(),
            evidence: false,
            scope: Vec::new(),
            projection: Projection::Reported,
            repeatable: false,
            confirm: false,
            confirm_expires_ms: None,
            concurrency: Concurrency::Parallel,
            result_bytes_max: result_bytes_max(),
            timeout_ms: timeout_ms(),
            recovery: None,
            attempts_max: attempts_max(),
            on_indeterminate: OnIndeterminate::Await,
        }
    }

    /// A tool whose successful results are evidence.
    #[must_use]
    pub fn evidence(name: impl Into<String>) -> Self {
        Self { evidence: true, ..Self::new(name) }
    }

    /// The recovery mode in force.
    #[must_use]
    pub fn recovery_mode(&self) -> Recovery {
        self.recovery.unwrap_or(if self.evidence { Recovery::ReplaySafe } else { Recovery::NeverReplay })
    }
}

fn any_object() -> Json {
    Json::Object([("type".to_owned(), Json::from("object"))].into())
}

const fn reported() -> Projection {
    Projection::Reported
}

const fn parallel() -> Concurrency {
    Concurrency::Parallel
}

const fn result_bytes_max() -> u64 {
    262_144
}

#[allow(clippy::unnecessary_wraps)]
const fn timeout_ms() -> Option<u64> {
    Some(60_000)
}

const fn attempts_max() -> u32 {
    3
}

const fn awaiting() -> OnIndeterminate {
    OnIndeterminate::Await
}

tagged! {
    /// How a successful result of an evidence tool becomes facts.
    pub enum Projection {
        /// The executor reports them beside the content.
        Reported = "reported",
        /// The whole content is one fact.
        Text = "text",
        /// Each line that is not blank is one fact.
        Lines = "lines",
        /// The content is JSON; what each pointer finds is one fact.
        Pointers = "pointers" {
            /// Where the facts stand.
            pointers: Vec<Pointer>,
            /// Where the key of them all stands.
            #[serde(skip_serializing_if = "Option::is_none")]
            fact_key: Option<Pointer>,
        },
    }
}

object! {
    /// A server whose tools join at resolution. Replaying never contacts it.
    pub struct ToolSource {
        /// The namespace of its tools: the tool `read` of the source `files` is `files__read`.
        pub name: String,
        /// How it is reached.
        pub transport: Transport,
        /// The tools that join, by the server's own names. Default: all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub only: Option<Vec<String>>,
        /// Settings of single tools, by name, over what the server says.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub tools: BTreeMap<String, Json>,
        /// Whether its read-only and idempotent hints are believed. Default: no.
        #[serde(default)]
        pub trust_hints: bool,
    }
}

impl ToolSource {
    /// What stands between a source's name and its tool's.
    pub const SEPARATOR: &str = "__";

    /// The name that a run knows a tool of this source by.
    #[must_use]
    pub fn tool_name(&self, name: &str) -> String {
        format!("{}{}{name}", self.name, Self::SEPARATOR)
    }

    /// Whether a tool of a run is one of this source's.
    #[must_use]
    pub fn owns(&self, tool: &str) -> bool {
        tool.strip_prefix(self.name.as_str()).is_some_and(|rest| rest.starts_with(Self::SEPARATOR))
    }
}

tagged! {
    /// How a tool server is reached.
    pub enum Transport {
        /// A process that speaks over its standard streams.
        Stdio = "stdio" {
            /// The program.
            command: String,
            /// Its arguments.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            args: Vec<String>,
            /// Its environment beyond the inherited minimum, by reference.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            env: BTreeMap<String, SecretRef>,
        },
        /// An HTTP endpoint.
        Http = "http" {
            /// Its address.
            url: String,
            /// Headers, by reference.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            headers: BTreeMap<String, SecretRef>,
        },
    }
}
