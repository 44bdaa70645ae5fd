//! The plugins of a script: what their hooks answer, and how they perform actions.

use std::collections::{BTreeMap, VecDeque};

use super::plugin_reply::{PluginReplies, PluginReply};
use super::script::Script;
use crate::vocabulary::environment::HookPoint;
use crate::vocabulary::ids::Ask;

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    /// A plugin's hook.
    Hook(String, HookPoint),
    /// Whoever performs the actions of a kind.
    Action(String),
}

/// What plugins have not answered yet. As elsewhere, an answer is lent when it is asked for.
#[derive(Debug, Default)]
pub(super) struct Plugins {
    answers: BTreeMap<Asked, Answers>,
    lent: BTreeMap<Ask, (Asked, PluginReply)>,
}

#[derive(Debug)]
struct Answers {
    once: VecDeque<PluginReply>,
    always: Option<PluginReply>,
}

impl Plugins {
    pub(super) fn new(script: &Script) -> Self {
        let hooks = script.hooks.iter().flat_map(|(plugin, points)| {
            points.iter().map(|(point, replies)| (Asked::Hook(plugin.clone(), (*point).into()), replies))
        });
        let actions = script.actions.iter().map(|(kind, replies)| (Asked::Action(kind.clone()), replies));
        let answers = |(asked, replies): (Asked, &PluginReplies)| {
            let PluginReplies { once, always } = replies.clone();
            (asked, Answers { once: once.into(), always })
        };
        Self { answers: hooks.chain(actions).map(answers).collect(), lent: BTreeMap::new() }
    }

    /// The next answer; `None` when the script has none.
    pub(super) fn ask(&mut self, ask: Ask, asked: Asked) -> Option<PluginReply> {
        let answers = self.answers.get_mut(&asked)?;
        let Some(reply) = answers.once.pop_front() else {
            return answers.always.clone();
        };
        self.lent.insert(ask, (asked, reply.clone()));
        Some(reply)
    }

    /// A question was answered: what was lent for it is used up.
    pub(super) fn settle(&mut self, ask: Ask) {
        self.lent.remove(&ask);
    }

    /// Whoever was waiting has died: what they were lent comes back.
    pub(super) fn take_back(&mut self) {
        for (_, (asked, reply)) in std::mem::take(&mut self.lent).into_iter().rev() {
            if let Some(answers) = self.answers.get_mut(&asked) {
                answers.once.push_front(reply);
            }
        }
    }

    /// The answers that nobody asked for, for people. One that stands always is never left over.
    pub(super) fn unused(&self) -> impl Iterator<Item = String> {
        let left = self.answers.iter().filter(|(_, answers)| !answers.once.is_empty());
        left.map(|(asked, answers)| {
            let count = answers.once.len();
            match asked {
                Asked::Hook(plugin, point) => {
                    format!("{count} more of {plugin:?}'s answers at {point} than were asked for")
                }
                Asked::Action(kind) => format!("{count} more of the action {kind:?}'s answers than were asked for"),
            }
        })
    }
}
