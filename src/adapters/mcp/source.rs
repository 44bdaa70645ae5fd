//! One server of the live configuration: when it is started, and when it is not started again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::connection::Connection;
use super::declaration::declare;
use super::fault::Fault;
use super::listing::Listed;
use super::names::check_source;
use super::references::Reach;
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::spec::{ToolSource, ToolSpec};

/// A server, shared by all runs.
pub(super) struct Source {
    pub(super) live: ToolSource,
    standing: Mutex<Standing>,
}

/// How a server stands.
enum Standing {
    /// It was not started, or was ended in order.
    Idle,
    /// It was started.
    Up(Up),
    /// It died again after it was started again, or could not be.
    Spent {
        /// For people.
        reason: String,
    },
}

#[derive(Clone)]
struct Up {
    connection: Arc<Connection>,
    restart: Restart,
    offers: Offers,
}

/// Whether a server that dies is started again: once, and once more after it has answered.
#[derive(Clone, Copy)]
enum Restart {
    Left,
    Used,
}

/// What is known of a server's tools.
#[derive(Clone)]
enum Offers {
    /// They were resolved while it ran: it says itself what has gone.
    Resolved,
    /// It was started for a call, behind the back of what was resolved: these are what it has.
    Only(Arc<BTreeSet<String>>),
}

impl Source {
    pub(super) fn new(live: ToolSource) -> Self {
        Self { live, standing: Mutex::new(Standing::Idle) }
    }

    /// The server's tools, for a run that names it so. It is started if it does not run.
    pub(super) async fn resolve(&self, asked: &ToolSource) -> Result<Vec<ToolSpec>, ResolutionError> {
        let routing = |message: String| ResolutionError::Routing { message };
        check_source(&asked.name).map_err(routing)?;
        let no_route = |reason: String| routing(format!("the tool server {:?}: {reason}", asked.name));
        // Nobody's calls wait for a list of a server that runs.
        if let Some(connection) = self.running().await {
            match connection.list().await {
                Ok(listed) => {
                    let tools = declare(asked, &listed)?;
                    self.resolved(&connection).await;
                    return Ok(tools);
                }
                Err(fault) if connection.is_open() => return Err(no_route(fault.to_string())),
                // It had died, or died of this: it is started anew.
                Err(_) => {}
            }
        }
        let mut standing = self.standing.lock().await;
        *standing = Standing::Idle;
        let (connection, listed) = self.start().await.map_err(no_route)?;
        let tools = declare(asked, &listed)?;
        *standing = Standing::Up(Up { connection, restart: Restart::Left, offers: Offers::Resolved });
        Ok(tools)
    }

    /// The connection to the server, if it runs.
    async fn running(&self) -> Option<Arc<Connection>> {
        match &*self.standing.lock().await {
            Standing::Up(up) => up.connection.is_open().then(|| Arc::clone(&up.connection)),
            Standing::Idle | Standing::Spent { .. } => None,
        }
    }

    /// A resolution took the list of that connection.
    async fn resolved(&self, over: &Arc<Connection>) {
        if let Standing::Up(up) = &mut *self.standing.lock().await
            && Arc::ptr_eq(&up.connection, over)
        {
            (up.restart, up.offers) = (Restart::Left, Offers::Resolved);
        }
    }

    async fn start(&self) -> Result<(Arc<Connection>, Vec<Listed>), String> {
        let reach = Reach::of(&self.live.transport)?;
        let connection = Arc::new(Connection::open(&reach).await?);
        match connection.list().await {
            Ok(listed) => {
                tracing::debug!(source = self.live.name, tools = listed.len(), "a tool server is up");
                Ok((connection, listed))
            }
            Err(fault) => Err(connection.failed_start(fault).await),
        }
    }

    /// A connection over which that tool can be called. A server that died is started again, once. The error is
    /// a proof that nothing was written.
    pub(super) async fn connected(&self, tool: &str) -> Result<Arc<Connection>, Fault> {
        let mut standing = self.standing.lock().await;
        let up = self.up(&mut standing).await.map_err(Fault::Unwritten)?;
        match &up.offers {
            Offers::Only(names) if !names.contains(tool) => {
                Err(Fault::Unwritten("the server was started again and does not list this tool any more".to_owned()))
            }
            Offers::Only(_) | Offers::Resolved => Ok(up.connection),
        }
    }

    async fn up(&self, standing: &mut Standing) -> Result<Up, String> {
        let restart = match &*standing {
            Standing::Up(up) if up.connection.is_open() => return Ok(up.clone()),
            Standing::Spent { reason } => return Err(reason.clone()),
            Standing::Up(Up { restart: Restart::Used, .. }) => {
                let reason = "the server died again after it was started again".to_owned();
                *standing = Standing::Spent { reason: reason.clone() };
                return Err(reason);
            }
            Standing::Up(Up { restart: Restart::Left, .. }) => Restart::Used,
            Standing::Idle => Restart::Left,
        };
        if let Restart::Used = restart {
            tracing::warn!(source = self.live.name, "a tool server died and is started again");
            // Also when whoever asked for it does not wait for its end.
            *standing = Standing::Spent { reason: "the server died and could not be started again".to_owned() };
        }
        let started = self.start().await;
        let (connection, listed) = match started {
            Ok(started) => started,
            Err(reason) => {
                if let Standing::Spent { reason: kept } = standing {
                    *kept = format!("the server died and could not be started again: {reason}");
                }
                return Err(reason);
            }
        };
        let names = listed.into_iter().map(|tool| tool.name).collect();
        let up = Up { connection, restart, offers: Offers::Only(Arc::new(names)) };
        *standing = Standing::Up(up.clone());
        Ok(up)
    }

    /// That connection brought an answer: its server may be started again should it die.
    pub(super) async fn answered(&self, over: &Arc<Connection>) {
        if let Standing::Up(up) = &mut *self.standing.lock().await
            && Arc::ptr_eq(&up.connection, over)
        {
            up.restart = Restart::Left;
        }
    }

    /// What the server declares now; nothing if it cannot be asked.
    pub(super) async fn declares(&self) -> Vec<ToolSpec> {
        match self.resolve(&self.live).await {
            Ok(tools) => tools,
            Err(error) => {
                tracing::warn!(source = self.live.name, reason = %error, "a tool server declares nothing");
                Vec::new()
            }
        }
    }

    /// Ends the server and waits until it has ended.
    pub(super) async fn end(&self) {
        let mut standing = self.standing.lock().await;
        if let Standing::Up(up) = std::mem::replace(&mut *standing, Standing::Idle) {
            up.connection.end().await;
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Source").field(&self.live.name).finish()
    }
}
