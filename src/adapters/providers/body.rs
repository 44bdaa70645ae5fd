//! Request bodies: our part, and the spec's parameters as they are.

use std::collections::BTreeMap;

use crate::vocabulary::json::Json;
use crate::vocabulary::llm;

/// An object from its members.
pub(super) fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// `{"text": .., "type": "text"}`.
pub(super) fn text_part(text: &str) -> Json {
    object([("type", "text".into()), ("text", text.into())])
}

/// A tool's schema. Providers want an object, and a schema of `true` says no more than this one.
pub(super) fn schema(advertised: &Json) -> Json {
    match advertised {
        Json::Object(_) => advertised.clone(),
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) | Json::Array(_) => {
            object([("type", "object".into())])
        }
    }
}

/// Puts the spec's parameters into a body. Paths in `owned` are the engine's in this language, also where the
/// request does not set them: what it leaves out, no parameter brings.
///
/// # Errors
/// [`llm::Error::Binding`]: the parameters are no object, or name what belongs to the engine.
pub(super) fn with_parameters(body: Json, parameters: &Json, owned: &[&str]) -> Result<Json, llm::Error> {
    let rejected = |message| Err(llm::Error::Binding { message });
    let mut body = match body {
        Json::Object(members) => members,
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) | Json::Array(_) => {
            BTreeMap::new()
        }
    };
    match parameters {
        Json::Null => {}
        Json::Object(members) => {
            if let Err(path) = merge(&mut body, members, "", owned) {
                return rejected(format!("parameters.{path} belongs to the engine"));
            }
        }
        Json::Bool(_) | Json::Integer(_) | Json::Double(_) | Json::String(_) | Json::Array(_) => {
            return rejected("the parameters are no object".to_owned());
        }
    }
    Ok(Json::Object(body))
}

/// Objects are merged member by member. The error is the path of what the engine owns or sets, and differently.
fn merge(
    ours: &mut BTreeMap<String, Json>,
    theirs: &BTreeMap<String, Json>,
    before: &str,
    owned: &[&str],
) -> Result<(), String> {
    for (name, value) in theirs {
        let path = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
        if ours.get(name) == Some(value) {
            continue;
        }
        if owned.iter().any(|owned| spelled_alike(owned, &path)) {
            return Err(path);
        }
        match (ours.get_mut(name), value) {
            (Some(Json::Object(ours)), Json::Object(theirs)) => merge(ours, theirs, &path, owned)?,
            (Some(_), _) => return Err(path),
            (None, Json::Object(theirs)) => {
                let mut joined = BTreeMap::new();
                merge(&mut joined, theirs, &path, owned)?;
                ours.insert(name.clone(), Json::Object(joined));
            }
            (None, value) => {
                ours.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// `toolConfig` and `tool_config` are one name to some.
fn spelled_alike(one: &str, other: &str) -> bool {
    let letters = |path: &str| path.replace('_', "").to_ascii_lowercase();
    letters(one) == letters(other)
}
