//! Tools' names and calls' ids, as every provider takes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machines::toolbox::Tool;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::llm;

/// The longest name that every provider takes.
const NAME_BYTES_MAX: usize = 64;
/// Characters of a digest that tell long names apart.
const DIGEST_CHARACTERS: usize = 8;

/// The offered tools under the names that the provider is given.
#[derive(Debug, Default)]
pub(super) struct Names {
    ours: BTreeMap<String, Arc<str>>,
}

impl Names {
    /// # Errors
    /// Two tools would have one name there: which of them is called could not be told.
    pub(super) fn of(tools: &[Arc<Tool>]) -> Result<Self, llm::Error> {
        let mut ours = BTreeMap::new();
        for tool in tools {
            let name = given(&tool.name);
            if let Some(other) = ours.insert(name.clone(), Arc::clone(&tool.name)) {
                let message = format!("the tools {other:?} and {:?} would both be called {name:?} there", tool.name);
                return Err(llm::Error::Binding { message });
            }
        }
        Ok(Self { ours })
    }

    /// Our name of a tool that the provider names. A name that was not given is handed on.
    pub(super) fn ours(&self, given: String) -> String {
        self.ours.get(&given).map_or(given, |name| name.to_string())
    }
}

/// The name that a provider is given: a name of `[A-Za-z0-9_-]` that begins with a letter or `_` and is not too
/// long stays as it is. It depends on the name alone, so that it is the same in every request.
pub(super) fn given(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let mut given: String = name.chars().map(plain).collect();
    if !given.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        given.insert(0, '_');
    }
    if given.len() > NAME_BYTES_MAX {
        let digest = Digest::of("portcullis.tool-name.1", &[name.as_bytes()]).to_string();
        let end = digest.len().saturating_sub(DIGEST_CHARACTERS);
        given.truncate(NAME_BYTES_MAX - DIGEST_CHARACTERS - 1);
        given.push('_');
        given.push_str(digest.get(end..).unwrap_or_default());
    }
    given
}

/// The id of a call as a provider sees it: nine letters and digits, since one provider takes nothing else. It
/// is ours, for theirs may repeat.
pub(super) fn call_id(call: ToolCallId) -> String {
    format!("t{}{}", base36(call.round, 5), base36(call.index, 3))
}

fn base36(mut number: u32, width: usize) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.len() < width {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
    }
    digits.iter().rev().collect()
}
