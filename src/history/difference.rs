//! Where two JSON values differ.

use crate::vocabulary::json::Json;

/// The order in which members are compared before all others, so that causes come before their consequences.
const ORDER: [&str; 8] = ["type", "v", "run", "seq", "at_ms", "input", "signals", "state"];

/// One difference: where, and what stands there on each side.
#[derive(Debug)]
pub(super) struct Found<'a> {
    /// The way to it: `state.run.phase`.
    pub(super) path: String,
    /// On the left; `None` where there is nothing.
    pub(super) left: Option<&'a Json>,
    /// On the right.
    pub(super) right: Option<&'a Json>,
}

/// Every difference, in the order in which they are compared. What `is_leaf` says of is compared as one.
pub(super) fn differences<'a>(
    path: &str,
    left: Option<&'a Json>,
    right: Option<&'a Json>,
    is_leaf: fn(&Json) -> bool,
) -> Vec<Found<'a>> {
    let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (left, right) {
        (Some(Json::Object(ours)), Some(Json::Object(theirs)))
            if !left.is_some_and(is_leaf) && !right.is_some_and(is_leaf) =>
        {
            let leading = ORDER.into_iter();
            let others = ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name)));
            let others = others.map(String::as_str).filter(|name| !ORDER.contains(name));
            let each = |name: &str| differences(&inside(name), ours.get(name), theirs.get(name), is_leaf);
            leading.chain(others).flat_map(each).collect()
        }
        (Some(Json::Array(ours)), Some(Json::Array(theirs))) => {
            let longest = ours.len().max(theirs.len());
            let each = |at: usize| differences(&inside(&at.to_string()), ours.get(at), theirs.get(at), is_leaf);
            (0..longest).flat_map(each).collect()
        }
        (left, right) if left == right => Vec::new(),
        (left, right) => vec![Found { path: path.to_owned(), left, right }],
    }
}
