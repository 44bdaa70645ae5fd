//! Publication of a closed batch: observations in model order, facts numbered, novelty judged, so that the
//! order of completion changes nothing (SPEC 7, 8).

use std::sync::Arc;

use super::core::{Core, drive};
use super::outbox::Outbox;
use crate::machines::batch::Closing;
use crate::machines::collection::{self, Collection};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fact::Fact;
use crate::vocabulary::ids::{FactId, ToolCallId};
use crate::vocabulary::message::{Directive, Message, Observation};
use crate::vocabulary::signal::Signal;

impl Core {
    /// Publishes and drops the batch. Every call has its closing by now.
    pub(crate) fn publish_batch(&mut self, out: &mut Outbox) {
        let calls = self.tools.batch.take().map(|batch| batch.calls).unwrap_or_default();
        self.tools.nested.clear();
        for call in calls {
            let id = call.id;
            let evidence = call.plan.as_ref().filter(|plan| plan.tool.spec.evidence).cloned();
            let Some(closing) = call.closing.map(|staged| staged.closing) else {
                continue;
            };
            let (facts, directive) = match evidence {
                Some(plan) if closing.code.is_none() => {
                    self.answer_scope(plan.scope);
                    self.observe(id, &plan.tool.name, &closing, out)
                }
                Some(_) | None => (Vec::new(), None),
            };
            let observation = Observation { call: id, code: closing.code, text: closing.text, facts, directive };
            self.say(Message::Observation(observation), out);
        }
    }

    fn answer_scope(&mut self, scope: Digest) {
        if self.tools.scopes.insert(scope) {
            let before = self.tools.scopes_digest.unwrap_or(Digest::ZERO);
            let parts: [&[u8]; 2] = [before.as_bytes(), scope.as_bytes()];
            self.tools.scopes_digest = Some(Digest::of("portcullis.scopes.1", &parts));
        }
    }

    /// Numbers the facts of one successful evidence observation and judges whether anything was new.
    fn observe(
        &mut self,
        call: ToolCallId,
        tool: &Arc<str>,
        closing: &Closing,
        out: &mut Outbox,
    ) -> (Vec<Arc<Fact>>, Option<Directive>) {
        let first = FactId(self.facts.count().saturating_add(1));
        let mut new = 0u32;
        let mut facts = Vec::with_capacity(closing.facts.len());
        for statement in &closing.facts {
            let (fact, is_new) = self.facts.observe(call, tool, statement.clone());
            new = new.saturating_add(u32::from(is_new));
            facts.push(fact);
        }
        let count = u32::try_from(facts.len()).unwrap_or(u32::MAX);
        out.note(Signal::FactsObserved { call, first, count, new });
        let collecting = matches!(self.collection, collection::State::Collecting { .. });
        let saturation_after = self.spec().collection.saturation_after;
        let event = collection::Event::EvidenceObserved { new: new > 0, saturation_after };
        if matches!(self.collection, collection::State::Stopped { .. }) {
            return (facts, None);
        }
        drive::<Collection>(&mut self.collection, &event, out);
        let saturated = collecting && matches!(self.collection, collection::State::Saturated { .. });
        if saturated {
            out.note(Signal::InformationSaturated);
        }
        (facts, saturated.then_some(Directive::StopRequired))
    }
}
