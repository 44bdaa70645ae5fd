//! The formats that are read, and how one is told from the others: by its shape, never by its name.

use super::lines::lines;
use super::outline::Outline;
use super::{atif, chat, claude_code, openhands, otlp, react, swe_agent, temporal};
use crate::vocabulary::wire::words;

words! {
    /// A format of recorded runs.
    pub enum Format {
        /// Lists of chat-completions messages, in several wrappings.
        ChatCompletions = "chat-completions",
        /// OpenTelemetry traces in OTLP JSON, with GenAI spans.
        Otlp = "otlp",
        /// The Agent Trajectory Interchange Format.
        Atif = "atif",
        /// Histories of Temporal workflows.
        Temporal = "temporal",
        /// Event lists of OpenHands.
        OpenHands = "openhands",
        /// Trajectories of SWE-agent.
        SweAgent = "swe-agent",
        /// Sessions of Claude Code.
        ClaudeCode = "claude-code",
        /// Texts of thoughts, actions and observations.
        React = "react",
    }
}

impl Format {
    /// What a document of the format looks like, in a few characters.
    #[must_use]
    pub const fn sketch(self) -> &'static str {
        match self {
            Self::ChatCompletions => {
                r#"a list `[{"role":..},..]`, bare or under "messages", "traj" or "answer_generation", or one a line"#
            }
            Self::Otlp => r#"`{"resourceSpans":[..]}`, or one a line"#,
            Self::Atif => r#"`{"schema_version":"ATIF-..","steps":[{"source":..},..]}`"#,
            Self::Temporal => r#"`{"events":[{"eventId":..,"eventType":..},..]}`"#,
            Self::OpenHands => r#"`[{"source":..,"action":..},..]`, or `{"history":[..]}` a line"#,
            Self::SweAgent => r#"`{"history":[{"role":..},..],"trajectory":[..],"info":{..}}`"#,
            Self::ClaudeCode => r#"`{"type":"user","sessionId":..,"message":{..}}` a line"#,
            Self::React => "`Question: ..`, then lines `Thought 1: ..`, `Action 1: Name[..]`, `Observation 1: ..`",
        }
    }

    /// What its entries are called, by which notes say a place. Lines are counted from 1, a Temporal event
    /// has its own id, an ATIF step its place from 1; everything else is counted from 0.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ChatCompletions | Self::SweAgent => "message",
            Self::Otlp => "span",
            Self::Atif => "step",
            Self::Temporal | Self::OpenHands => "event",
            Self::ClaudeCode | Self::React => "line",
        }
    }

    /// Tools of the format whose call, last in a turn and without a result, is the turn's answer.
    pub(super) const fn terminal_tools(self) -> &'static [&'static str] {
        match self {
            // How pydantic-ai's models hand over a structured answer.
            Self::Otlp => &["final_result"],
            Self::ChatCompletions
            | Self::Atif
            | Self::Temporal
            | Self::OpenHands
            | Self::SweAgent
            | Self::ClaudeCode
            | Self::React => &[],
        }
    }

    fn of(outline: &Outline<'_>) -> Option<Self> {
        match outline {
            // A scenario says so, whatever else it may hold.
            outline if outline.get("spec").is_some() => None,
            outline if otlp::is(outline) => Some(Self::Otlp),
            outline if temporal::is(outline) => Some(Self::Temporal),
            outline if atif::is(outline) => Some(Self::Atif),
            outline if swe_agent::is(outline) => Some(Self::SweAgent),
            outline if openhands::is(outline) => Some(Self::OpenHands),
            outline if claude_code::is(outline) => Some(Self::ClaudeCode),
            outline if chat::is(outline) => Some(Self::ChatCompletions),
            Outline::Object(_) | Outline::List(_) | Outline::Other => None,
        }
    }
}

/// How many lines are looked at where the first is not telling.
const LINES_LOOKED_AT: usize = 16;

/// Tells the format of a document. `None` for what none of them is, a scenario or a history among it.
///
/// What it looks at is the outside of the first value; where that does not tell, it may be a damaged or
/// foreign line of a file of lines, and the next ones are asked.
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<Format> {
    let document = std::str::from_utf8(bytes).ok()?;
    let first = Outline::of(document);
    if first.get("spec").is_some() {
        return None;
    }
    if let Some(format) = Format::of(&first) {
        return Some(format);
    }
    if react::is(document) {
        return Some(Format::React);
    }
    let later = lines(document).take(LINES_LOOKED_AT).skip(1);
    later.filter(|line| line.text.starts_with(['{', '['])).find_map(|line| {
        let format = Format::of(&Outline::of(line.text))?;
        format.is_read_by_line().then_some(format)
    })
}

impl Format {
    /// Whether a document may hold one value a line.
    const fn is_read_by_line(self) -> bool {
        match self {
            Self::ChatCompletions | Self::Otlp | Self::OpenHands | Self::ClaudeCode => true,
            Self::Atif | Self::Temporal | Self::SweAgent | Self::React => false,
        }
    }
}
