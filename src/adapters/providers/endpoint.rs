//! Where a model is, what it speaks, and which key goes there. It is known before anything is sent, so that
//! people can be shown it.

use reqwest::Url;

use crate::adapters::address::keeps_secrets;
use crate::vocabulary::llm;
use crate::vocabulary::spec::{Api, ModelSpec};

/// Where a model's requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// What is spoken there.
    pub api: Api,
    /// The whole address that is posted to.
    pub url: Url,
    /// The environment variable whose value is sent as the key; without one, no key is sent.
    pub key: Option<String>,
}

/// Where a provider usually is, and where its key usually stands.
struct Usual {
    base: &'static str,
    key: Option<&'static str>,
}

const fn usual(api: Api) -> Usual {
    match api {
        Api::OpenAi => Usual { base: "https://api.openai.com/v1", key: Some("OPENAI_API_KEY") },
        Api::Anthropic => Usual { base: "https://api.anthropic.com/v1", key: Some("ANTHROPIC_API_KEY") },
        Api::Gemini => Usual { base: "https://generativelanguage.googleapis.com/v1beta", key: Some("GEMINI_API_KEY") },
        Api::Ollama => Usual { base: "http://127.0.0.1:11434", key: None },
    }
}

impl Endpoint {
    /// Where a model's requests go. Nothing is contacted, and no key is looked up.
    ///
    /// # Errors
    /// [`llm::Error::Binding`]: a `base_url` that is no HTTP address, holds credentials, or would show the key to
    /// everybody on the way.
    pub fn of(model: &ModelSpec) -> Result<Self, llm::Error> {
        let api = api(model);
        let usual = usual(api);
        let base = model.base_url.as_deref().unwrap_or(usual.base);
        let mut url = checked(base)?;
        extend(&mut url, api, model)?;
        // A usual key belongs to the usual address and goes nowhere else.
        let usual_key = usual.key.filter(|_| model.base_url.is_none()).map(str::to_owned);
        let key = model.key.as_ref().map(|key| key.env.clone()).or(usual_key);
        let endpoint = Self { api, url, key };
        if endpoint.key.is_some() && !keeps_secrets(&endpoint.url) {
            return Err(rejected("base_url is plain http, and a key would be readable on the way: use https"));
        }
        Ok(endpoint)
    }

    /// The host that is contacted.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

/// What a model speaks: as its spec says, else as its name tells.
pub(super) fn api(model: &ModelSpec) -> Api {
    let told = || match model.name.as_str() {
        claude if claude.starts_with("claude-") => Api::Anthropic,
        gemini if gemini.starts_with("gemini-") => Api::Gemini,
        _ => Api::OpenAi,
    };
    model.api.unwrap_or_else(told)
}

fn checked(base: &str) -> Result<Url, llm::Error> {
    let mut url = Url::parse(base).map_err(|error| rejected(format!("base_url is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(rejected("base_url is neither http nor https"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(rejected("base_url names no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(rejected("base_url holds credentials: name the key by reference"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// The path of the request, behind the one of the base. A query stays: some gateways want one.
fn extend(url: &mut Url, api: Api, model: &ModelSpec) -> Result<(), llm::Error> {
    let mut path: Vec<String> = match api {
        Api::OpenAi => vec!["chat".to_owned(), "completions".to_owned()],
        Api::Anthropic => vec!["messages".to_owned()],
        Api::Ollama => vec!["api".to_owned(), "chat".to_owned()],
        Api::Gemini => gemini_path(model)?,
    };
    if api == Api::Gemini && model.streaming {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    let mut segments = url.path_segments_mut().map_err(|()| rejected("base_url can have no path"))?;
    segments.pop_if_empty().extend(path.drain(..));
    Ok(())
}

fn gemini_path(model: &ModelSpec) -> Result<Vec<String>, llm::Error> {
    let name = if model.name.contains('/') { model.name.clone() } else { format!("models/{}", model.name) };
    let mut path: Vec<String> = name.split('/').map(str::to_owned).collect();
    // Such segments would lead elsewhere.
    if path.iter().any(|segment| matches!(segment.as_str(), "" | "." | "..")) {
        return Err(rejected("the model's name is no path"));
    }
    let method = if model.streaming { "streamGenerateContent" } else { "generateContent" };
    if let Some(last) = path.last_mut() {
        last.push(':');
        last.push_str(method);
    }
    Ok(path)
}

fn rejected(message: impl Into<String>) -> llm::Error {
    llm::Error::Binding { message: message.into() }
}
