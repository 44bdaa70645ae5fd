//! One HTTP exchange within limits. Whatever a server sends, it meets a limit before it fills the memory.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, ClientBuilder, Response, redirect};

use super::dialect::Dialect;
use super::endpoint::Endpoint;
use super::failure;
use super::key::Key;
use super::reading::is_word;
use crate::adapters::address::is_direct;
use crate::vocabulary::llm;

/// The largest whole answer, in bytes.
pub const BODY_BYTES_MAX: usize = 4 << 20;
/// The largest stream, in bytes: much of it is frames around few words. What is kept of it is no more than
/// [`BODY_BYTES_MAX`].
pub const STREAM_BYTES_MAX: usize = 64 << 20;
/// The largest event or line of a stream, in bytes.
pub const EVENT_BYTES_MAX: usize = 1 << 20;

/// Of an error's body, that much is looked at, and for so long.
const ERROR_BYTES_MAX: usize = 64 << 10;
const ERROR_PATIENCE: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The connections to all endpoints.
#[derive(Clone)]
pub(super) struct Transport {
    /// Plain http, and this machine: never by a proxy, which would read keys and answers.
    direct: Client,
    /// Everything else: by the proxy that the environment names, if it does. It sees the host, and no more.
    outward: Client,
}

/// A success whose body was not read yet.
pub(super) struct Answer {
    pub(super) response: Response,
    media: Media,
}

/// What a body is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    Events,
    JsonLines,
}

impl Transport {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        Ok(Self { direct: client().no_proxy().build()?, outward: client().build()? })
    }

    /// Sends one request. It comes back when the head of a success is there.
    ///
    /// # Errors
    /// No connection, a redirect, or a status that is no success.
    pub(super) async fn post(
        &self,
        endpoint: &Endpoint,
        dialect: &dyn Dialect,
        key: Option<&Key>,
        body: String,
    ) -> Result<Answer, llm::Error> {
        let client = if is_direct(&endpoint.url) { &self.direct } else { &self.outward };
        let mut headers = dialect.headers(key)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = client.post(endpoint.url.clone()).headers(headers).body(body);
        let response = request.send().await.map_err(|error| unreached(endpoint, &error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(Answer { media: media(response.headers())?, response });
        }
        if status.is_redirection() {
            let message = format!("HTTP {}: redirects are not followed: set base_url to the address", status.as_u16());
            return Err(llm::Error::Binding { message });
        }
        let headers = response.headers().clone();
        let body = tokio::time::timeout(ERROR_PATIENCE, read(response, ERROR_BYTES_MAX)).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        Err(failure::of_status(status.as_u16(), &headers, &body))
    }
}

fn client() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
}

impl Answer {
    /// Whether the body is one JSON text, also where a stream was asked for.
    pub(super) fn is_whole(&self) -> bool {
        self.media == Media::Json
    }

    /// The whole body.
    pub(super) async fn whole(self) -> Result<Vec<u8>, llm::Error> {
        match self.media {
            Media::Json => read(self.response, BODY_BYTES_MAX).await,
            Media::Events | Media::JsonLines => {
                let message = "a stream was sent, and none was asked for".to_owned();
                Err(llm::Error::Provider { message })
            }
        }
    }
}

/// A body of at most so many bytes.
async fn read(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, llm::Error> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| broken(&error))? {
        if body.len() + bytes.len() > bytes_max {
            return Err(llm::Error::Provider { message: format!("the answer is larger than {bytes_max} bytes") });
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// What the body of a success is. Compressed ones are not asked for and not taken: their size says nothing.
fn media(headers: &HeaderMap) -> Result<Media, llm::Error> {
    let provider = |message: String| Err(llm::Error::Provider { message });
    if headers.get_all(CONTENT_ENCODING).iter().any(|encoding| encoding != "identity") {
        return provider("the answer is compressed, and that was not asked for".to_owned());
    }
    let named = headers.get(CONTENT_TYPE).and_then(|named| named.to_str().ok()).unwrap_or_default();
    let essence = named.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Ok(Media::Json),
        "text/event-stream" => Ok(Media::Events),
        "application/x-ndjson" => Ok(Media::JsonLines),
        "" => provider("the answer does not say what it is".to_owned()),
        _ if is_word(essence) => provider(format!("the answer is {essence} and not JSON")),
        _ => provider("the answer is not JSON".to_owned()),
    }
}

/// Nothing came back at all. The request is in none of these texts.
fn unreached(endpoint: &Endpoint, error: &reqwest::Error) -> llm::Error {
    let message = format!("{}: {}", endpoint.host(), cause(error));
    if error.is_timeout() { llm::Error::Timeout { message } } else { llm::Error::Provider { message } }
}

/// The connection broke in the middle of an answer.
pub(super) fn broken(error: &reqwest::Error) -> llm::Error {
    llm::Error::Provider { message: format!("the answer broke off: {}", cause(error)) }
}

/// The innermost cause. The outer ones name the address, which may hold what is nobody's business.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost = error.source();
    while let Some(inner) = innermost.and_then(Error::source) {
        innermost = Some(inner);
    }
    innermost.map_or_else(|| "the request failed".to_owned(), ToString::to_string)
}
