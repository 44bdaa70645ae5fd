//! How long a provider asks to wait.
//!
//! `retry-after-ms` goes before `retry-after`, which is in seconds or a date. Headers that say when a quota is
//! filled again (`x-ratelimit-reset-*` and such) are not read: providers mean different things by them, and none
//! says which of several quotas was hit.

use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// No wait is longer: whoever asks for more is not waited for anyway.
const WAIT_MS_MAX: f64 = 366.0 * 86_400_000.0;

/// The wait in milliseconds, rounded up. What is negative or no number is no wait.
pub(super) fn wait_ms(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| milliseconds(text, 1.0));
    milliseconds.or_else(|| {
        let text = text(RETRY_AFTER.as_str())?;
        milliseconds_of_seconds(text).or_else(|| until(text, now(headers)))
    })
}

/// `30`, `1.5`.
fn milliseconds_of_seconds(text: &str) -> Option<u64> {
    milliseconds(text, 1_000.0)
}

/// `30s`, `1.5s`: as Gemini writes durations.
pub(super) fn duration_ms(text: &str) -> Option<u64> {
    milliseconds_of_seconds(text.strip_suffix('s')?)
}

fn milliseconds(text: &str, unit: f64) -> Option<u64> {
    // `inf` and `nan` are numbers to the parser, and `1e3` is one that nobody sends.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = if plain { text.parse().ok()? } else { return None };
    // At most about 10^10, and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some((number * unit).ceil().min(WAIT_MS_MAX) as u64)
}

/// A date that has passed is no wait at all, which is still an answer.
fn until(text: &str, now: SystemTime) -> Option<u64> {
    let date = httpdate::parse_http_date(text).ok()?;
    let wait = date.duration_since(now).unwrap_or(Duration::ZERO);
    Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(366 * 86_400_000))
}

/// The server's own clock where it says so: ours may go wrong.
fn now(headers: &HeaderMap) -> SystemTime {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    date.and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or_else(SystemTime::now)
}
