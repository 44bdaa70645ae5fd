//! A connection to one server: handshake, list, call.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientCapabilities,
    ClientRequest, Implementation, InitializeRequestParams, JsonObject, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{ClientInitializeError, Peer, PeerRequestOptions, RunningService, serve_client};
use tokio::runtime::Handle;

use super::fault::Fault;
use super::listing::{Listed, Listing};
use super::references::Reach;
use super::secrets::Handed;
use super::text::remark;
use super::transport::{Endpoint, GivenUp, Process, pipe};
use crate::vocabulary::tool::ToolOutput;

/// How long a server may take from its start to the end of the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(30);
/// How long its whole list may take.
const LIST_MAX: Duration = Duration::from_secs(30);

/// A server that has shaken hands. Dropping it ends the server's process or session.
pub(super) struct Connection {
    service: RunningService<RoleClient, InitializeRequestParams>,
    link: Link,
    handed: Arc<Handed>,
}

/// What is at the other end.
enum Link {
    /// A process of ours.
    Process { process: Process, given_up: GivenUp },
    /// An address.
    Endpoint(Arc<Endpoint>),
}

impl Connection {
    /// Reaches a server. The error is for people, and without what the server was handed.
    pub(super) async fn open(reach: &Reach) -> Result<Self, String> {
        let handed = Arc::new(Handed::over(reach));
        let opened = Self::open_with(reach, &handed).await;
        opened.map_err(|reason| handed.strike(&reason))
    }

    async fn open_with(reach: &Reach, handed: &Arc<Handed>) -> Result<Self, String> {
        let with = |service, link| Self { service, link, handed: Arc::clone(handed) };
        match reach {
            Reach::Process { program, args, env } => {
                let (starting, stdin, stdout) = Process::start(program, args, env, handed)
                    .map_err(|error| format!("{} could not be started: {error}", program.display()))?;
                let (carrier, writing, given_up) = pipe(stdin, stdout);
                let process = starting.keep(writing);
                match shake_hands(serve_client(ourselves(), carrier)).await {
                    Ok(service) => Ok(with(service, Link::Process { process, given_up })),
                    Err(Unshaken::Answered(reason)) => Err(reason),
                    Err(Unshaken::Silent(reason)) => match given_up.get() {
                        Some(why) => Err(why.clone()),
                        None => Err(process.failed_start().await.unwrap_or(reason)),
                    },
                }
            }
            Reach::Endpoint { url, headers } => {
                let endpoint = Endpoint::new(url, headers)?;
                match shake_hands(serve_client(ourselves(), endpoint.exchange())).await {
                    Ok(service) => Ok(with(service, Link::Endpoint(endpoint))),
                    Err(Unshaken::Answered(reason) | Unshaken::Silent(reason)) => Err(reason),
                }
            }
        }
    }

    /// Whether a request can still be handed over.
    pub(super) fn is_open(&self) -> bool {
        let ended = match &self.link {
            Link::Process { process, .. } => process.ending().is_some(),
            Link::Endpoint(endpoint) => endpoint.is_spent(),
        };
        !ended && !self.service.is_transport_closed()
    }

    /// Ends it and waits until its process has ended or its session was told so.
    pub(super) async fn end(&self) {
        self.service.cancellation_token().cancel();
        match &self.link {
            Link::Process { process, .. } => process.end().await,
            Link::Endpoint(endpoint) => endpoint.end().await,
        }
    }

    /// The server's tools, page by page.
    pub(super) async fn list(&self) -> Result<Vec<Listed>, Fault> {
        match tokio::time::timeout(LIST_MAX, self.pages()).await {
            Ok(listed) => listed,
            Err(_) => Err(Fault::Broken(format!("no list of tools within {} seconds", LIST_MAX.as_secs()))),
        }
    }

    /// Why a list that belongs to a start is not there. A process that ended says more.
    pub(super) async fn failed_start(&self, fault: Fault) -> String {
        match (&self.link, fault) {
            (Link::Process { process, given_up }, Fault::Lost(reason)) if given_up.get().is_none() => {
                process.failed_start().await.unwrap_or(reason)
            }
            (Link::Process { .. } | Link::Endpoint(_), fault) => fault.to_string(),
        }
    }

    async fn pages(&self) -> Result<Vec<Listed>, Fault> {
        let mut listing = Listing::default();
        let mut cursors = BTreeSet::new();
        let mut cursor: Option<String> = None;
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let ServerResult::ListToolsResult(page) = self.request(request).await? else {
                return Err(Fault::Broken("its list of tools has not the protocol's form".to_owned()));
            };
            let added = listing.add(page.tools).map_err(|reason| Fault::Broken(self.handed.strike(&reason)));
            added?;
            if listing.latest().any(|text| self.handed.is_told(&text)) {
                return Err(Fault::Broken("its list of tools holds a secret that it was handed".to_owned()));
            }
            let Some(next) = page.next_cursor else { return Ok(listing.tools) };
            if !cursors.insert(next.clone()) {
                return Err(Fault::Broken("its list of tools goes round in a circle".to_owned()));
            }
            cursor = Some(next);
        }
    }

    /// Calls a tool, once. Dropping the call tells the server that nobody waits for it.
    pub(super) async fn call(&self, tool: &str, arguments: JsonObject) -> Result<CallToolResult, Fault> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.request(ClientRequest::CallToolRequest(CallToolRequest::new(params))).await?;
        if let ServerResult::CallToolResult(result) = result {
            Ok(result)
        } else if let ServerResult::InputRequiredResult(_) = result {
            Err(Fault::Broken("it asks for input before it answers, which is not supported".to_owned()))
        } else {
            Err(Fault::Broken("its result has not the protocol's form".to_owned()))
        }
    }

    async fn request(&self, request: ClientRequest) -> Result<ServerResult, Fault> {
        let handed = self.service.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        // The client took it only if this is no error.
        let handle = handed.map_err(|error| Fault::Unwritten(remark(&error.to_string())))?;
        let waited = Waited { peer: self.service.peer().clone(), id: Some(handle.id.clone()) };
        let answer = handle.await_response().await;
        waited.ends();
        answer.map_err(|error| self.explained(Fault::of(error)))
    }

    /// Output as a run may have it: without the secrets that the server was handed.
    pub(super) fn without_secrets(&self, output: ToolOutput) -> Result<ToolOutput, Fault> {
        if self.handed.is_told(output.content()) {
            return Err(Fault::Broken("the answer holds a secret that the server was handed".to_owned()));
        }
        Ok(output)
    }

    /// A connection that was given up says why. What the server was handed is not repeated.
    fn explained(&self, fault: Fault) -> Fault {
        let fault = fault.map(|reason| self.handed.strike(&reason));
        let Link::Process { process, given_up } = &self.link else { return fault };
        match fault {
            Fault::Lost(reason) => Fault::Lost(given_up.get().cloned().or_else(|| process.ending()).unwrap_or(reason)),
            Fault::Unwritten(_) | Fault::Refused { .. } | Fault::Broken(_) => fault,
        }
    }
}

/// A request that somebody waits for. When it is dropped before it is over, the server is told.
struct Waited {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Waited {
    fn ends(mut self) {
        self.id = None;
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let cancelled = CancelledNotificationParam::new(Some(id), Some("nobody waits for it any more".to_owned()));
            // A server that has gone needs not be told.
            let _ = peer.notify_cancelled(cancelled).await;
        });
    }
}

/// What servers are told of us: no capability, so that a polite one asks for nothing.
fn ourselves() -> InitializeRequestParams {
    let client = Implementation::new("portcullis", env!("CARGO_PKG_VERSION"));
    InitializeRequestParams::new(ClientCapabilities::default(), client)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// Why there was no handshake, for people.
enum Unshaken {
    /// The server answered something else.
    Answered(String),
    /// It said nothing, or has gone: what became of it says more.
    Silent(String),
}

async fn shake_hands<S>(handshake: impl Future<Output = Result<S, ClientInitializeError>>) -> Result<S, Unshaken> {
    match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(ClientInitializeError::TransportError { error, .. })) => {
            Err(Unshaken::Silent(remark(&error.error.to_string())))
        }
        Ok(Err(error @ ClientInitializeError::ConnectionClosed(_))) => {
            Err(Unshaken::Silent(remark(&error.to_string())))
        }
        // The list of another crate.
        Ok(Err(error)) => Err(Unshaken::Answered(remark(&error.to_string()))),
        Err(_) => Err(Unshaken::Silent(format!("no handshake within {} seconds", HANDSHAKE_MAX.as_secs()))),
    }
}
