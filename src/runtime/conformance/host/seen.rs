//! What was shown, stored and acknowledged, and whether that is right.

use super::Rule;
use super::scene::Scene;
use super::stage::Moment;
use crate::testkit::invariants;
use crate::vocabulary::outcome::ReleaseOutcome;

/// All there is to see of one scene.
pub(super) struct Seen {
    pub(super) scene: Scene,
    pub(super) log: Vec<Moment>,
    pub(super) history: Vec<u8>,
}

impl Seen {
    /// Every rule that it breaks.
    pub(super) fn breaches(&self) -> Vec<(Rule, String)> {
        let checks: [(Rule, Option<String>); 7] = [
            (Rule::NothingUnverified, self.unverified()),
            (Rule::ShownAsItIs, self.shown_otherwise()),
            (Rule::ShownWhole, self.left_out()),
            (Rule::NothingUnreleased, self.unreleased()),
            (Rule::ShownFirst, self.acknowledged_before()),
            (Rule::AcknowledgedOnce, self.acknowledged_otherwise()),
            (Rule::FailClosed, self.not_fail_closed()),
        ];
        checks.into_iter().filter_map(|(rule, reason)| Some((rule, reason?))).collect()
    }

    /// What was shown as a release.
    fn releases(&self) -> impl Iterator<Item = (ReleaseOutcome, &str)> {
        self.log.iter().filter_map(|moment| match moment {
            Moment::Release(outcome, text) => Some((*outcome, text.as_str())),
            Moment::Notice(_) | Moment::Acknowledged => None,
        })
    }

    fn unverified(&self) -> Option<String> {
        let shown: String = self
            .log
            .iter()
            .map(|moment| match moment {
                Moment::Release(_, text) | Moment::Notice(text) => text.as_str(),
                Moment::Acknowledged => "",
            })
            .collect::<Vec<_>>()
            .join("\n");
        // Shown piece by piece is shown too.
        let together = shown.replace('\n', "");
        let unverified = self.scene.unverified().into_iter();
        let found = unverified.filter(|text| shown.contains(*text) || together.contains(*text)).collect::<Vec<_>>();
        (!found.is_empty()).then(|| format!("shown was what nobody verified: {found:?}"))
    }

    fn shown_otherwise(&self) -> Option<String> {
        let expected = self.scene.outcome()?;
        let shown: Vec<ReleaseOutcome> = self.releases().map(|(outcome, _)| outcome).collect();
        (shown != [expected]).then(|| format!("shown as {shown:?} where {expected:?} was released"))
    }

    fn left_out(&self) -> Option<String> {
        let shown: String = self.releases().map(|(_, text)| text).collect();
        let missing = self.scene.shows().iter().find(|text| !shown.contains(**text))?;
        Some(format!("the release holds {missing:?}, and that is not shown"))
    }

    fn unreleased(&self) -> Option<String> {
        let (outcome, _) = self.releases().next().filter(|_| self.scene.outcome().is_none())?;
        Some(format!("nothing was released, and something is shown as {outcome}"))
    }

    fn acknowledged_before(&self) -> Option<String> {
        let place = |wanted: fn(&Moment) -> bool| self.log.iter().position(wanted);
        let acknowledged = place(|moment| matches!(moment, Moment::Acknowledged))?;
        let shown = place(|moment| matches!(moment, Moment::Release(..)));
        let first = shown.is_some_and(|shown| shown < acknowledged);
        (!first).then(|| "the release was acknowledged before its reader saw it".to_owned())
    }

    fn acknowledged_otherwise(&self) -> Option<String> {
        let acknowledged = self.log.iter().filter(|moment| matches!(moment, Moment::Acknowledged)).count();
        let expected = usize::from(self.scene.outcome().is_some());
        (acknowledged != expected).then(|| format!("acknowledged {acknowledged} times where {expected} was expected"))
    }

    fn not_fail_closed(&self) -> Option<String> {
        let breaches = invariants::check(&self.history).err()?;
        breaches.first().map(ToString::to_string)
    }
}
