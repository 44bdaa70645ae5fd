use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::adapters::providers::retry_after::{duration_ms, wait_ms};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    pairs.iter().map(pair).collect()
}

const YEAR_MS: u64 = 366 * 86_400_000;

#[test]
fn seconds_have_many_spellings() {
    let table = [
        ("0", Some(0)),
        ("30", Some(30_000)),
        (" 30 ", Some(30_000)),
        ("1.5", Some(1_500)),
        ("0.0001", Some(1)),
        ("00007", Some(7_000)),
        ("99999999999999999999999999", Some(YEAR_MS)),
        ("18446744073709551616", Some(YEAR_MS)),
        ("-1", None),
        ("+1", None),
        ("1e3", None),
        ("inf", None),
        ("NaN", None),
        ("", None),
        (".", None),
        ("1.2.3", None),
        ("0x10", None),
        ("30s", None),
        ("in a while", None),
    ];
    for (text, wait) in table {
        assert_eq!(wait_ms(&headers(&[("retry-after", text)])), wait, "{text:?}");
    }
}

#[test]
fn milliseconds_go_first_and_fall_back_where_they_are_nonsense() {
    assert_eq!(wait_ms(&headers(&[("retry-after-ms", "12.5"), ("retry-after", "9")])), Some(13));
    assert_eq!(wait_ms(&headers(&[("retry-after-ms", "-1"), ("retry-after", "9")])), Some(9_000));
}

#[test]
fn a_date_is_held_against_the_servers_own_clock() {
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    assert_eq!(wait_ms(&headers(&[("retry-after", date), ("date", "Wed, 21 Oct 2015 07:27:15 GMT")])), Some(45_000));
    assert_eq!(wait_ms(&headers(&[("retry-after", date), ("date", "Wed, 21 Oct 2015 07:29:00 GMT")])), Some(0));
    let far = "Fri, 31 Dec 9999 23:59:59 GMT";
    assert_eq!(wait_ms(&headers(&[("retry-after", far)])), Some(YEAR_MS));
}

#[test]
fn without_its_clock_ours_is_taken() {
    let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
    for date in [None, Some("nonsense")] {
        let pairs: Vec<_> =
            [("retry-after", soon.as_str())].into_iter().chain(date.map(|date| ("date", date))).collect();
        let wait = wait_ms(&headers(&pairs)).unwrap();
        assert!((90_000..=100_000).contains(&wait), "{wait}");
    }
}

#[test]
fn quota_headers_are_not_read() {
    let pairs = [("x-ratelimit-reset-requests", "1s"), ("anthropic-ratelimit-tokens-reset", "2030-01-01T00:00:00Z")];
    assert_eq!(wait_ms(&headers(&pairs)), None);
}

#[test]
fn durations_end_in_s() {
    assert_eq!(duration_ms("39s"), Some(39_000));
    assert_eq!(duration_ms("0.5s"), Some(500));
    assert_eq!(duration_ms("39"), None);
    assert_eq!(duration_ms("-1s"), None);
}

proptest! {
    #[test]
    fn no_text_asks_for_more_than_a_year(text in "[ -~]{0,40}") {
        let headers = headers(&[("retry-after", text.as_str()), ("retry-after-ms", text.as_str())]);
        prop_assert!(wait_ms(&headers).is_none_or(|wait| wait <= YEAR_MS));
    }
}
