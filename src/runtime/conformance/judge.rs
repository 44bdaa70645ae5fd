//! What every judge must do (SPEC 11).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::model::{errors, told};
use super::upstream::Act;
use super::{Breach, Checked, Turn, Wrong, each, same, within};
use crate::machines::release::Citation;
use crate::runtime::ports::{Judge, JudgeQuestion, Judgement};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fact::Fact;
use crate::vocabulary::ids::{FactId, JudgeCallId, RunId, ToolCallId};
use crate::vocabulary::input::Verdict;
use crate::vocabulary::llm::{self, Usage};
use crate::vocabulary::wire::words;

/// A judge's other side.
pub type Upstream = super::Upstream<Judgement, llm::Error>;

words! {
    /// A rule that a judge must keep.
    pub enum Rule {
        /// One question is one request, whatever comes of it.
        OneRequest = "one_request",
        /// Task, conclusion, cited facts and quotes reach whoever judges.
        WholeRequest = "whole_request",
        /// A verdict comes as it was given, `unknown` too, with what it used.
        ExactVerdict = "exact_verdict",
        /// A failure, or a connection that breaks, is never a verdict.
        NeverAVerdict = "never_a_verdict",
        /// Neither is silence.
        SilenceIsNoVerdict = "silence_is_no_verdict",
        /// A question that is dropped is given up upstream.
        GivenUp = "given_up",
        /// Questions side by side get each their own verdict.
        SideBySide = "side_by_side",
    }
}

/// Checks a judge against every rule. `open` connects a judge to an upstream.
///
/// # Errors
/// Every rule that is broken, with what happened.
pub async fn judge<J: Judge>(open: impl AsyncFn(Upstream) -> J) -> Result<(), Vec<Breach<Rule>>> {
    let ground = &Ground { open };
    each(Rule::ALL, async |rule| match rule {
        Rule::OneRequest => ground.one_request().await,
        Rule::WholeRequest => ground.whole_request().await,
        Rule::ExactVerdict => ground.exact_verdict().await,
        Rule::NeverAVerdict => ground.never_a_verdict().await,
        Rule::SilenceIsNoVerdict => ground.silence_is_no_verdict().await,
        Rule::GivenUp => ground.given_up().await,
        Rule::SideBySide => ground.side_by_side().await,
    })
    .await
}

struct Ground<F> {
    open: F,
}

type Judged = Result<Judgement, llm::Error>;

impl<J: Judge, F: AsyncFn(Upstream) -> J> Ground<F> {
    async fn opened(&self) -> Result<(Upstream, J), Wrong> {
        let upstream = Upstream::new();
        let judge = within("opening the judge", (self.open)(upstream.clone())).await?;
        Ok((upstream, judge))
    }

    /// One question that is met like this; `None` when the upstream has no words for it.
    async fn asked(&self, turn: Turn<Judgement, llm::Error>) -> Result<Option<(Judged, usize)>, Wrong> {
        let (upstream, judge) = self.opened().await?;
        upstream.plan("marker-alone", Act::Now(turn));
        let judged = within("a question", judge.judge(question("marker-alone")?)).await?;
        let seen = upstream.seen("marker-alone");
        Ok((!seen.excused).then_some((judged, seen.requests.len())))
    }

    async fn one_request(&self) -> Checked {
        for turn in errors().into_iter().map(Turn::Fail).chain([Turn::Break, Turn::Answer(judgement(Verdict::Unknown))])
        {
            let what = told(&turn);
            if let Some((_, requests)) = self.asked(turn).await? {
                same(&format!("requests for one question whose upstream {what}"), requests, 1)?;
            }
        }
        Ok(())
    }

    async fn whole_request(&self) -> Checked {
        let (upstream, judge) = self.opened().await?;
        upstream.plan("marker-whole", Act::Now(Turn::Answer(judgement(Verdict::Supported))));
        let _verdict = within("a question", judge.judge(question("marker-whole")?)).await?;
        let seen = upstream.seen("marker-whole");
        let request = seen.requests.first().ok_or_else(|| Wrong("no request has the conclusion in it".to_owned()))?;
        for part in ["marker-task", "marker-fact", "marker-quote"] {
            same(&format!("whether the request holds {part}"), request.contains(part), true)?;
        }
        Ok(())
    }

    async fn exact_verdict(&self) -> Checked {
        for verdict in Verdict::ALL {
            let given = judgement(*verdict);
            let Some((judged, _)) = self.asked(Turn::Answer(given)).await? else { continue };
            same("the judgement", judged, Ok(given))?;
        }
        Ok(())
    }

    async fn never_a_verdict(&self) -> Checked {
        for turn in errors().into_iter().map(Turn::Fail).chain([Turn::Break]) {
            let what = told(&turn);
            if let Some((Ok(judgement), _)) = self.asked(turn).await? {
                return Err(Wrong(format!("an upstream that {what} became {judgement:?}")));
            }
        }
        Ok(())
    }

    async fn silence_is_no_verdict(&self) -> Checked {
        let (upstream, judge) = self.opened().await?;
        upstream.plan("marker-silent", Act::Stall);
        // Whether it waits on or says that it waited too long: both hold back.
        match tokio::time::timeout(super::PATIENCE, judge.judge(question("marker-silent")?)).await {
            Ok(Ok(judgement)) => Err(Wrong(format!("nobody answered, and that became {judgement:?}"))),
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    async fn given_up(&self) -> Checked {
        let (upstream, judge) = self.opened().await?;
        upstream.plan("marker-stalled", Act::Stall);
        tokio::select! {
            judged = judge.judge(question("marker-stalled")?) => {
                return Err(Wrong(format!("a question that nobody answered became {judged:?}")));
            }
            heard = upstream.heard("marker-stalled") => heard?,
        }
        upstream.given_up("marker-stalled").await
    }

    async fn side_by_side(&self) -> Checked {
        let (upstream, judge) = self.opened().await?;
        let markers: Vec<String> = (0..4).map(|number| format!("marker-{number}-of-several")).collect();
        for ((marker, verdict), delay) in markers.iter().zip(Verdict::ALL).zip([20, 1, 10, 5]) {
            upstream.plan(marker, Act::After(Duration::from_millis(delay), Turn::Answer(judgement(*verdict))));
        }
        let questions = markers.iter().map(|marker| question(marker)).collect::<Result<Vec<_>, _>>()?;
        let judged = join_all(questions.into_iter().map(|question| judge.judge(question)));
        for (judged, verdict) in within("questions side by side", judged).await?.into_iter().zip(Verdict::ALL) {
            same("one of several verdicts", judged.map(|judgement| judgement.verdict), Ok(*verdict))?;
        }
        Ok(())
    }
}

/// A question whose conclusion is the marker.
fn question(marker: &str) -> Result<JudgeQuestion, Wrong> {
    let run: RunId = "conformance".parse().map_err(|malformed| Wrong(format!("{malformed}")))?;
    let fact = Fact {
        id: FactId(1),
        call: ToolCallId { round: 1, index: 0 },
        tool: "look".into(),
        statement: "marker-fact and marker-quote".to_owned(),
        origin: None,
        key: None,
    };
    Ok(JudgeQuestion {
        run,
        call: JudgeCallId(1),
        attempt: 1,
        draft: Digest::of("portcullis.conformance", &[marker.as_bytes()]),
        task: "marker-task".to_owned(),
        statement: marker.to_owned(),
        data: None,
        citations: vec![Citation { fact: Arc::new(fact), quote: Some("marker-quote".to_owned()) }],
    })
}

const fn judgement(verdict: Verdict) -> Judgement {
    Judgement { verdict, usage: Some(Usage { input_tokens: Some(20), output_tokens: Some(1) }) }
}
