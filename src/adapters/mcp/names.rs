//! Names: a server's tool `read` of the source `files` is `files__read` in a run.

use crate::machines::capabilities::HOST;
use crate::vocabulary::spec::{ToolSource, ToolSpec};

/// What stands between a source and its tool.
const BETWEEN: &str = ToolSource::SEPARATOR;

/// Whether a source may have that name: 1 to 64 of `[A-Za-z0-9_-]`, with no `__` inside and no `_` at its end, so
/// that the first `__` of a tool's name ends its source; and not what the host is called. The error is the reason.
pub(super) fn check_source(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
        return Err(format!("the tool source {name:?} has a name that is not 1 to 64 of [A-Za-z0-9_-]"));
    }
    if name.contains(BETWEEN) || name.ends_with('_') {
        return Err(format!("the tool source {name:?} has a name with `__` inside or `_` at its end"));
    }
    if name == HOST {
        return Err(format!("no tool source may be called {name:?}: errors name the host so"));
    }
    Ok(())
}

/// The name of a server's tool in a run, if it can have one. The error is the reason.
pub(super) fn join(source: &str, tool: &str) -> Result<String, String> {
    let name = format!("{source}{BETWEEN}{tool}");
    if tool.is_empty() || !ToolSpec::is_name(&name) {
        return Err("with its source in front the name is not 4 to 128 of [A-Za-z0-9_.-]".to_owned());
    }
    Ok(name)
}

/// Source and the server's own name for the tool. `None` where the name belongs to no source.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    name.split_once(BETWEEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_joined_name_splits_into_what_it_was_made_of(source in "[A-Za-z0-9_-]{1,64}", tool in "[A-Za-z0-9_.-]{1,64}") {
            prop_assume!(check_source(&source).is_ok());
            let Ok(name) = join(&source, &tool) else { return Ok(()) };
            prop_assert_eq!(split(&name), Some((source.as_str(), tool.as_str())));
        }

        #[test]
        fn two_tools_never_share_a_name(
            one in ("[a_-]{1,4}", "[a_.]{1,4}"), other in ("[a_-]{1,4}", "[a_.]{1,4}"),
        ) {
            prop_assume!(check_source(&one.0).is_ok() && check_source(&other.0).is_ok() && one != other);
            prop_assert_ne!(join(&one.0, &one.1), join(&other.0, &other.1));
        }

        #[test]
        fn no_name_with_other_characters_passes(source in "\\PC{1,20}", tool in ".{0,20}") {
            if let (Ok(()), Ok(name)) = (check_source(&source), join(&source, &tool)) {
                prop_assert!(ToolSpec::is_name(&name));
            }
        }
    }

    #[test]
    fn a_source_is_not_called_like_the_host_nor_like_a_part_of_a_name() {
        for name in ["", "host", "a__b", "a_", "a b", "a.b", "ä", &"a".repeat(65)] {
            assert!(check_source(name).is_err(), "{name:?}");
        }
        for name in ["a", "_a", "a_b", "a-b", &"a".repeat(64)] {
            assert!(check_source(name).is_ok(), "{name:?}");
        }
    }
}
