//! Real components: programs that nobody here wrote.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};

/// A program that some tests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    /// A small model behind llama.cpp's server.
    Llama,
    /// `server-everything`.
    Everything,
    /// `server-filesystem`.
    Filesystem,
    /// `server-memory`.
    Memory,
    /// `mcp-server-time`.
    Time,
    /// `mcp-server-git`.
    Git,
}

impl Component {
    const ALL: [Self; 6] = [Self::Llama, Self::Everything, Self::Filesystem, Self::Memory, Self::Time, Self::Git];

    /// What it is called.
    const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama.cpp with SmolLM2",
            Self::Everything => "MCP server-everything",
            Self::Filesystem => "MCP server-filesystem",
            Self::Memory => "MCP server-memory",
            Self::Time => "mcp-server-time",
            Self::Git => "mcp-server-git",
        }
    }

    /// Its program, inside the folder of components.
    const fn place(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Everything => "node_modules/.bin/mcp-server-everything",
            Self::Filesystem => "node_modules/.bin/mcp-server-filesystem",
            Self::Memory => "node_modules/.bin/mcp-server-memory",
            Self::Time => "venv/bin/mcp-server-time",
            Self::Git => "venv/bin/mcp-server-git",
        }
    }

    /// The program, or nothing where it is not installed.
    pub(crate) fn find(self) -> Option<PathBuf> {
        let program = folder().join(self.place());
        program.exists().then_some(program)
    }

    /// The program.
    pub(crate) fn program(self) -> PathBuf {
        self.find().unwrap_or_else(|| panic!("{} is not here", self.name()))
    }
}

fn folder() -> PathBuf {
    let named = std::env::var_os("PORTCULLIS_COMPONENTS").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/components"))
}

/// The components that are not here.
pub(crate) fn missing() -> impl Iterator<Item = &'static str> {
    Component::ALL.into_iter().filter(|component| component.find().is_none()).map(Component::name)
}

/// A test that needs nothing but this program.
pub(crate) fn test<F>(name: &'static str, run: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    Trial::test(name, move || {
        wait(run());
        Ok(())
    })
}

/// A test that needs a component: ignored without it, or failed where components are required.
pub(crate) fn real<F>(component: Component, name: &'static str, run: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    let required = std::env::var_os("PORTCULLIS_REQUIRE_COMPONENTS").is_some_and(|value| value == "1");
    let absent = component.find().is_none();
    let trial = Trial::test(name, move || {
        if absent {
            return Err(Failed::from(format!("{} is not here", component.name())));
        }
        wait(run());
        Ok(())
    });
    trial.with_ignored_flag(absent && !required)
}

/// No test takes longer: a hang is a failure.
const PATIENCE: Duration = Duration::from_secs(120);

fn wait(run: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, run).await.expect("a test that hangs");
    });
}
