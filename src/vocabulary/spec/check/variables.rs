//! Names of environment variables in a spec: of those that are referred to, and of those that a server is given.

use super::{SpecFault, fault};
use crate::vocabulary::spec::SecretRef;

/// Variables that change which code a program runs, or where it takes code from.
const CODE: [&str; 59] = [
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GLIBC_TUNABLES",
    "HOME",
    "IFS",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PATHEXT",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "VISUAL",
    "XDG_CONFIG_HOME",
    "_JAVA_OPTIONS",
];

/// Beginnings of more of them: loaders, profilers that are loaded, and what package runners fetch.
const CODE_BEGINNINGS: [&str; 9] =
    ["BASH_FUNC_", "CORECLR_", "COR_", "DYLD_", "GIT_CONFIG", "LD_", "NPM_CONFIG_", "PIP_", "UV_"];

/// Checks a variable that is set in a server.
pub(super) fn check_set(name: &str, place: &str) -> Result<(), SpecFault> {
    if !is_variable(name) {
        return Err(fault(format!("{place}.{}", shown(name)), NO_NAME));
    }
    let upper = name.to_ascii_uppercase();
    if CODE.contains(&upper.as_str()) || CODE_BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning)) {
        let reason = "changes which code the server runs: leave it out, and start a program of yours that sets it";
        return Err(fault(format!("{place}.{name}"), reason));
    }
    Ok(())
}

/// Checks the variables that are referred to, each with the name of what it is for.
pub(super) fn check_references<'a>(
    references: impl IntoIterator<Item = (&'a str, &'a SecretRef)>,
    place: &str,
) -> Result<(), SpecFault> {
    match references.into_iter().find(|(_, reference)| !is_variable(&reference.env)) {
        Some((name, _)) => Err(fault(format!("{place}.{}.env", shown(name)), NO_NAME)),
        None => Ok(()),
    }
}

const NO_NAME: &str = "is no name of a variable: 1 to 128 of [A-Za-z0-9_], the first no digit";

fn is_variable(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&name.len())
        && name.bytes().all(allowed)
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// A name in a path: not its line ends, and not all of a long one.
fn shown(name: &str) -> String {
    name.chars().take(128).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_the_name_of_one() {
        for name in ["A", "_", "a_1", "FILE_PATH", &"x".repeat(128)] {
            assert!(is_variable(name) && check_set(name, "env").is_ok(), "{name}");
        }
        for name in ["", "1A", "A B", "A=B", "A\nB", "\u{e4}", "A-B", &"x".repeat(129)] {
            assert!(!is_variable(name) && check_set(name, "env").is_err(), "{name}");
        }
    }

    #[test]
    fn a_reference_that_is_no_name_is_refused_with_its_path() {
        let reference = SecretRef { env: "A\u{202e}".to_owned() };
        let refused = check_references([("x-key", &reference)], "tool_sources[0].transport.headers").unwrap_err();
        assert_eq!(refused.field, "tool_sources[0].transport.headers.x-key.env");
    }

    #[test]
    fn a_variable_that_changes_which_code_runs_is_not_set() {
        for name in CODE.into_iter().chain(["LD_PRELOAD", "DYLD_X", "path", "npm_config_registry", "UV_INDEX_URL"]) {
            let refused = check_set(name, "env").unwrap_err();
            assert_eq!(refused.field, format!("env.{name}"));
        }
    }

    #[test]
    fn the_list_is_sorted_and_says_nothing_twice() {
        assert!(CODE.is_sorted_by(|one, other| one < other));
    }
}
