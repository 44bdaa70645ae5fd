//! What a scenario with real parts starts and contacts, as a person has to know it before they agree (SPEC 14.19).

use std::collections::BTreeMap;

use super::exit::is_hidden;
#[cfg(not(all(feature = "providers", feature = "mcp")))]
use super::live::without;
use super::place::quoted;
#[cfg(feature = "providers")]
use crate::adapters::providers::Endpoint;
use crate::adapters::scenario::{Part, Scenario};
use crate::vocabulary::spec::{ModelSpec, SecretRef, Spec, ToolSource, Transport};

/// What a scenario starts and contacts, a line each.
pub(super) fn announced(scenario: &Scenario) -> Result<Vec<String>, String> {
    let Spec { model, fallbacks, release, tool_sources, .. } = &*scenario.spec;
    let mut lines = Vec::new();
    if scenario.real.contains(&Part::Model) {
        for model in std::iter::once(model).chain(fallbacks) {
            lines.push(contacted("ask the model", model)?);
        }
    }
    if let (true, Some(judge)) = (scenario.real.contains(&Part::Judge), &release.judge_model) {
        lines.push(contacted("have conclusions judged by the model", judge)?);
    }
    if scenario.real.contains(&Part::Tools) {
        for source in tool_sources {
            stated(source)?;
            lines.push(started(source)?);
        }
    }
    Ok(lines)
}

/// A tool server, as a person has to know of it before it is started.
fn started(source: &ToolSource) -> Result<String, String> {
    match &source.transport {
        Transport::Stdio { command, args, env } => {
            let program = program(command)?;
            let words: Vec<String> =
                std::iter::once(program.as_str()).chain(args.iter().map(String::as_str)).map(word).collect();
            Ok(format!("start the process {}{}", words.join(" "), handed("with", env)))
        }
        Transport::Http { url, headers } => {
            Ok(format!("contact the tool server {}{}", word(&address(url)?), handed("sending", headers)))
        }
    }
}

/// What leaves this process, and under which name.
fn handed(verb: &str, secrets: &BTreeMap<String, SecretRef>) -> String {
    let named: Vec<String> =
        secrets.iter().map(|(name, secret)| format!("{}=${}", word(name), word(&secret.env))).collect();
    if named.is_empty() { String::new() } else { format!(", {verb} {}", named.join(" ")) }
}

/// A word as a shell reads it back; one that a terminal would obey, or that has more than one line, in escapes.
pub(super) fn word(word: &str) -> String {
    if word.chars().any(is_hidden) { format!("{word:?}") } else { quoted(word) }
}

/// Whether what the file says of a source's tools can be so.
#[cfg(feature = "mcp")]
fn stated(source: &ToolSource) -> Result<(), String> {
    crate::adapters::mcp::stated(source).map(drop).map_err(|error| error.to_string())
}

#[cfg(not(feature = "mcp"))]
fn stated(_: &ToolSource) -> Result<(), String> {
    Err(without("mcp"))
}

#[cfg(feature = "mcp")]
fn program(command: &str) -> Result<String, String> {
    Ok(crate::adapters::mcp::program(command)?.display().to_string())
}

#[cfg(not(feature = "mcp"))]
fn program(_: &str) -> Result<String, String> {
    Err(without("mcp"))
}

/// An address as it is contacted, however it is written.
#[cfg(feature = "mcp")]
fn address(url: &str) -> Result<String, String> {
    reqwest::Url::parse(url).map(String::from).map_err(|error| format!("{} is no address: {error}", word(url)))
}

#[cfg(not(feature = "mcp"))]
fn address(_: &str) -> Result<String, String> {
    Err(without("mcp"))
}

#[cfg(feature = "providers")]
fn contacted(verb: &str, model: &ModelSpec) -> Result<String, String> {
    let bad = |reason: String| format!("the model {}: {reason}", word(&model.name));
    let endpoint = Endpoint::of(model).map_err(|error| bad(error.message().to_owned()))?;
    let key = match &endpoint.key {
        None => "without a key".to_owned(),
        Some(key) if std::env::var_os(key).is_none() => {
            return Err(bad(format!("its key is to stand in the variable {}, which is not set", word(key))));
        }
        Some(key) => format!("sending ${}", word(key)),
    };
    Ok(format!("{verb} {} at {}, {key}", word(&model.name), endpoint.url))
}

#[cfg(not(feature = "providers"))]
fn contacted(_: &str, _: &ModelSpec) -> Result<String, String> {
    Err(without("providers"))
}
