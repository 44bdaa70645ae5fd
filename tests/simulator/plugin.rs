//! A plugin of the simulated world: hooks at every point, a state key and an action kind.

use portcullis::composition::{PluginConfigError, PluginManifest, StateKey};
use portcullis::runtime::plugins::{
    ActionQuestion, Contributions, HookAbout, HookAnswer, HookFailure, HookQuestion, Plugin,
};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::environment::{HookPoint, MergePolicy, StateScope};
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::StagedCommand;
use portcullis::vocabulary::json::Json;

use crate::bugs::Bug;
use crate::faults::Fault;
use crate::observed::PRIVATE;
use crate::ports::{Ports, UnderWay};

const NOTE: StateKey<String> = StateKey::new(StateScope::Run, "watch.note", MergePolicy::Exclusive);
const ACTION: &str = "watch.report";

/// The plugin `watcher`.
pub(crate) struct Watcher(pub(crate) Ports);

impl Plugin for Watcher {
    fn manifest(&self) -> PluginManifest {
        let bound = Bound {
            state_keys: Allowance::namespace("watch"),
            hooks: HookPoint::ALL.to_vec(),
            action_kinds: Allowance::namespace("watch"),
            ..Bound::default()
        };
        PluginManifest::new("watcher", bound)
    }

    fn activate(&self, _config: &Json) -> Result<Contributions, PluginConfigError> {
        let mut contributions = Contributions::new().state_key(&NOTE);
        for point in HookPoint::ALL {
            let ports = self.0.clone();
            contributions = contributions.hook(*point, move |question: HookQuestion| {
                let ports = ports.clone();
                async move { ports.hooked(question).await }
            });
        }
        let ports = self.0.clone();
        let action = move |question: ActionQuestion| {
            let ports = ports.clone();
            async move {
                let at = format!("{} {} {}", question.run, question.action, question.ask.0);
                ports.asked(&question.run, &at, &format!("perform_action {}", question.ask.0)).await
            }
        };
        Ok(contributions.action(ACTION, action))
    }
}

impl Ports {
    async fn hooked(&self, question: HookQuestion) -> Result<HookAnswer, HookFailure> {
        let point = question.about.point();
        let at = format!("{} {} {}", question.run, point.word(), question.ask.0);
        if point == HookPoint::RunEnd {
            // It may go on after the run: nobody waits for it.
            self.0.act(format!("hook {at}")).await;
            return Ok(HookAnswer::nothing());
        }
        if let (Some(Bug::ShowsTextEarly), HookAbout::BeforeRelease { statement, .. }) =
            (self.0.world.bug, &question.about)
        {
            self.0.world.observe(|seen| seen.shown(&question.run, statement));
        }
        self.asked(&question.run, &at, &format!("call_hook {}", question.ask.0)).await
    }

    async fn asked(&self, run: &RunId, at: &str, effect: &str) -> Result<HookAnswer, HookFailure> {
        let _under_way = UnderWay::begin(&self.0, run, effect.to_owned());
        self.0.act(format!("hook {at}")).await;
        let process = self.0.number;
        self.0.world.observe(|seen| seen.begins(process, run, effect));
        self.take_time("hook_ms", at, 50).await;
        if self.goes_wrong(Fault::HookStalls, at) {
            self.0.world.until_healed().await;
        }
        if self.goes_wrong(Fault::HookFails, at) {
            if self.0.world.choose("hook_panics", at, &[2, 1]) == 1 {
                std::panic::resume_unwind(Box::new(format!("{PRIVATE} words of a panic")));
            }
            return Err(HookFailure(format!("{PRIVATE} failure")));
        }
        let note = |text: &str| NOTE.set(&format!("{PRIVATE} {text} at {at}")).unwrap();
        if self.goes_wrong(Fault::PluginBreaks, at) {
            return Ok(HookAnswer::nothing().staging(match self.0.world.choose("breaks", at, &[1, 1]) {
                0 => vec![note("one"), note("two")],
                _ => vec![scheduled("beyond.its_bound")],
            }));
        }
        Ok(match self.0.world.choose("hook_answer", at, &[12, 1, 1, 1]) {
            0 => HookAnswer::nothing(),
            1 => HookAnswer::nothing().saying(format!("{PRIVATE} hint")),
            2 => HookAnswer::nothing().staging([note("note")]),
            _ if effect.starts_with("call_hook") => HookAnswer::nothing().staging([scheduled(ACTION)]),
            _ => HookAnswer::nothing(),
        })
    }
}

fn scheduled(action: &str) -> StagedCommand {
    StagedCommand::Schedule { action: action.to_owned(), payload: Json::Null }
}
