//! Which message list of the document is the conversation.
//!
//! A ToolBench file comes from a tree search and keeps one training sample per model call on the
//! path to its ending: the messages that the call saw, and the reply it gave. So every sample is a
//! beginning of the next one, save for the prompts that the search wrote for a single call and then
//! withdrew (`"valid": false`), of which a sample keeps only its latest. The longest sample is thus
//! the whole conversation, and of equally long ones the last. A sample that does not fit into it is
//! named in a note.
//!
//! A search without an ending kept no samples. Its tree holds many paths and none that counts, so
//! the reader picks none: it gives the query alone, and says so.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::error::TranscriptError;
use super::super::line::{Entry, Line};
use super::super::node::Node;
use super::super::note::{NoteKind, Notes};
use super::message::{entries, is_withdrawn};
use super::shape::Located;

/// Finds and decodes the conversation.
pub(super) fn chain<'a>(
    root: &Node<'a, '_>,
    found: Located<'a>,
    notes: &mut Notes,
) -> Result<Vec<Entry>, TranscriptError> {
    match found {
        Located::List => entries(root, notes),
        Located::Messages(raw) => entries(&root.key("messages", raw), notes),
        Located::TauBench(raw) => entries(&root.key("traj", raw), notes),
        Located::ToolBench(raw) => answered(&root.key("answer_generation", raw), notes),
    }
}

#[derive(Deserialize)]
struct AnswerGeneration<'a> {
    #[serde(borrow)]
    query: Option<&'a RawValue>,
    #[serde(borrow)]
    train_messages: Option<&'a RawValue>,
}

fn answered(answer: &Node<'_, '_>, notes: &mut Notes) -> Result<Vec<Entry>, TranscriptError> {
    let fields: AnswerGeneration = answer.object()?;
    if let Some(raw) = fields.train_messages {
        let samples = answer.key("train_messages", raw);
        let found = longest(&samples, notes)?;
        if let Some((index, sample)) = found {
            return entries(&samples.index(index, sample), notes);
        }
    }
    match fields.query {
        Some(raw) => {
            notes.file(NoteKind::NoChain);
            let task = answer.key("query", raw).text()?;
            Ok(vec![Entry { at: 0, line: Line::User(task) }])
        }
        None => Ok(Vec::new()),
    }
}

/// One sample: the JSON text of its messages, those that stand and those that were withdrawn.
struct Sample<'a> {
    raw: &'a RawValue,
    standing: Vec<&'a str>,
    withdrawn: Vec<(usize, &'a str)>,
}

impl<'a> Sample<'a> {
    fn read(sample: &Node<'a, '_>, raw: &'a RawValue) -> Result<Self, TranscriptError> {
        let mut standing = Vec::new();
        let mut withdrawn = Vec::new();
        for (index, item) in sample.items()?.into_iter().enumerate() {
            if is_withdrawn(&sample.index(index, item))? {
                withdrawn.push((index, item.get()));
            } else {
                standing.push(item.get());
            }
        }
        Ok(Self { raw, standing, withdrawn })
    }
}

/// The longest sample that holds anything, with notes about what the others have beside it.
///
/// Withdrawn prompts do not count towards the length: a sample that carries one more of them knows
/// no more of the conversation.
fn longest<'a>(samples: &Node<'a, '_>, notes: &mut Notes) -> Result<Option<(usize, &'a RawValue)>, TranscriptError> {
    let mut read = Vec::new();
    for (index, raw) in samples.items()?.into_iter().enumerate() {
        read.push(Sample::read(&samples.index(index, raw), raw)?);
    }
    let longest = read
        .iter()
        .enumerate()
        .filter(|(_, sample)| !sample.standing.is_empty())
        .max_by_key(|(_, sample)| sample.standing.len());
    let Some((chosen, whole)) = longest else {
        return Ok(None);
    };
    let kept: BTreeSet<_> = whole.withdrawn.iter().map(|(_, prompt)| prompt).collect();
    for (sample, other) in read.iter().enumerate() {
        if !whole.standing.starts_with(&other.standing) {
            notes.file(NoteKind::SampleDiffers { sample });
            continue;
        }
        let lost = other.withdrawn.iter().filter(|(_, prompt)| !kept.contains(prompt));
        for &(index, _) in lost {
            notes.file(NoteKind::SamplePrompt { sample, index });
        }
    }
    Ok(Some((chosen, whole.raw)))
}
