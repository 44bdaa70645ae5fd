//! A live configuration of tool servers, and calls of their tools one by one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis::adapters::mcp::McpTools;
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::Runtime;
use portcullis::runtime::ports::{Invocation, Model, ModelAnswer, ModelCall, ModelFailure, Tools};
use portcullis::vocabulary::environment::Environment;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::llm::ToolRequest;
use portcullis::vocabulary::spec::{Spec, ToolSource, ToolSpec, Transport};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};
use tokio::sync::{mpsc, oneshot};

use crate::components::Component;

/// A source over standard streams.
pub(crate) fn stdio(name: &str, command: impl AsRef<std::path::Path>, args: &[&str]) -> ToolSource {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let command = command.as_ref().display().to_string();
    source(name, Transport::Stdio { command, args, env: BTreeMap::new() })
}

/// A source over HTTP.
pub(crate) fn http(name: &str, url: impl Into<String>) -> ToolSource {
    source(name, Transport::Http { url: url.into(), headers: BTreeMap::new() })
}

fn source(name: &str, transport: Transport) -> ToolSource {
    ToolSource { name: name.to_owned(), transport, only: None, tools: BTreeMap::new(), trust_hints: false }
}

/// A real server's source.
pub(crate) fn component(name: &str, component: Component, args: &[&str]) -> ToolSource {
    stdio(name, component.program(), args)
}

/// The same source with settings of one tool.
pub(crate) fn with(mut source: ToolSource, tool: &str, settings: &str) -> ToolSource {
    source.tools.insert(tool.to_owned(), portcullis::vocabulary::json::Json::parse(settings).unwrap());
    source
}

/// The same source with some of its tools.
pub(crate) fn only(mut source: ToolSource, tools: &[&str]) -> ToolSource {
    source.only = Some(tools.iter().map(|tool| (*tool).to_owned()).collect());
    source
}

/// A spec that names these sources.
pub(crate) fn spec(sources: &[ToolSource]) -> Spec {
    Spec { tool_sources: sources.to_vec(), ..Spec::new("t", "m") }
}

/// Tools that were resolved.
pub(crate) struct Bench {
    pub(crate) tools: Arc<McpTools>,
    pub(crate) environment: Environment,
}

impl Bench {
    /// Starts the sources and resolves their tools.
    pub(crate) async fn new(sources: impl IntoIterator<Item = ToolSource>) -> Result<Self, ResolutionError> {
        let sources: Vec<ToolSource> = sources.into_iter().collect();
        let tools = Arc::new(McpTools::new(sources.clone()));
        let environment = tools.resolve(&spec(&sources)).await?;
        Ok(Self { tools, environment })
    }

    /// The tool of that name.
    pub(crate) fn tool(&self, name: &str) -> &ToolSpec {
        self.environment.tools.iter().find(|tool| tool.name == name).unwrap()
    }

    /// The names of all tools.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.environment.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Calls a tool as a run would: what it says is what the run is told.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Result<ToolOutput, ToolError> {
        self.tools.invoke(self.invocation(tool, arguments).await).await
    }

    /// The same, where nothing but text is expected.
    pub(crate) async fn text(&self, tool: &str, arguments: &str) -> String {
        match self.call(tool, arguments).await {
            Ok(ToolOutput::Success { content, .. }) => content,
            other => panic!("{tool}: {other:?}"),
        }
    }

    /// What a run asks a tool with: one that is caught on its way there.
    pub(crate) async fn invocation(&self, tool: &str, arguments: &str) -> Invocation {
        let (caught, waiting) = oneshot::channel();
        let environment = self.environment.clone();
        let net = Net { environment, caught: Mutex::new(Some(caught)) };
        let request = ToolRequest { name: tool.to_owned(), arguments: arguments.to_owned(), provider_id: None };
        let runtime = Runtime::builder().store(MemoryStore::new()).model(Script::new([vec![request]])).tools(net);
        let runtime = runtime.build().unwrap();
        let handle = runtime.start(Spec::new("t", "m")).await.unwrap();
        let caught = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        let caught = caught.unwrap_or_else(|_| panic!("the engine does not call {tool} with {arguments}"));
        let _ = handle.outcome().await;
        caught.unwrap()
    }
}

struct Net {
    environment: Environment,
    caught: Mutex<Option<oneshot::Sender<Invocation>>>,
}

impl Tools for Net {
    async fn resolve(&self, _: &Spec) -> Result<Environment, ResolutionError> {
        Ok(self.environment.clone())
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let caught = self.caught.lock().unwrap().take().unwrap();
        caught.send(invocation).unwrap();
        Ok(ToolOutput::text(""))
    }
}

/// A model that asks for these batches in order, and then says its last words.
pub(crate) struct Script {
    batches: Mutex<std::collections::VecDeque<Vec<ToolRequest>>>,
    last: String,
    /// What it was shown, each time.
    pub(crate) shown: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) fn new(batches: impl IntoIterator<Item = Vec<ToolRequest>>) -> Self {
        let last = r#"{"conclusion":{"statement":"s"},"citations":["f1"]}"#.to_owned();
        Self { batches: Mutex::new(batches.into_iter().collect()), last, shown: Arc::default() }
    }

    /// One call a batch.
    pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let request = |(name, arguments): (&str, &str)| {
            vec![ToolRequest { name: name.to_owned(), arguments: arguments.to_owned(), provider_id: None }]
        };
        Self::new(calls.into_iter().map(request))
    }
}

impl Model for Script {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        self.shown.lock().unwrap().push(format!("{:?}", call.messages));
        let next = self.batches.lock().unwrap().pop_front();
        Ok(next.map_or_else(|| ModelAnswer::text(self.last.clone()), ModelAnswer::calls))
    }
}

/// Where hostile servers report what happens to them, a line each.
pub(crate) struct Ear {
    pub(crate) port: u16,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Ear {
    pub(crate) async fn open() -> Self {
        use tokio::io::{AsyncBufReadExt, BufReader};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, lines) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut lines = BufReader::new(stream).lines();
                    while let Ok(Some(line)) = lines.next_line().await {
                        let _ = tell.send(line);
                    }
                });
            }
        });
        Self { port, lines }
    }

    /// Waits for a report that begins so.
    pub(crate) async fn hear(&mut self, beginning: &str) -> String {
        let heard = async {
            loop {
                let line = self.lines.recv().await.unwrap();
                if line.starts_with(beginning) {
                    return line;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap_or_else(|_| panic!("no {beginning:?}"))
    }

    /// The reports that have come.
    pub(crate) fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }
}

/// Whether a process runs; a zombie counts as one.
pub(crate) fn runs(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

/// Waits until a process has gone.
pub(crate) async fn gone(process: u32) {
    let gone = async {
        while runs(process) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap_or_else(|_| panic!("{process} is still there"));
}

/// Waits until nothing of a process group runs. Those that it orphaned are reaped by others.
pub(crate) async fn none_of(group: u32) {
    let group = group.to_string();
    let alive = || {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let mut states = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        states.any(|stat| {
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
            fields.get(2) == Some(&group.as_str()) && fields.first() != Some(&"Z")
        })
    };
    let none = async {
        while alive() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), none).await.unwrap_or_else(|_| panic!("{group} goes on"));
}

/// Children of this process whose command line has that in it.
pub(crate) fn children(with: &str) -> Vec<u32> {
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        parent == Some(own) && String::from_utf8_lossy(&command).contains(with)
    };
    ids.filter(is_ours).collect()
}

/// Ends a process the hard way.
pub(crate) fn kill(process: u32) {
    let id = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}

/// The most memory that this process ever had, in MiB.
pub(crate) fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}
