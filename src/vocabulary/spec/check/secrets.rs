//! What of a spec names a secret, and where none may stand by value (SPEC 5.3).

use super::{SpecFault, fault};
use crate::vocabulary::json::Json;
use crate::vocabulary::spec::SecretRef;

/// Words that name a secret, in names without punctuation and in lower case.
const SECRETS: [&str; 13] = [
    "apikey",
    "authorization",
    "accesstoken",
    "authtoken",
    "bearertoken",
    "cookie",
    "credential",
    "credentials",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
];

fn plain(name: &str) -> String {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.to_ascii_lowercase()
}

fn names_secret(name: &str) -> bool {
    let plain = plain(name);
    plain == "token" || plain.ends_with("secretaccesskey") || SECRETS.iter().any(|secret| plain.ends_with(secret))
}

/// Words of names of variables and headers that say secret.
const SECRET_WORDS: [&str; 18] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "key",
    "keys",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pwd",
    "secret",
    "secrets",
    "token",
];

impl SecretRef {
    /// Whether a variable or header of that name holds a secret, as far as its name tells: `GITHUB_TOKEN`, `x-key`.
    #[must_use]
    pub fn names_secret(name: &str) -> bool {
        let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
        names_secret(name) || words.any(|word| SECRET_WORDS.contains(&word.as_str()))
    }
}

/// Free-form JSON must not carry a secret by value: a name that says secret needs a reference (SPEC 5.3).
pub(super) fn refuse_secrets(json: &Json, place: &str) -> Result<(), SpecFault> {
    match json {
        Json::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let inside = format!("{place}.{name}");
            if names_secret(name) && holds_text(value) {
                return Err(fault(inside, "looks like a secret by value: write {\"env\":\"NAME\"} instead"));
            }
            refuse_secrets(value, &inside)
        }),
        Json::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| refuse_secrets(item, &format!("{place}[{index}]")))
        }
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) => Ok(()),
    }
}

/// Whether a value holds text that is no reference to the environment.
fn holds_text(value: &Json) -> bool {
    match value {
        Json::String(_) => true,
        Json::Array(items) => items.iter().any(holds_text),
        Json::Object(fields) => {
            let reference = fields.len() == 1 && fields.get("env").is_some_and(|name| name.as_str().is_some());
            !reference && fields.values().any(holds_text)
        }
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) => false,
    }
}

/// An address must not carry a password, nor a key in its query. It is taken apart as lenient readers of addresses
/// do, which take a backslash for `/`, any number of them, and no tabs and line ends.
pub(super) fn refuse_secrets_in_address(url: &str, place: &str) -> Result<(), SpecFault> {
    let url: String = url.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')).collect();
    let (address, query) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    let rest = address.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).map_or(address, |(_, rest)| rest);
    let authority = rest.trim_start_matches(['/', '\\']).split(['/', '\\']).next().unwrap_or_default();
    // In front of the colon too: an address without a scheme begins with a name.
    let named = address.split(['/', '\\']).next().unwrap_or_default();
    if authority.contains('@') || named.contains('@') {
        return Err(fault(place, "holds credentials: leave them out and name them by reference"));
    }
    let fields = query.split(['?', '#', '&', ';']).filter_map(|field| field.split_once('='));
    match fields.filter(|(_, value)| !value.is_empty()).find(|(name, _)| names_secret_of_query(&decoded(name))) {
        Some((name, _)) => {
            let reason = format!(
                "holds a secret by value, as {:?} of its query: hand it over in a header or as the key, by reference",
                decoded(name)
            );
            Err(fault(place, reason))
        }
        None => Ok(()),
    }
}

fn is_scheme(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Queries say it in fewer letters.
fn names_secret_of_query(name: &str) -> bool {
    let plain = plain(name);
    names_secret(name)
        || plain.ends_with("token")
        || plain.ends_with("signature")
        || matches!(plain.as_str(), "key" | "auth" | "pass" | "pwd" | "sig")
}

/// Text with its `%41` read.
fn decoded(text: &str) -> String {
    let mut decoded = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// A program's arguments must not carry a secret: `--api-key=x` and `--api-key x` both do.
pub(super) fn refuse_secret_arguments(args: &[String], place: &str) -> Result<(), SpecFault> {
    match args.iter().position(|arg| names_secret(arg.split('=').next().unwrap_or_default())) {
        Some(index) => {
            let reason = "looks like a secret by value: hand it over in `env`, by reference";
            Err(fault(format!("{place}[{index}]"), reason))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(url: &str) -> bool {
        refuse_secrets_in_address(url, "url").is_ok()
    }

    #[test]
    fn a_password_in_an_address_is_refused_however_it_is_written() {
        for url in [
            "http://user:pw@127.0.0.1/mcp",
            "http:///user:pw@127.0.0.1/mcp",
            "http:/user:pw@127.0.0.1/mcp",
            "http:user:pw@127.0.0.1/mcp",
            "http:\\\\user:pw@127.0.0.1/mcp",
            "ht\ttp:/\n/user:pw@127.0.0.1/mcp",
            " http://user:pw@127.0.0.1",
            "user@host/mcp",
            "user:pw@host/mcp",
        ] {
            assert!(!passes(url), "{url}");
        }
    }

    #[test]
    fn a_secret_in_a_query_is_refused() {
        for query in
            ["api_key=x", "a=b&token=x", "key=x", "ACCESS-TOKEN=x", "%74oken=x", "a=1;sig=x", "X-Amz-Signature=x"]
        {
            assert!(!passes(&format!("https://host/mcp?{query}")), "{query}");
        }
        assert!(!passes("https://host/mcp#access_token=x"));
    }

    #[test]
    fn an_address_without_secrets_passes() {
        for url in [
            "",
            "https://host/v1?api-version=2024-06-01&max_tokens=7",
            "http://127.0.0.1:8080/users/@me",
            "http://[::1]:1/a:b",
            "https://host/mcp?token=",
            "localhost:8080/mcp",
        ] {
            assert!(passes(url), "{url}");
        }
    }

    #[test]
    fn names_of_variables_and_headers_tell_of_secrets() {
        for name in ["GITHUB_TOKEN", "x-key", "X-API-Key", "DB_PASSWORD", "Authorization", "OPENAI_API_KEY", "cookie"] {
            assert!(SecretRef::names_secret(name), "{name}");
        }
        for name in ["MEMORY_FILE_PATH", "KEYBOARD", "x-tenant", "PATH", "TOKENIZERS", "CARGO_MANIFEST_DIR"] {
            assert!(!SecretRef::names_secret(name), "{name}");
        }
    }
}
