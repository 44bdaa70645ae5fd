//! Writes that failed and were never done: told by the tool's name and by what it was to write to.

use super::super::transcripts::Turn;
use crate::vocabulary::json::Json;

/// Words in a tool's name that say that it changes something.
const WRITING: [&str; 30] = [
    "add", "append", "apply", "book", "cancel", "commit", "create", "delete", "deploy", "edit", "exchange", "insert",
    "modify", "move", "patch", "pay", "post", "put", "refund", "remove", "rename", "replace", "return", "save", "send",
    "set", "submit", "update", "upload", "write",
];
/// Words by which an answer admits that something did not work.
const ADMITTING: [&str; 14] = [
    "apolog",
    "can't",
    "cannot",
    "could not",
    "couldn't",
    "did not",
    "didn't",
    "error",
    "fail",
    "insufficient",
    "not possible",
    "sorry",
    "unable",
    "unfortunately",
];
/// Commands of an editor that only look.
const LOOKING: [&str; 4] = ["view", "read", "list", "show"];
/// Arguments that say where to.
const TARGETS: [&str; 6] = ["file_path", "path", "filename", "file", "target", "destination"];

/// The tools whose write failed and was not done later, to the same place where the arguments name one. Each once.
pub(super) fn undone(turn: &Turn) -> impl Iterator<Item = String> {
    let mut open: Vec<(&str, Option<String>)> = Vec::new();
    for call in turn.replies.iter().flat_map(|reply| &reply.calls).filter(|call| writes(&call.name)) {
        let Some(result) = &call.result else { continue };
        let arguments = Json::parse(&call.arguments).unwrap_or(Json::Null);
        if text(&arguments, "command").is_some_and(|command| LOOKING.contains(&command)) {
            continue;
        }
        let target = TARGETS.iter().find_map(|name| text(&arguments, name)).map(str::to_owned);
        let key = (call.name.as_str(), target);
        if !result.is_error {
            open.retain(|write| *write != key);
        } else if !open.contains(&key) {
            open.push(key);
        }
    }
    let mut tools: Vec<String> = open.into_iter().map(|(tool, _)| tool.to_owned()).collect();
    tools.dedup();
    tools.into_iter()
}

/// Whether an answer has a word of failure. English words alone: this is a measure.
pub(super) fn admits_failure(answer: &str) -> bool {
    let answer = answer.to_lowercase().replace('\u{2019}', "'");
    ADMITTING.iter().any(|word| answer.contains(word))
}

/// Whether a tool's name says that it changes something.
fn writes(name: &str) -> bool {
    words(name).iter().any(|word| WRITING.contains(&word.as_str()))
}

/// The words of a name, in lower case: parted by anything that is no letter, and before capitals.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        let begins = !letter.is_alphabetic() || (letter.is_uppercase() && before.is_lowercase());
        if begins {
            words.push(String::new());
        }
        if letter.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

fn text<'a>(arguments: &'a Json, name: &str) -> Option<&'a str> {
    arguments.as_object()?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_word_by_word() {
        for name in ["Write", "write_file", "str_replace_editor", "update-reservation", "bookFlight", "PUT"] {
            assert!(writes(name), "{name}");
        }
        for name in ["get_address", "think", "settings", "search", "output", "Bash", "computer", "category"] {
            assert!(!writes(name), "{name}");
        }
    }
}
