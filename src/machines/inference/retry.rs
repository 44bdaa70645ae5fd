//! What is done about a failed attempt (SPEC 6). Pure: the same failure in the same place gives the same
//! answer, jitter included.

use super::Request;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::llm;
use crate::vocabulary::spec::{Retry, Spec};

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The same model, later.
    Retry {
        /// How much later.
        delay_ms: u64,
    },
    /// The next model, now.
    Replace,
    /// Nothing.
    GiveUp,
}

/// Chooses the remedy for `error` at `at_ms`.
pub(crate) fn remedy(
    spec: &Spec,
    nonce: &str,
    request: &Request,
    error: &llm::Error,
    at_ms: u64,
    deadline_ms: Option<u64>,
) -> Remedy {
    let code = error.code();
    let delay = (code.retryable() && request.retries < spec.retry.retries_max)
        .then(|| delay_ms(&spec.retry, nonce, request, error))
        .flatten()
        .filter(|delay| deadline_ms.is_none_or(|deadline| at_ms.saturating_add(*delay) < deadline));
    let another = spec.model_at(request.model.saturating_add(1)).is_some();
    match delay {
        Some(delay_ms) => Remedy::Retry { delay_ms },
        None if another && (code.retryable() || code.concerns_the_model()) => Remedy::Replace,
        None => Remedy::GiveUp,
    }
}

/// How long the next attempt waits; `None` when the provider asks for more than may be waited.
fn delay_ms(policy: &Retry, nonce: &str, request: &Request, error: &llm::Error) -> Option<u64> {
    let base = if error.code() == llm::Code::Overloaded { policy.overloaded_base_ms } else { policy.base_ms };
    let doubled = base.saturating_mul(1u64.checked_shl(request.retries).unwrap_or(u64::MAX));
    let own = jittered(doubled.min(policy.delay_ms_max), nonce, request);
    match error.retry_after_ms() {
        Some(asked) if asked > policy.retry_after_ms_max => None,
        Some(asked) => Some(asked.max(own)),
        None => Some(own),
    }
}

/// Equal jitter: a number in [d/2, d] that follows from (nonce, call, attempt) alone.
fn jittered(delay_ms: u64, nonce: &str, request: &Request) -> u64 {
    let place = [request.call.0.to_le_bytes(), request.attempt.to_le_bytes()].concat();
    let draw = Digest::of("portcullis.jitter.1", &[nonce.as_bytes(), &place]).leading_u64();
    let low = delay_ms.div_ceil(2);
    low + draw % (delay_ms - low + 1)
}
