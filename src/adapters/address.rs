//! Addresses of servers: who can read along, and whether a proxy stands between.

use reqwest::Url;

/// Whether an address is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether nobody on the way can read what is sent there. Secrets go to no other address.
pub(crate) fn keeps_secrets(url: &Url) -> bool {
    url.scheme() == "https" || is_loopback(url)
}

/// Whether the proxy of the environment is left out: it would read plain http, and it cannot reach this machine.
pub(crate) fn is_direct(url: &Url) -> bool {
    url.scheme() == "http" || is_loopback(url)
}
