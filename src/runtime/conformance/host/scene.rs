//! What happens in each run.

use crate::runtime::ports::ModelAnswer;
use crate::vocabulary::input::Verdict;
use crate::vocabulary::llm::ToolRequest;
use crate::vocabulary::outcome::ReleaseOutcome;
use crate::vocabulary::spec::Spec;
use crate::vocabulary::wire::words;

words! {
    /// A run that a host serves.
    pub enum Scene {
        /// A first draft cites nothing and is repaired; the second one is judged and released.
        Success = "success",
        /// The judge does not support the draft: the reader gets facts.
        Fallback = "fallback",
        /// The model concludes without having looked: nothing is released.
        Failed = "failed",
        /// Somebody cancels while the model writes.
        Cancelled = "cancelled",
        /// The store refuses the record that ends the run.
        CommitRefused = "commit_refused",
        /// A person is asked, and does not answer.
        Awaiting = "awaiting",
    }
}

/// What the tool observes.
pub(super) const FACT: &str = "orders-db has used 100 of 100 connections";
/// What is concluded, and released in the first scene alone.
pub(super) const CONCLUSION: &str = "the connection pool is used up";
/// What is written and never verified in any scene.
pub(super) const UNVERIFIED: [&str; 3] = ["it was surely the network", "let me have a guess first", "the pool is fine"];

impl Scene {
    /// What the run is asked.
    pub(super) fn spec(self) -> Spec {
        let mut spec = Spec::new(format!("Why is checkout slow? ({self})"), "a-model");
        spec.release.evidence_repairs = u32::from(matches!(self, Self::Success));
        // Virtual time goes on while a person or another session is waited for: a deadline would come first.
        spec.deadline_ms = None;
        spec
    }

    /// What the model answers, call by call; after the last it stays silent.
    pub(super) fn answers(self) -> Vec<ModelAnswer> {
        let [network, guess, fine] = UNVERIFIED;
        let mut looks = calls("look");
        looks.content.text = Some(guess.to_owned());
        let concludes = |statement: &str, cited: &str| {
            ModelAnswer::text(format!(r#"{{"conclusion":{{"statement":"{statement}"}},"citations":[{cited}]}}"#))
        };
        let concluded = concludes(CONCLUSION, r#""f1""#);
        match self {
            Self::Success => vec![looks, concludes(network, ""), concluded],
            Self::CommitRefused => vec![looks, concluded],
            Self::Fallback => vec![looks, concludes(fine, r#""f1""#)],
            Self::Failed => vec![concludes(network, r#""f9""#)],
            Self::Cancelled => vec![looks],
            Self::Awaiting => vec![looks, calls("restart")],
        }
    }

    pub(super) const fn verdict(self) -> Verdict {
        match self {
            Self::Fallback => Verdict::Unsupported,
            Self::Success | Self::Failed | Self::Cancelled | Self::CommitRefused | Self::Awaiting => Verdict::Supported,
        }
    }

    /// What its reader gets; `None` when nothing is released.
    pub(super) const fn outcome(self) -> Option<ReleaseOutcome> {
        match self {
            Self::Success => Some(ReleaseOutcome::Success),
            Self::Fallback => Some(ReleaseOutcome::Fallback),
            Self::Failed => Some(ReleaseOutcome::Failed),
            Self::Cancelled => Some(ReleaseOutcome::Cancelled),
            Self::CommitRefused | Self::Awaiting => None,
        }
    }

    /// What must not be shown.
    pub(super) fn unverified(self) -> Vec<&'static str> {
        let released = matches!(self, Self::Success);
        UNVERIFIED.into_iter().chain((!released).then_some(CONCLUSION)).collect()
    }

    /// What must be shown.
    pub(super) const fn shows(self) -> &'static [&'static str] {
        match self {
            Self::Success => &[CONCLUSION],
            Self::Fallback => &[FACT],
            Self::Failed | Self::Cancelled | Self::CommitRefused | Self::Awaiting => &[],
        }
    }
}

fn calls(tool: &str) -> ModelAnswer {
    let arguments = r#"{"service":"orders-db"}"#.to_owned();
    ModelAnswer::calls([ToolRequest { name: tool.to_owned(), arguments, provider_id: None }])
}
