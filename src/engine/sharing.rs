//! Shared state inside the run: commands held against their plugin's bound, staged, committed with their batch or
//! dropped with it (SPEC 12).

use super::core::Core;
use super::outbox::Outbox;
use crate::machines::consultation::Question;
use crate::machines::shared::{Place, Write};
use crate::machines::toolbox::Toolbox;
use crate::vocabulary::failure::Failure;
use crate::vocabulary::input::StagedCommand;
use crate::vocabulary::signal::Signal;

/// How many actions one commit batch may schedule: plugins that schedule each other's come to an end.
pub(crate) const ACTIONS_MAX: u32 = 64;

impl Core {
    /// Stages what `plugin` wants; the actions that it schedules come back.
    pub(crate) fn stage(
        &mut self,
        plugin: &str,
        commands: &[StagedCommand],
        out: &mut Outbox,
    ) -> Result<Vec<Question>, Failure> {
        let mut actions = Vec::new();
        for command in commands {
            match command {
                StagedCommand::Set { scope, key, value } => {
                    self.write(plugin, &(*scope, key.clone()), Write::Set(value), out)?;
                }
                StagedCommand::Remove { scope, key } => {
                    self.write(plugin, &(*scope, key.clone()), Write::Remove, out)?;
                }
                StagedCommand::Schedule { action, payload } => {
                    let performer = self.schedule(plugin, action, out)?;
                    let (action, payload) = (action.clone(), payload.clone());
                    actions.push(Question::Action { plugin: performer, action, payload });
                }
            }
        }
        Ok(actions)
    }

    /// Stages what a tool wants, under the bound of the plugin that contributes it. A tool that no plugin
    /// contributes may stage nothing, whatever its name.
    pub(crate) fn stage_of_tool(
        &mut self,
        tool: &str,
        commands: &[StagedCommand],
        out: &mut Outbox,
    ) -> Result<Vec<Question>, Failure> {
        let owner = self.toolbox().and_then(|toolbox| toolbox.capabilities().owner_of_tool(tool)).map(str::to_owned);
        match owner {
            Some(plugin) => self.stage(&plugin, commands, out),
            None if commands.is_empty() => Ok(Vec::new()),
            None => Err(broken(tool, "a command of a tool that no plugin contributes".to_owned(), out)),
        }
    }

    fn write(&mut self, plugin: &str, place: &Place, write: Write<'_>, out: &mut Outbox) -> Result<(), Failure> {
        let (scope, key) = place;
        let policy = self.toolbox().and_then(|toolbox| {
            let capabilities = toolbox.capabilities();
            let allowed = capabilities.of(plugin).is_some_and(|own| own.bound.state_keys.allows(key));
            capabilities.policy(*scope, key).filter(|_| allowed)
        });
        let Some(policy) = policy else {
            return Err(broken(plugin, format!("the {scope} state key {key}"), out));
        };
        if let Err(conflict) = self.shared.stage(plugin, policy, place, write) {
            let (key, later) = (key.clone(), plugin.to_owned());
            out.note(Signal::StateConflicted { scope: *scope, key, earlier: conflict.earlier, later });
            return Err(Failure::StateConflict);
        }
        let limit = self.spec().limits.state_bytes_max;
        if matches!(write, Write::Set(_)) && self.shared.bytes() > limit {
            return Err(broken(
                plugin,
                format!("{} bytes of state, over limits.state_bytes_max", self.shared.bytes()),
                out,
            ));
        }
        Ok(())
    }

    /// Who performs an action, if `plugin` may schedule it.
    fn schedule(&mut self, plugin: &str, action: &str, out: &mut Outbox) -> Result<String, Failure> {
        let performer = self.toolbox().and_then(|toolbox| {
            let capabilities = toolbox.capabilities();
            let allowed = capabilities.of(plugin).is_some_and(|own| own.bound.action_kinds.allows(action));
            capabilities.owner_of_action(action).filter(|_| allowed).map(str::to_owned)
        });
        let performer = performer.ok_or_else(|| broken(plugin, format!("the action {action}"), out))?;
        self.actions = self.actions.saturating_add(1);
        if self.actions > ACTIONS_MAX {
            return Err(broken(plugin, format!("more than {ACTIONS_MAX} actions in one commit batch"), out));
        }
        Ok(performer)
    }

    fn toolbox(&self) -> Option<&Toolbox> {
        self.tools.toolbox.as_deref()
    }

    /// The batch commits. Nothing was visible before.
    pub(crate) fn commit_state(&mut self, out: &mut Outbox) {
        self.actions = 0;
        let commands = self.shared.commit();
        if commands > 0 {
            out.note(Signal::StateCommitted { commands });
        }
    }

    /// The tail that was not committed is dropped.
    pub(crate) fn roll_back_state(&mut self, out: &mut Outbox) {
        self.actions = 0;
        let commands = self.shared.roll_back();
        if commands > 0 {
            out.note(Signal::StateRolledBack { commands });
        }
    }
}

fn broken(plugin: &str, contribution: String, out: &mut Outbox) -> Failure {
    out.note(Signal::BoundBroken { plugin: plugin.to_owned(), contribution });
    Failure::CapabilityBound
}
