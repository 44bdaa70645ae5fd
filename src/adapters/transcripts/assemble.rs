//! From entries to turns.

use super::answer::answer_text;
use super::draft::Draft;
use super::format::Format;
use super::line::{Entry, Line, Recorded};
use super::note::{NoteKind, Notes};
use super::pairing::pair;
use super::transcript::{Call, Claim, Reply, Transcript, Turn};
use crate::vocabulary::llm::FinishReason;

/// Cuts the entries into turns, pairs results with calls, and reads terminal calls as answers.
pub(super) fn assemble(format: Format, draft: Draft, terminal_tools: &[String]) -> Transcript {
    let Draft { id, model, entries, mut notes } = draft;
    let mut assembly = Assembly { conversation: Conversation::default(), open: None, notes: &mut notes };
    for entry in entries {
        assembly.take(entry);
    }
    assembly.close_group();
    let Conversation { system, opening, mut turns } = assembly.conversation;
    note_replies(&opening, &mut notes);
    for turn in &mut turns {
        end_with_answer(&mut turn.replies, terminal_tools, &mut notes);
        note_replies(&turn.replies, &mut notes);
        note_ending(turn, &mut notes);
    }
    Transcript { format, id, model, system, opening, turns, notes: notes.in_order() }
}

/// The parts of a transcript that come from its entries.
#[derive(Debug, Default)]
struct Conversation {
    system: Option<String>,
    opening: Vec<Reply>,
    turns: Vec<Turn>,
}

struct Assembly<'n> {
    conversation: Conversation,
    /// The latest assistant message and the results that followed it so far.
    open: Option<(Reply, Vec<Recorded>)>,
    notes: &'n mut Notes,
}

impl Assembly<'_> {
    fn take(&mut self, Entry { at, line }: Entry) {
        match line {
            Line::Instructions(text) => self.instruct(at, text),
            Line::User(task) => {
                self.close_group();
                if task.trim().is_empty() {
                    self.notes.at(at, NoteKind::EmptyTask);
                }
                self.conversation.turns.push(Turn { at, task, replies: Vec::new(), claim: Claim::Unsaid });
            }
            Line::Withdrawn => {
                self.close_group();
                self.notes.at(at, NoteKind::WithdrawnPrompt);
            }
            Line::Assistant(reply) => {
                self.close_group();
                self.open = Some((reply, Vec::new()));
            }
            Line::Result(result) => match &mut self.open {
                Some((_, results)) => results.push(result),
                None => self.notes.at(at, NoteKind::OrphanResult),
            },
            Line::Closed(claim) => match self.conversation.turns.last_mut() {
                Some(turn) => turn.claim = claim,
                None => self.notes.at(at, NoteKind::EndBeforeTurn),
            },
            Line::Unknown(role) => self.notes.at(at, NoteKind::UnknownRole { role }),
        }
    }

    fn instruct(&mut self, at: usize, text: String) {
        let begun = self.open.is_some() || !self.conversation.opening.is_empty() || !self.conversation.turns.is_empty();
        if begun {
            self.notes.at(at, NoteKind::LateInstructions);
            return;
        }
        match &mut self.conversation.system {
            Some(system) => {
                system.push_str("\n\n");
                system.push_str(&text);
            }
            None => self.conversation.system = Some(text),
        }
    }

    fn close_group(&mut self) {
        let Some((mut reply, results)) = self.open.take() else {
            return;
        };
        pair(&mut reply.calls, results, self.notes);
        match self.conversation.turns.last_mut() {
            Some(turn) => turn.replies.push(reply),
            None => self.conversation.opening.push(reply),
        }
    }
}

/// Reads a terminal call without a result, the last call of the turn, as the turn's answer.
///
/// Calls beside it stay a reply of their own, so that they still run before the answer.
fn end_with_answer(replies: &mut Vec<Reply>, terminal_tools: &[String], notes: &mut Notes) {
    let Some(last) = replies.last_mut() else {
        return;
    };
    let Some(call) = last.calls.pop_if(|call| is_terminal(call, terminal_tools)) else {
        return;
    };
    let at = last.at;
    let text = answer_text(&call.arguments);
    notes.at(at, NoteKind::TerminalAnswer { tool: call.name });
    if last.calls.is_empty() {
        if last.text.is_some() {
            notes.at(at, NoteKind::CommentaryReplaced);
        }
        last.text = text;
        // It stopped for a call that is none any more.
        last.finish = last.finish.filter(|finish| *finish != FinishReason::ToolCalls);
    } else {
        replies.push(Reply::new(text.unwrap_or_default(), at));
    }
}

fn is_terminal(call: &Call, terminal_tools: &[String]) -> bool {
    call.result.is_none() && terminal_tools.contains(&call.name)
}

fn note_replies(replies: &[Reply], notes: &mut Notes) {
    let mut answered = false;
    for reply in replies {
        if answered {
            notes.at(reply.at, NoteKind::ReplyAfterAnswer);
        }
        answered |= reply.calls.is_empty();
        for (call, _) in reply.calls.iter().enumerate().filter(|(_, call)| call.result.is_none()) {
            notes.at(reply.at, NoteKind::CallWithoutResult { call });
        }
    }
}

fn note_ending(turn: &Turn, notes: &mut Notes) {
    match turn.replies.last() {
        None => notes.at(turn.at, NoteKind::TurnWithoutReply),
        Some(reply) if !reply.calls.is_empty() => notes.at(reply.at, NoteKind::TurnWithoutAnswer),
        Some(_) => {}
    }
}
