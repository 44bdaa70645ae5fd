//! Real ports for the command line: what a scenario would contact, whether a person agrees, and the ports.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use super::attended::{ask_for, forget_typed};
use super::exit::{Exit, Problem, is_hidden, note, printable};
use super::place::quoted;
#[cfg(feature = "mcp")]
use crate::adapters::mcp::McpTools;
#[cfg(feature = "providers")]
use crate::adapters::providers::{Endpoint, ModelJudge, Providers};
use crate::adapters::scenario::{Part, Real, Scenario};
use crate::vocabulary::spec::{ModelSpec, SecretRef, Spec, ToolSource, Transport};

/// The option of every command that may start and contact something.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct Consent {
    /// Start and contact what the scenario names, without asking.
    #[arg(long)]
    yes: bool,
}

/// The options of commands that carry a run on.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Configuration {
    /// The scenario that a run with real parts was started from: nothing else is started or contacted.
    #[arg(long = "with", value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

/// The ports of a run's real parts, and what has to be ended after it.
#[derive(Default)]
pub(crate) struct Live {
    pub(crate) real: Real,
    #[cfg(feature = "mcp")]
    servers: Option<McpTools>,
}

impl Live {
    /// Ends the tool servers, and waits until they have ended.
    pub(crate) async fn close(self) {
        #[cfg(feature = "mcp")]
        if let Some(servers) = self.servers {
            servers.close().await;
        }
    }
}

impl Consent {
    /// The ports that a scenario asks for, once a person has agreed to what they do.
    pub(crate) fn ports(self, path: &Path, scenario: &Scenario) -> Result<Live, Problem> {
        if scenario.real.is_empty() {
            return Ok(Live::default());
        }
        let refused = |reason: String| Problem::usage(format!("{}: {reason}", path.display()));
        let does = announced(scenario).map_err(refused)?;
        let ports = made(scenario).map_err(refused)?;
        note!("portcullis: {} is to be run for real. It will", word(&path.display().to_string()));
        for line in &does {
            note!("  {}", printable(line));
        }
        if !self.yes {
            agree(path)?;
        }
        leave_no_core();
        Ok(ports)
    }
}

/// The option as it has to be typed again, with a space before it.
pub(crate) fn with(path: &Path) -> String {
    format!(" --with {}", quoted(&path.display().to_string()))
}

impl Configuration {
    /// The option as it has to be typed again, with a space before it; empty when it was not given.
    pub(crate) fn again(&self) -> String {
        self.file.as_deref().map(with).unwrap_or_default()
    }

    /// What carries a run on: the scenario of its file, which has to be the one that the run began with.
    pub(crate) fn read(&self, run: &str, began: &Scenario, recorded: &Spec) -> Result<(Scenario, Live), Problem> {
        let Some(path) = &self.file else {
            return Err(Problem::usage(format!(
                "run {run} has real parts, and only its scenario says what to start for them: \
                 portcullis resume {run} --with FILE"
            )));
        };
        let bytes = std::fs::read(path).map_err(|error| Problem::unreadable(Exit::Usage, path, &error))?;
        let bad = |reason: String| Problem::usage(format!("{}: {reason}", path.display()));
        let scenario = Scenario::read(&bytes).map_err(|fault| bad(fault.to_string()))?;
        if let Some(part) = differs(&scenario, began, recorded) {
            return Err(bad(format!("its {part} is not what run {run} began with: nothing is started for it")));
        }
        let ports = self.consent.ports(path, &scenario)?;
        Ok((scenario, ports))
    }

    /// A run without real parts goes on with the script beside it, and with no other.
    pub(crate) fn is_not_wanted(&self, run: &str) -> Result<(), Problem> {
        match &self.file {
            None => Ok(()),
            Some(_) => Err(Problem::usage(format!(
                "run {run} has no real parts, and its script lies beside it: leave --with out"
            ))),
        }
    }
}

/// The first part in which a scenario is not the one that a run began with.
fn differs(scenario: &Scenario, began: &Scenario, recorded: &Spec) -> Option<String> {
    if scenario.real != began.real {
        return Some("`real`".to_owned());
    }
    if let Some(field) = differs_in_spec(&scenario.spec, recorded) {
        return Some(format!("`spec.{field}`"));
    }
    if scenario.environment != began.environment {
        return Some("`environment`".to_owned());
    }
    (scenario.script != began.script).then(|| "`script`".to_owned())
}

/// The first field in which two specs differ.
fn differs_in_spec(one: &Spec, other: &Spec) -> Option<String> {
    if one == other {
        return None;
    }
    let fields = |spec: &Spec| match serde_json::to_value(spec) {
        Ok(serde_json::Value::Object(fields)) => fields,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let (ours, theirs) = (fields(one), fields(other));
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    // Numbers that only differ where this reading rounds them are in the parameters.
    let named = names.into_iter().find(|name| ours.get(*name) != theirs.get(*name)).cloned();
    Some(named.unwrap_or_else(|| "model".to_owned()))
}

/// What a scenario starts and contacts, a line each.
fn announced(scenario: &Scenario) -> Result<Vec<String>, String> {
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
fn word(word: &str) -> String {
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

#[cfg(not(all(feature = "providers", feature = "mcp")))]
fn without(feature: &str) -> String {
    format!("this program was built without `{feature}`; `cargo install portcullis --features full` brings everything")
}

/// The ports. Nothing is started or contacted yet.
fn made(scenario: &Scenario) -> Result<Live, String> {
    let mut live = Live::default();
    for part in &scenario.real {
        match part {
            Part::Model => live.model()?,
            Part::Tools => live.tools(&scenario.spec.tool_sources)?,
            Part::Judge => live.judge(scenario.spec.release.judge_model.as_ref())?,
        }
    }
    Ok(live)
}

#[cfg(feature = "providers")]
impl Live {
    fn model(&mut self) -> Result<(), String> {
        let providers = Providers::new().map_err(|error| error.to_string())?;
        self.real = std::mem::take(&mut self.real).model(providers);
        Ok(())
    }

    fn judge(&mut self, model: Option<&ModelSpec>) -> Result<(), String> {
        let Some(model) = model else { return Ok(()) };
        let providers = Providers::new().map_err(|error| error.to_string())?;
        self.real = std::mem::take(&mut self.real).judge(ModelJudge::new(model.clone(), providers));
        Ok(())
    }
}

#[cfg(not(feature = "providers"))]
impl Live {
    fn model(&mut self) -> Result<(), String> {
        Err(without("providers"))
    }

    fn judge(&mut self, _: Option<&ModelSpec>) -> Result<(), String> {
        Err(without("providers"))
    }
}

#[cfg(feature = "mcp")]
impl Live {
    fn tools(&mut self, sources: &[ToolSource]) -> Result<(), String> {
        let servers = McpTools::new(sources.to_vec());
        self.real = std::mem::take(&mut self.real).tools(servers.clone());
        self.servers = Some(servers);
        Ok(())
    }
}

#[cfg(not(feature = "mcp"))]
impl Live {
    fn tools(&mut self, _: &[ToolSource]) -> Result<(), String> {
        Err(without("mcp"))
    }
}

/// A process that holds keys leaves no image of its memory behind when it crashes, nor do those that it starts.
fn leave_no_core() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // Who may not even lower a limit has one that was set for good reasons.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}

/// Asks on a terminal. Without one nobody can agree.
fn agree(path: &Path) -> Result<(), Problem> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Problem::usage(format!(
            "{}: nobody is here to agree to that: say --yes if it may",
            path.display()
        )));
    }
    forget_typed();
    ask_for("Go on? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Problem::usage(format!("{}: not run", path.display()))),
    }
}
