//! Messages over HTTP: each of ours is a POST, and a request's answer comes with it, as JSON or as a stream of
//! events. No stream beside the answers is opened, since nothing here depends on what a server tells unasked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use rmcp::RoleClient;
use rmcp::model::{ClientNotification, ClientRequest, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot, watch};

use super::events::Events;
use super::message::{Said, answer_to, read};
use super::replies::{Questions, Replies};
use super::{MESSAGE_BYTES_MAX, Message, SendFault, WAITING_MAX};
use crate::adapters::address::{is_direct, keeps_secrets};
use crate::adapters::mcp::references::Held;

/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long a server may take to be told that its session is over.
const GOODBYE_MAX: Duration = Duration::from_secs(2);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Headers that are the protocol's own.
const RESERVED: [&str; 6] = ["accept", "content-length", "content-type", "host", SESSION_NAME, VERSION_NAME];
const SESSION_NAME: &str = "mcp-session-id";
const VERSION_NAME: &str = "mcp-protocol-version";

/// A server's address, with what the two sides know of each other.
pub(in crate::adapters::mcp) struct Endpoint {
    client: Client,
    url: String,
    headers: HeaderMap,
    session: Mutex<Session>,
    /// Requests under way, each with what stops the wait for its answer.
    under_way: Mutex<BTreeMap<i64, oneshot::Sender<()>>>,
    replies: Replies,
    /// The server was not there, or has ended the session: whoever comes next finds a server that has died.
    spent: AtomicBool,
    over: watch::Sender<bool>,
    /// Held while the server is told that its session is over.
    goodbye: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

/// The client's end.
pub(in crate::adapters::mcp) struct Exchange {
    endpoint: Arc<Endpoint>,
    answers: mpsc::Sender<Message>,
    incoming: mpsc::Receiver<Message>,
    over: watch::Receiver<bool>,
}

impl Endpoint {
    /// Prepares an address; nothing is contacted. The error says which header it is about, never its value.
    pub(in crate::adapters::mcp) fn new(
        url: &str,
        headers: &BTreeMap<String, Held<String>>,
    ) -> Result<Arc<Self>, String> {
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let known = HeaderName::try_from(name).map_err(|_| format!("{name:?} is no header's name"))?;
            if RESERVED.contains(&known.as_str()) {
                return Err(format!("the header {name:?} belongs to the protocol"));
            }
            let mut value = HeaderValue::try_from(&value.held)
                .map_err(|_| format!("what the header {name:?} refers to cannot be a header's value"))?;
            value.set_sensitive(true);
            sent.insert(known, value);
        }
        let address = reqwest::Url::parse(url).map_err(|error| format!("{url:?} is no address: {error}"))?;
        if !matches!(address.scheme(), "http" | "https") {
            return Err(format!("{url:?} is no HTTP address"));
        }
        if !sent.is_empty() && !keeps_secrets(&address) {
            return Err(format!("{url:?} is plain http, and headers would be readable on the way: use https"));
        }
        let client = client(&address).map_err(|error| format!("no HTTP client: {error}"))?;
        let (over, _) = watch::channel(false);
        Ok(Arc::new(Self {
            client,
            url: url.to_owned(),
            headers: sent,
            session: Mutex::default(),
            under_way: Mutex::default(),
            replies: Replies::default(),
            spent: AtomicBool::new(false),
            over,
            goodbye: tokio::sync::Mutex::default(),
        }))
    }

    /// The carrier of a client's messages.
    pub(in crate::adapters::mcp) fn exchange(self: &Arc<Self>) -> Exchange {
        let (answers, incoming) = mpsc::channel(WAITING_MAX);
        Exchange { endpoint: Arc::clone(self), answers, incoming, over: self.over.subscribe() }
    }

    /// Whether nothing more can come of it.
    pub(in crate::adapters::mcp) fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Acquire)
    }

    /// Waits for the end of its use.
    pub(super) async fn ended(&self) {
        let mut over = self.over.subscribe();
        // It lives as long as `self`.
        let _ = over.wait_for(|over| *over).await;
    }

    /// Tells the server that its session is over, once. Whoever asks again waits for that.
    pub(in crate::adapters::mcp) async fn end(&self) {
        self.over.send_replace(true);
        let _telling = self.goodbye.lock().await;
        let session = std::mem::take(&mut *self.session.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(id) = session.id {
            let goodbye = self.client.delete(&self.url).headers(self.headers.clone()).header(SESSION, id);
            // It is a courtesy: many servers do not take it.
            let _ = goodbye.timeout(GOODBYE_MAX).send().await;
        }
    }

    fn session(&self) -> Session {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what a message is about before it is carried, in the order of messages: a request can be given up
    /// from then on.
    fn note(&self, kind: Kind) -> Option<oneshot::Receiver<()>> {
        match kind {
            Kind::Request(id) | Kind::Initialize(id) => {
                let (stop, stopped) = oneshot::channel();
                self.under_way().insert(id, stop);
                Some(stopped)
            }
            Kind::Cancels(id) => {
                drop(self.under_way().remove(&id));
                None
            }
            Kind::Other => None,
        }
    }

    /// A request is over.
    fn forget(&self, kind: Kind) {
        if let Kind::Request(id) | Kind::Initialize(id) = kind {
            self.under_way().remove(&id);
        }
    }

    /// Sends a message and brings the answer, if it is a request.
    async fn carry(
        self: &Arc<Self>,
        body: Vec<u8>,
        kind: Kind,
        answers: &mpsc::Sender<Message>,
    ) -> Result<(), SendFault> {
        let (Kind::Request(id) | Kind::Initialize(id)) = kind else {
            return self.post(body).await.map(drop);
        };
        let response = self.post(body).await?;
        let opened = response.headers().get(SESSION).cloned();
        let message = self.answer(response, id).await.map_err(SendFault::Begun)?;
        if let Kind::Initialize(_) = kind {
            let version = version(&message).and_then(|version| HeaderValue::try_from(version).ok());
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Session { id: opened, version };
        }
        // A client that has gone needs no answer.
        let _ = answers.send(message).await;
        Ok(())
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, BTreeMap<i64, oneshot::Sender<()>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts a message. Anything but success is a fault.
    pub(super) async fn post(&self, body: Vec<u8>) -> Result<Response, SendFault> {
        let Session { id, version } = self.session();
        let in_session = id.is_some();
        let mut request = self.client.post(&self.url).headers(self.headers.clone());
        request = request.header(ACCEPT, "application/json, text/event-stream");
        request = request.header(CONTENT_TYPE, "application/json");
        for (name, value) in [(SESSION, id), (VERSION, version)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let response = request.body(body).send().await.map_err(|error| {
            let unwritten = error.is_connect() || error.is_builder();
            let reason = innermost(&error.without_url());
            if unwritten {
                self.spent.store(true, Ordering::Release);
                SendFault::Unwritten(reason)
            } else {
                SendFault::Begun(reason)
            }
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if in_session && status == StatusCode::NOT_FOUND {
            self.spent.store(true, Ordering::Release);
            return Err(SendFault::Begun("the server has ended the session".to_owned()));
        }
        Err(SendFault::Begun(format!("the server answers HTTP {}", status.as_u16())))
    }

    /// Reads the answer to one request.
    async fn answer(self: &Arc<Self>, mut response: Response, id: i64) -> Result<Message, String> {
        let declared = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = declared.and_then(|value| value.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/json" => {
                let mut body = Vec::new();
                while let Some(bytes) = chunk(&mut response).await? {
                    if body.len() + bytes.len() > MESSAGE_BYTES_MAX {
                        return Err(format!("the server's answer has more than {MESSAGE_BYTES_MAX} bytes"));
                    }
                    body.extend_from_slice(&bytes);
                }
                answers(read(&body), id)?.ok_or_else(|| "the server's answer is to something else".to_owned())
            }
            "text/event-stream" => {
                let mut events = Events::default();
                let mut questions = Questions::default();
                while let Some(bytes) = chunk(&mut response).await? {
                    for data in events.take(&bytes)? {
                        let said = read(&data);
                        if let Said::Asks { method, id } = said {
                            questions.count()?;
                            self.replies.send(self, answer_to(&method, id));
                        } else if let Some(message) = answers(said, id)? {
                            return Ok(message);
                        }
                    }
                }
                Err("the server's stream ended before the answer".to_owned())
            }
            _ => Err("the server's answer is neither JSON nor a stream of events".to_owned()),
        }
    }
}

/// Nothing is sent twice, and nothing to a place that the spec does not name.
fn client(address: &reqwest::Url) -> Result<Client, reqwest::Error> {
    let builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_MAX)
        .pool_max_idle_per_host(0);
    if is_direct(address) { builder.no_proxy().build() } else { builder.build() }
}

impl Transport<RoleClient> for Exchange {
    type Error = SendFault;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendFault>> + Send + 'static {
        let body = serde_json::to_vec(&item).map_err(|error| SendFault::Unwritten(error.to_string()));
        let (kind, endpoint, answers) = (Kind::of(&item), Arc::clone(&self.endpoint), self.answers.clone());
        let given_up = body.is_ok().then(|| endpoint.note(kind)).flatten();
        async move {
            let carried = endpoint.carry(body?, kind, &answers);
            let Some(given_up) = given_up else { return carried.await };
            let carried = tokio::select! {
                carried = carried => carried,
                // Dropping the wait closes the connection.
                _ = given_up => Ok(()),
            };
            endpoint.forget(kind);
            carried
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        tokio::select! {
            biased;
            message = self.incoming.recv() => message,
            _ = self.over.wait_for(|over| *over) => None,
        }
    }

    async fn close(&mut self) -> Result<(), SendFault> {
        self.endpoint.end().await;
        Ok(())
    }
}

/// What a message of ours is to the carrier.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// The handshake.
    Initialize(i64),
    /// A request.
    Request(i64),
    /// Nobody waits for this request any more.
    Cancels(i64),
    /// Something that has no answer.
    Other,
}

impl Kind {
    fn of(message: &TxJsonRpcMessage<RoleClient>) -> Self {
        let number = |id: &RequestId| match id {
            RequestId::Number(id) => Some(*id),
            RequestId::String(_) => None,
        };
        let kind = match message {
            TxJsonRpcMessage::<RoleClient>::Request(asked) => {
                let initializes = matches!(asked.request, ClientRequest::InitializeRequest(_));
                number(&asked.id).map(if initializes { Self::Initialize } else { Self::Request })
            }
            TxJsonRpcMessage::<RoleClient>::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification {
                    cancelled.params.request_id.as_ref().and_then(number).map(Self::Cancels)
                } else {
                    None
                }
            }
            TxJsonRpcMessage::<RoleClient>::Response(_) | TxJsonRpcMessage::<RoleClient>::Error(_) => None,
        };
        kind.unwrap_or(Self::Other)
    }
}

/// The message, if it is the answer to that request. An error that is to nobody came with it, and is to it.
fn answers(said: Said, id: i64) -> Result<Option<Message>, String> {
    let mut message = match said {
        Said::Answer(message) => *message,
        Said::Unreadable(reason) => return Err(reason),
        Said::Asks { .. } | Said::Tells | Said::Noise => return Ok(None),
    };
    let own = match &mut message {
        Message::Response(response) => response.id == RequestId::Number(id),
        Message::Error(error) => *error.id.get_or_insert(RequestId::Number(id)) == RequestId::Number(id),
        Message::Request(_) | Message::Notification(_) => false,
    };
    Ok(own.then_some(message))
}

/// The version that a handshake agreed on.
fn version(message: &Message) -> Option<String> {
    let Message::Response(response) = message else { return None };
    let rmcp::model::ServerResult::InitializeResult(result) = &response.result else { return None };
    Some(result.protocol_version.as_str().to_owned())
}

async fn chunk(response: &mut Response) -> Result<Option<impl std::ops::Deref<Target = [u8]>>, String> {
    response.chunk().await.map_err(|error| innermost(&error.without_url()))
}

/// The last cause in a chain of errors: the others only say where it happened.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    super::super::text::remark(&cause.to_string())
}
