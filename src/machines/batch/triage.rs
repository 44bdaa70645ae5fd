//! Triage of a response's calls: in model order, all before any dispatch (SPEC 7.1 to 7.7).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::closing::Remark;
use super::{Plan, Unknowns};
use crate::machines::ledger::{Admission, Ledger};
use crate::machines::toolbox::{ASSESSMENT_FIELD, Tool, Toolbox};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::effect::ToolOffer;
use crate::vocabulary::json::{Json, JsonErrorKind};
use crate::vocabulary::llm::{FinishReason, ToolRequest};
use crate::vocabulary::spec::{Assessment, Spec};
use crate::vocabulary::tool::{ObservationCode, Recovery};

/// What triage knows of the run.
pub(crate) struct Triage<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) finish: FinishReason,
    pub(crate) tools: ToolOffer,
    /// Saturated, and the model was told (SPEC 7.2).
    pub(crate) stop_delivered: bool,
    /// Evidence calls must assess what came before (SPEC 7.4).
    pub(crate) assessment_due: bool,
    /// Scopes that were answered successfully.
    pub(crate) scopes: &'a BTreeSet<Digest>,
}

/// What triage says to one call.
#[derive(Debug)]
pub(crate) struct TriagedCall {
    pub(crate) plan: Option<Arc<Plan>>,
    pub(crate) verdict: Verdict,
}

/// The verdict on one call.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Evidence after the stop: the loop ends.
    CollectionStopped,
    /// It is closed with this code.
    Closed(ObservationCode, Remark),
    /// It may go on to the gates.
    Admitted,
}

impl Triage<'_> {
    /// Rules 1 to 4: what the calls themselves say. Nothing is reserved yet, since one of them may end the
    /// loop, and then none is charged.
    pub(crate) fn read(&self, requests: &[ToolRequest]) -> Vec<TriagedCall> {
        requests.iter().map(|request| self.read_one(request)).collect()
    }

    fn read_one(&self, request: &ToolRequest) -> TriagedCall {
        let closed = |code, remark| TriagedCall { plan: None, verdict: Verdict::Closed(code, remark) };
        let tool = self.toolbox.tool(&request.name);
        if self.stop_delivered && tool.is_some_and(|tool| tool.spec.evidence) {
            return TriagedCall { plan: None, verdict: Verdict::CollectionStopped };
        }
        if self.tools == ToolOffer::Withdrawn {
            return closed(ObservationCode::NotDispatched, Remark::text("tools are withdrawn: write your answer"));
        }
        let Some(tool) = tool else {
            return closed(ObservationCode::UnknownTool, Remark::default());
        };
        let arguments = match self.arguments(tool, request) {
            Ok(arguments) => arguments,
            Err((code, remark)) => return closed(code, remark),
        };
        let assessed = arguments.assessment.as_ref().is_some_and(is_assessment);
        if tool.spec.evidence && self.assessment_due && !assessed {
            let remark = Remark::at(format!("/{ASSESSMENT_FIELD}"), "required");
            return closed(ObservationCode::ProtocolViolation, remark);
        }
        let plan = Some(Arc::new(Plan::new(tool, arguments.rest)));
        TriagedCall { plan, verdict: Verdict::Admitted }
    }

    /// Rule 3: strict JSON, then the schema. Never repaired into something executable.
    fn arguments(&self, tool: &Tool, request: &ToolRequest) -> Result<Arguments, (ObservationCode, Remark)> {
        let mut rest = Json::parse(&request.arguments).map_err(|error| {
            let cut = self.finish == FinishReason::Length;
            let code = if cut { ObservationCode::ArgumentsTruncated } else { ObservationCode::InvalidArguments };
            (code, Remark::offset(error.kind, error.offset))
        })?;
        let assessment = take_assessment(self.spec, tool, &mut rest);
        match tool.schema.check(&rest) {
            Ok(()) => Ok(Arguments { rest, assessment }),
            Err(breach) => Err((ObservationCode::InvalidArguments, Remark::at(breach.pointer, breach.keyword))),
        }
    }

    /// Rules 5 and 7, over calls that passed the first four: scopes, then the budget. Rule 6 only asks for a
    /// person, so it comes with the questions to people.
    pub(crate) fn admit(&self, calls: &mut [TriagedCall], ledger: &mut Ledger) -> Option<Marked> {
        let mut asked = BTreeSet::new();
        let mut marked = None;
        for call in calls {
            let (Verdict::Admitted, Some(plan)) = (&call.verdict, &call.plan) else {
                continue;
            };
            let tool = &plan.tool;
            call.verdict = if self.is_duplicate(plan, &asked) {
                Verdict::Closed(ObservationCode::DuplicateScope, Remark::default())
            } else {
                match ledger.admit(&self.spec.budgets, &tool.name) {
                    Admission::Admitted => {
                        asked.insert(plan.scope);
                        Verdict::Admitted
                    }
                    Admission::OverallLimit { first } => {
                        marked = marked.or(first.then_some(Marked));
                        Verdict::Closed(ObservationCode::BudgetExhausted, Remark::default())
                    }
                    Admission::ToolLimit => Verdict::Closed(ObservationCode::BudgetExhausted, Remark::default()),
                }
            };
        }
        marked
    }

    fn is_duplicate(&self, plan: &Plan, asked: &BTreeSet<Digest>) -> bool {
        plan.tool.spec.evidence
            && !plan.tool.spec.repeatable
            && (self.scopes.contains(&plan.scope) || asked.contains(&plan.scope))
    }
}

/// Takes the argument out that belongs to the engine.
fn take_assessment(spec: &Spec, tool: &Tool, arguments: &mut Json) -> Option<Json> {
    let own = tool.spec.evidence && spec.collection.assessment == Assessment::Required;
    if own { arguments.remove(ASSESSMENT_FIELD) } else { None }
}

/// A call met the overall tool limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marked;

/// Arguments, apart from what belongs to the engine.
struct Arguments {
    rest: Json,
    assessment: Option<Json>,
}

/// Rules 3 and 5 for arguments that a person edited (SPEC 7.8); rule 6 is settled by their decision.
pub(crate) fn plan_edited(
    spec: &Spec,
    tool: &Arc<Tool>,
    mut arguments: Json,
    answered: &BTreeSet<Digest>,
    others: &BTreeSet<Digest>,
) -> Result<Plan, (ObservationCode, Remark)> {
    take_assessment(spec, tool, &mut arguments);
    tool.schema
        .check(&arguments)
        .map_err(|breach| (ObservationCode::InvalidArguments, Remark::at(breach.pointer, breach.keyword)))?;
    let plan = Plan::new(tool, arguments);
    let once = tool.spec.evidence && !tool.spec.repeatable;
    if once && (answered.contains(&plan.scope) || others.contains(&plan.scope)) {
        return Err((ObservationCode::DuplicateScope, Remark::default()));
    }
    Ok(plan)
}

/// Rule 6: the same arguments as an earlier call of a tool that must not be replayed, whose effect is
/// unknown, need a person. `cleared` is how many such effects the person knew of who allowed this one.
pub(crate) fn is_held(plan: &Plan, unknowns: &Unknowns, cleared: Option<u32>) -> bool {
    plan.tool.spec.recovery_mode() == Recovery::NeverReplay && unknowns.of(&plan.digest) > cleared.unwrap_or(0)
}

impl Plan {
    /// Of arguments that were found good.
    pub(crate) fn new(tool: &Arc<Tool>, arguments: Json) -> Self {
        let canonical = arguments.canonical();
        let digest = Digest::of("portcullis.plan.1", &[tool.name.as_bytes(), canonical.as_bytes()]);
        let scope = if tool.spec.scope.is_empty() {
            digest
        } else {
            let found = tool
                .spec
                .scope
                .iter()
                .filter_map(|pointer| arguments.pointer(pointer).map(|value| (pointer.to_string(), value.clone())));
            let looked_at = Json::Object(found.collect()).canonical();
            Digest::of("portcullis.scope.1", &[tool.name.as_bytes(), looked_at.as_bytes()])
        };
        Self { tool: Arc::clone(tool), arguments, digest, scope }
    }
}

fn is_assessment(field: &Json) -> bool {
    let Some(fields) = field.as_object() else {
        return false;
    };
    let known = fields.keys().all(|name| name == "assessment" || name == "note");
    let word = fields.get("assessment").and_then(Json::as_str);
    let noted = fields.get("note").is_none_or(|note| note.as_str().is_some());
    known && noted && matches!(word, Some("informative" | "uninformative" | "contradictory"))
}

impl Remark {
    fn offset(kind: JsonErrorKind, offset: usize) -> Self {
        Self { keyword: Some(kind.code().to_owned()), offset: Some(offset as u64), ..Self::default() }
    }
}
