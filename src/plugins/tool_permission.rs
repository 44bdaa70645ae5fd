//! Which tools may be called: rules by name, the first that matches decides, and what no rule names is blocked.

use std::sync::Arc;

use serde::Deserialize;
use wildmatch::WildMatch;

use super::{read, wrong};
use crate::composition::{PluginConfigError, PluginManifest};
use crate::runtime::plugins::{Contributions, Plugin};
use crate::runtime::ports::{GateAbout, GateFailure, GateQuestion};
use crate::vocabulary::bound::{Allowance, Bound};
use crate::vocabulary::input::GateAnswer;
use crate::vocabulary::json::Json;

const ID: &str = "tool-permission";

/// The form of a configuration.
const CONFIG: &str = r#"{
    "type": "object",
    "additionalProperties": false,
    "properties": {
        "rules": {
            "type": "array",
            "maxItems": 1024,
            "items": {
                "type": "object",
                "additionalProperties": false,
                "required": ["tool", "action"],
                "properties": {
                    "tool": {"type": "string", "pattern": "^[A-Za-z0-9_.*?-]{1,256}$"},
                    "action": {"enum": ["allow", "confirm", "block"]},
                    "reason": {"type": "string", "maxLength": 1024},
                    "expires_ms": {"type": "integer", "minimum": 1}
                }
            }
        },
        "default": {"enum": ["allow", "confirm", "block"]}
    }
}"#;

/// A gate before every tool, `tool-permission`:
///
/// ```json
/// {"rules": [{"tool": "read_*", "action": "allow"},
///            {"tool": "deploy", "action": "confirm", "expires_ms": 600000},
///            {"tool": "rm", "action": "block", "reason": "nothing is removed here"}],
///  "default": "block"}
/// ```
///
/// The first rule whose pattern matches the tool's whole name decides; with none, `default` does, which is
/// `block`. In a pattern `*` stands for any text and `?` for one character. `reason` belongs to `block`: the model
/// reads it. `expires_ms` belongs to `confirm`: how long the question stays open, for ever when it is left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolPermission;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    rules: Vec<Written>,
    #[serde(default = "block")]
    default: Action,
}

/// A rule as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tool: String,
    action: Action,
    reason: Option<String>,
    expires_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Allow,
    Confirm,
    Block,
}

const fn block() -> Action {
    Action::Block
}

/// The rules, and what becomes of a tool that none of them names.
struct Permissions {
    rules: Vec<(WildMatch, GateAnswer)>,
    default: GateAnswer,
}

impl Permissions {
    fn new(config: Config) -> Result<Self, PluginConfigError> {
        let rule = |(index, rule): (usize, Written)| {
            let pattern = WildMatch::new(&rule.tool);
            rule.answer().map(|answer| (pattern, answer)).map_err(|reason| wrong(ID, "rules", index, reason))
        };
        let rules = config.rules.into_iter().enumerate().map(rule).collect::<Result<_, _>>()?;
        let default = answer(config.default, Some("no rule allows this tool".to_owned()), None);
        Ok(Self { rules, default })
    }

    fn of(&self, tool: &str) -> GateAnswer {
        let first = self.rules.iter().find(|(pattern, _)| pattern.matches(tool));
        first.map_or(&self.default, |(_, answer)| answer).clone()
    }
}

impl Written {
    /// What the rule answers. A field that its action would not heed is refused: whoever wrote it relies on it.
    fn answer(self) -> Result<GateAnswer, &'static str> {
        if self.reason.is_some() && self.action != Action::Block {
            return Err("`reason` is what a blocked call is told: leave it out here");
        }
        if self.expires_ms.is_some() && self.action != Action::Confirm {
            return Err("`expires_ms` is how long a confirmation waits: leave it out here");
        }
        Ok(answer(self.action, self.reason, self.expires_ms))
    }
}

fn answer(action: Action, reason: Option<String>, expires_ms: Option<u64>) -> GateAnswer {
    match action {
        Action::Allow => GateAnswer::Allow,
        Action::Confirm => GateAnswer::Confirm { expires_ms },
        Action::Block => GateAnswer::Block { reason },
    }
}

impl Plugin for ToolPermission {
    fn manifest(&self) -> PluginManifest {
        let bound = Bound { tool_gates: Allowance::ids([ID]), ..Bound::default() };
        PluginManifest { config: Json::parse(CONFIG).ok(), ..PluginManifest::new(ID, bound) }
    }

    fn activate(&self, config: &Json) -> Result<Contributions, PluginConfigError> {
        let permissions = Arc::new(Permissions::new(read(ID, config)?)?);
        let every_tool: [String; 0] = [];
        Ok(Contributions::new().tool_gate(ID, every_tool, move |question: GateQuestion| {
            let permissions = Arc::clone(&permissions);
            async move {
                match &question.about {
                    GateAbout::Tool { plan, .. } | GateAbout::Nested { plan, .. } => {
                        Ok(permissions.of(&plan.tool.name))
                    }
                    GateAbout::Release { .. } => Err(GateFailure("it stands before tools alone".to_owned())),
                }
            }
        }))
    }
}
