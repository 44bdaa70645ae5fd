//! Which class of error a failed model request is of, by its status code or its error's type.
//!
//! | recorded | class |
//! |---|---|
//! | status 401, 403 | unauthorized |
//! | status 404 | model_not_found |
//! | status 408, 504 | timeout |
//! | status 413 | context_overflow |
//! | status 429 | rate_limited |
//! | status 503, 529 | overloaded |
//! | another 4xx | invalid_request |
//! | another 5xx | provider_error |
//! | a type that is one of our own codes (`SPEC 6`) | that class |
//! | a type's last name that holds a known word | that word's class |
//! | nothing of these | provider_error, with a note |
//!
//! A message decides nothing: an error is an error by type, never by its text (`SPEC 6`).

use crate::vocabulary::llm::{Code, Error};

/// The class of a failure; `None` when neither tells.
pub(super) fn classed(status: Option<u64>, kind: Option<&str>, message: String) -> (Error, bool) {
    let code = status.or_else(|| kind.and_then(|kind| kind.parse().ok()));
    let found = code.and_then(|code| by_status(code, &message)).or_else(|| by_own_code(kind?, &message));
    let found = found.or_else(|| by_type(kind?, &message));
    let known = found.is_some();
    (found.unwrap_or(Error::Provider { message }), known)
}

fn by_status(code: u64, message: &str) -> Option<Error> {
    let message = message.to_owned();
    Some(match code {
        401 | 403 => Error::Unauthorized { message },
        404 => Error::ModelNotFound { message },
        408 | 504 => Error::Timeout { message },
        413 => Error::ContextOverflow { message },
        429 => Error::RateLimited { message, retry_after_ms: None },
        503 | 529 => Error::Overloaded { message, retry_after_ms: None },
        400..=499 => Error::InvalidRequest { message },
        500..=599 => Error::Provider { message },
        _ => return None,
    })
}

/// What our own exports write.
fn by_own_code(kind: &str, message: &str) -> Option<Error> {
    let code = Code::ALL.iter().find(|code| code.word() == kind)?;
    let message = message.to_owned();
    Some(match code {
        Code::ProviderError => Error::Provider { message },
        Code::RateLimited => Error::RateLimited { message, retry_after_ms: None },
        Code::Overloaded => Error::Overloaded { message, retry_after_ms: None },
        Code::Timeout => Error::Timeout { message },
        Code::BindingRejected => Error::Binding { message },
        Code::ContextOverflow => Error::ContextOverflow { message },
        Code::InvalidRequest => Error::InvalidRequest { message },
        Code::Unauthorized => Error::Unauthorized { message },
        Code::UsageLimit => Error::UsageLimit { message, reset_after_ms: None },
        Code::LoginRequired => Error::LoginRequired { message },
        Code::ModelNotFound => Error::ModelNotFound { message },
        Code::ContentFiltered => Error::ContentFiltered { message },
    })
}

/// The words are looked for in the type's last name, such as `openai.RateLimitError`, in this order.
fn by_type(kind: &str, message: &str) -> Option<Error> {
    let name = kind.rsplit(['.', ':', '/']).next()?.to_ascii_lowercase().replace(['_', '-', ' '], "");
    let holds = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let message = message.to_owned();
    Some(if holds(&["ratelimit", "toomanyrequests"]) {
        Error::RateLimited { message, retry_after_ms: None }
    } else if holds(&["timeout", "timedout", "deadlineexceeded"]) {
        Error::Timeout { message }
    } else if holds(&["overloaded", "serviceunavailable", "unavailable"]) {
        Error::Overloaded { message, retry_after_ms: None }
    } else if holds(&["contextwindow", "contextlength", "contextoverflow", "contextsize"]) {
        Error::ContextOverflow { message }
    } else if holds(&["authentication", "unauthorized", "permission", "forbidden"]) {
        Error::Unauthorized { message }
    } else if holds(&["quota", "usagelimit", "insufficient"]) {
        Error::UsageLimit { message, reset_after_ms: None }
    } else if holds(&["contentfilter", "contentpolicy"]) {
        Error::ContentFiltered { message }
    } else if holds(&["notfound"]) {
        Error::ModelNotFound { message }
    } else if holds(&["badrequest", "invalidrequest", "requestrejected", "unprocessable"]) {
        Error::InvalidRequest { message }
    } else if holds(&["servererror", "internalserver", "apiconnection", "connectionerror"]) {
        Error::Provider { message }
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::classed;

    #[test]
    fn a_failure_is_classed_by_status_then_by_type_and_never_by_its_text() {
        let class = |status, kind| {
            let (error, known) = classed(status, kind, "rate limit timeout".to_owned());
            (error.code().word(), known)
        };
        let cases = [
            (Some(429), None, ("rate_limited", true)),
            (Some(529), Some("openai.RateLimitError"), ("overloaded", true)),
            (None, Some("429"), ("rate_limited", true)),
            (None, Some("openai.RateLimitError"), ("rate_limited", true)),
            (None, Some("httpx.ReadTimeout"), ("timeout", true)),
            (None, Some("pydantic_ai.exceptions.ModelRequestRejectedError"), ("invalid_request", true)),
            (Some(404), None, ("model_not_found", true)),
            (Some(418), None, ("invalid_request", true)),
            (Some(500), None, ("provider_error", true)),
            (Some(200), Some("builtins.ValueError"), ("provider_error", false)),
            (None, None, ("provider_error", false)),
            (None, Some("login_required"), ("login_required", true)),
            (None, Some("provider_error"), ("provider_error", true)),
        ];
        for (status, kind, expected) in cases {
            assert_eq!(class(status, kind), expected, "{status:?} {kind:?}");
        }
    }
}
