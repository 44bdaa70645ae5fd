//! The semantic judge's port.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::machines::release::Citation;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::{JudgeCallId, RunId};
use crate::vocabulary::input::Verdict;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::{self, Usage};

/// Judges whether facts carry a conclusion. A failure is never a pass (SPEC 11).
pub trait Judge: Send + Sync + 'static {
    /// Judges one draft.
    fn judge(&self, question: JudgeQuestion) -> impl Future<Output = Result<Judgement, llm::Error>> + Send;
}

/// What is to be judged. Privileged: it is not released yet.
#[derive(Debug, Clone)]
pub struct JudgeQuestion {
    /// The run.
    pub run: RunId,
    /// The question.
    pub call: JudgeCallId,
    /// Which attempt, from 1: a later one follows a crash.
    pub attempt: u32,
    /// Of the draft.
    pub draft: Digest,
    /// What the run was asked.
    pub task: String,
    /// What it concludes.
    pub statement: String,
    /// What it says beside the conclusion.
    pub data: Option<Json>,
    /// The facts that it cites, with the words it quotes.
    pub citations: Vec<Citation>,
}

/// A verdict and what it cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What was used.
    pub usage: Option<Usage>,
}

/// Any judge, whatever its futures are.
pub(crate) trait AnyJudge: Send + Sync {
    fn judge(self: Arc<Self>, question: JudgeQuestion) -> BoxFuture<'static, Result<Judgement, llm::Error>>;
}

impl<J: Judge> AnyJudge for J {
    fn judge(self: Arc<Self>, question: JudgeQuestion) -> BoxFuture<'static, Result<Judgement, llm::Error>> {
        Box::pin(async move { Judge::judge(&*self, question).await })
    }
}
