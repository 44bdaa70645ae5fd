//! What a server lists, as tools of a run: names, hints, and the settings that win over them.

use std::collections::BTreeSet;

use super::listing::Listed;
use super::names::{check_source, join};
use super::text::{plain, remark};
use crate::vocabulary::failure::ResolutionError;
use crate::vocabulary::json::Json;
use crate::vocabulary::spec::{Projection, ToolSource, ToolSpec};
use crate::vocabulary::tool::Recovery;

/// The most characters of a description: a model reads all of it, and nobody vouches for it.
const DESCRIPTION_CHARACTERS_MAX: usize = 4_096;

/// How many names of a server's tools an error shows.
const NAMES_SHOWN_MAX: usize = 20;

/// What settings may name: the fields of a [`ToolSpec`] but its name and its parameters, which are the server's,
/// and its description, which is the server's too.
const SETTINGS: [&str; 12] = [
    "attempts_max",
    "concurrency",
    "confirm",
    "confirm_expires_ms",
    "evidence",
    "on_indeterminate",
    "projection",
    "recovery",
    "repeatable",
    "result_bytes_max",
    "scope",
    "timeout_ms",
];

/// The tools that join a run, in the server's order.
pub(super) fn declare(source: &ToolSource, listed: &[Listed]) -> Result<Vec<ToolSpec>, ResolutionError> {
    let mut names = BTreeSet::new();
    if let Some(twice) = listed.iter().find(|tool| !names.insert(tool.name.as_str())) {
        let (id, name) = (remark(&twice.name), source.name.clone());
        return Err(ResolutionError::DuplicateTool { id, first: name.clone(), second: name });
    }
    let chosen = source.only.iter().flatten().map(|name| ("only", name));
    for (field, name) in chosen.chain(source.tools.keys().map(|name| ("tools", name))) {
        if !names.contains(name.as_str()) {
            let there = shown(listed);
            let reason = format!("`{field}` names it, and the server does not list it. It lists {there}");
            return Err(invalid(source, name, &reason));
        }
    }
    let joins = |tool: &&Listed| source.only.as_ref().is_none_or(|only| only.contains(&tool.name));
    check_left_out(source)?;
    listed.iter().filter(joins).map(|tool| declare_one(source, tool)).collect()
}

/// The tools that a source names itself, in `only` or else in `tools`, with their settings. Nothing is started: what
/// its server says of them, parameters and description, is not known.
///
/// # Errors
/// A name that no source or tool can have, and a setting that cannot be.
pub fn stated(source: &ToolSource) -> Result<Vec<ToolSpec>, ResolutionError> {
    check_source(&source.name).map_err(|message| ResolutionError::Routing { message })?;
    check_left_out(source)?;
    let mut names: Vec<&String> =
        source.only.as_ref().map_or_else(|| source.tools.keys().collect(), |only| only.iter().collect());
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.as_str()));
    let unknown = |name: &String| Listed {
        name: name.clone(),
        description: String::new(),
        parameters: ToolSpec::new("").parameters,
        says_read_only: false,
        says_idempotent: false,
    };
    names.into_iter().map(|name| declare_one(source, &unknown(name))).collect()
}

fn check_left_out(source: &ToolSource) -> Result<(), ResolutionError> {
    let left_out = |name: &&String| source.only.as_ref().is_some_and(|only| !only.contains(name));
    match source.tools.keys().find(left_out) {
        Some(name) => Err(invalid(source, name, "it has settings, and `only` leaves it out")),
        None => Ok(()),
    }
}

/// What a server lists, for an error.
fn shown(listed: &[Listed]) -> String {
    let names: Vec<String> = listed.iter().take(NAMES_SHOWN_MAX).map(|tool| remark(&tool.name)).collect();
    match listed.len().saturating_sub(names.len()) {
        _ if names.is_empty() => "nothing".to_owned(),
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn declare_one(source: &ToolSource, tool: &Listed) -> Result<ToolSpec, ResolutionError> {
    let name = join(&source.name, &tool.name).map_err(|reason| invalid(source, &tool.name, &reason))?;
    let mut spec = ToolSpec::new(name);
    spec.description = plain(&tool.description, DESCRIPTION_CHARACTERS_MAX);
    spec.parameters = tool.parameters.clone();
    spec.recovery = if source.trust_hints { hinted(tool) } else { None };
    match source.tools.get(&tool.name) {
        Some(settings) => patched(spec, settings).map_err(|reason| invalid(source, &tool.name, &reason)),
        None => Ok(spec),
    }
}

/// What a believed hint says of a call whose end was lost. One that only looks may look again; one whose
/// repetition changes nothing more may be repeated.
fn hinted(tool: &Listed) -> Option<Recovery> {
    if tool.says_read_only {
        Some(Recovery::ReplaySafe)
    } else if tool.says_idempotent {
        Some(Recovery::Idempotent)
    } else {
        None
    }
}

/// The tool with its settings. The error names the field.
fn patched(spec: ToolSpec, settings: &Json) -> Result<ToolSpec, String> {
    let Some(settings) = settings.as_object() else {
        return Err("its settings are no JSON object".to_owned());
    };
    let set = settings.iter().try_fold(spec, |spec, (field, value)| {
        if !SETTINGS.contains(&field.as_str()) {
            return Err(format!("its settings name {:?}, which is none of {}", remark(field), SETTINGS.join(", ")));
        }
        let written = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
        let mut fields = Json::parse(&written).map_err(|error| error.to_string())?;
        if let Json::Object(fields) = &mut fields {
            fields.insert(field.clone(), value.clone());
        }
        serde_json::from_str(&fields.to_text()).map_err(|error| format!("its setting `{field}`: {}", unplaced(&error)))
    })?;
    check_facts(&set, settings.contains_key("projection"))?;
    Ok(set)
}

/// What is wrong, without a line and a column of a text that nobody wrote.
fn unplaced(error: &serde_json::Error) -> String {
    let text = error.to_string();
    remark(text.rsplit_once(" at line ").map_or(text.as_str(), |(wrong, _)| wrong))
}

/// A server reports no facts beside its content, so that evidence needs a projection, and a projection evidence.
fn check_facts(spec: &ToolSpec, is_set: bool) -> Result<(), String> {
    match (&spec.projection, spec.evidence) {
        (Projection::Reported, true) => Err("`evidence` without a projection gives no facts: add \
             `\"projection\": {\"type\": \"text\"}`, or `lines`, or `pointers` with the pointers"
            .to_owned()),
        (Projection::Pointers { pointers, .. }, _) if pointers.is_empty() => {
            Err("its setting `projection` has no pointers, and so gives no facts".to_owned())
        }
        (_, false) if is_set => {
            Err("`projection` without `evidence` gives no facts: add `\"evidence\": true`".to_owned())
        }
        (Projection::Reported | Projection::Text | Projection::Lines | Projection::Pointers { .. }, _) => Ok(()),
    }
}

fn invalid(source: &ToolSource, tool: &str, reason: &str) -> ResolutionError {
    let id = join(&source.name, tool).unwrap_or_else(|_| remark(tool));
    ResolutionError::InvalidTool { id, message: format!("tool {:?} of {:?}: {reason}", remark(tool), source.name) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vocabulary::spec::Transport;

    fn source(settings: &str, trust_hints: bool) -> ToolSource {
        let transport = Transport::Http { url: "http://127.0.0.1".to_owned(), headers: [].into() };
        let tools = [("t".to_owned(), Json::parse(settings).unwrap())].into();
        ToolSource { name: "s".to_owned(), transport, only: None, tools, trust_hints }
    }

    fn listed(says_read_only: bool, says_idempotent: bool) -> Listed {
        let parameters = Json::parse(r#"{"type":"object","x":9007199254740993}"#).unwrap();
        Listed { name: "t".to_owned(), description: String::new(), parameters, says_read_only, says_idempotent }
    }

    fn declared(settings: &str, trusted: bool, hints: (bool, bool)) -> Result<ToolSpec, ResolutionError> {
        declare(&source(settings, trusted), &[listed(hints.0, hints.1)]).map(|mut tools| tools.remove(0))
    }

    proptest! {
        #[test]
        fn each_setting_changes_its_own_field_alone(
            limit in 0..1_000_000_u64, attempts in 1..100_u32, flags in any::<(bool, bool, bool)>(),
            timeout in any::<Option<u32>>(),
        ) {
            let (evidence, repeatable, confirm) = flags;
            let timeout_ms = timeout.map_or_else(|| "null".to_owned(), |timeout| timeout.to_string());
            let projection = if evidence { r#","projection":{"type":"lines"}"# } else { "" };
            let settings = format!(
                r#"{{"result_bytes_max":{limit},"attempts_max":{attempts},"evidence":{evidence},
                    "repeatable":{repeatable},"confirm":{confirm},"timeout_ms":{timeout_ms}{projection}}}"#
            );
            let expected = ToolSpec {
                parameters: listed(false, false).parameters,
                result_bytes_max: limit,
                attempts_max: attempts,
                evidence,
                projection: if evidence { Projection::Lines } else { Projection::Reported },
                repeatable,
                confirm,
                timeout_ms: timeout.map(u64::from),
                ..ToolSpec::new("s__t")
            };
            prop_assert_eq!(declared(&settings, false, (true, true)).unwrap(), expected);
        }

        #[test]
        fn no_other_field_can_be_set(field in "[a-z_]{1,24}", value in "null|true|7|\"x\"|\\[\\]|\\{\\}") {
            prop_assume!(!SETTINGS.contains(&field.as_str()));
            let refused = declared(&format!("{{{field:?}:{value}}}"), true, (false, false));
            let named = matches!(&refused, Err(ResolutionError::InvalidTool { message, .. }) if message.contains(&field));
            prop_assert!(named, "{:?}", refused);
        }

        #[test]
        fn a_hint_counts_where_it_is_believed_and_nothing_else_is_set(hints in any::<(bool, bool)>(), trusted in any::<bool>()) {
            let mode = declared("{}", trusted, hints).unwrap().recovery_mode();
            let expected = match (trusted, hints) {
                (true, (true, _)) => Recovery::ReplaySafe,
                (true, (false, true)) => Recovery::Idempotent,
                (true, (false, false)) | (false, _) => Recovery::NeverReplay,
            };
            prop_assert_eq!(mode, expected);
            let set = declared(r#"{"recovery":"durable_request"}"#, trusted, hints).unwrap();
            prop_assert_eq!(set.recovery_mode(), Recovery::DurableRequest);
        }
    }

    #[test]
    fn settings_that_can_give_no_facts_are_refused_with_the_way_out() {
        for (settings, said) in [
            (r#"{"evidence":true}"#, "\"projection\": {\"type\": \"text\"}"),
            (r#"{"evidence":true,"projection":{"type":"reported"}}"#, "\"projection\": {\"type\": \"text\"}"),
            (r#"{"projection":{"type":"lines"}}"#, "\"evidence\": true"),
            (r#"{"evidence":true,"projection":{"type":"pointers","pointers":[]}}"#, "no pointers"),
        ] {
            let refused = declared(settings, false, (false, false)).unwrap_err().to_string();
            assert!(refused.contains(said), "{settings}: {refused}");
        }
    }

    #[test]
    fn a_setting_of_the_wrong_type_is_named_without_a_place() {
        let refused = declared(r#"{"timeout_ms":"soon"}"#, false, (false, false)).unwrap_err().to_string();
        assert!(refused.contains("`timeout_ms`") && refused.contains("soon"), "{refused}");
        assert!(!refused.contains("line") && !refused.contains("column"), "{refused}");
    }

    #[test]
    fn a_name_that_is_not_listed_comes_with_those_that_are() {
        let mut source = source("{}", false);
        source.tools.clear();
        source.only = Some(vec!["x".to_owned()]);
        let named = |name: String| Listed { name, ..listed(false, false) };
        let many: Vec<Listed> = (0..25).map(|n| named(format!("t{n}"))).collect();
        let refused = declare(&source, &many).unwrap_err().to_string();
        assert!(refused.contains("t0, t1, ") && refused.ends_with("t19 and 5 more"), "{refused}");
        assert!(declare(&source, &[]).unwrap_err().to_string().ends_with("lists nothing"));
    }

    #[test]
    fn what_a_source_states_itself_is_known_before_its_server_is() {
        let settings = r#"{"confirm":true}"#;
        let mut named = source(settings, false);
        let stated_of = |source: &ToolSource| {
            stated(source).map(|tools| tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>())
        };
        let tool = stated(&named).unwrap().remove(0);
        assert_eq!(tool, ToolSpec { confirm: true, ..ToolSpec::new("s__t") });
        named.only = Some(vec!["u".to_owned(), "t".to_owned(), "u".to_owned()]);
        assert_eq!(stated_of(&named), Ok(vec!["s__u".to_owned(), "s__t".to_owned()]));
        named.only = Some(vec!["u".to_owned()]);
        assert!(stated(&named).is_err(), "`only` leaves out what has settings");
        assert!(stated(&source(r#"{"confirm":1}"#, false)).is_err());
        named = source("{}", false);
        named.tools = [("a b".to_owned(), Json::parse("{}").unwrap())].into();
        assert!(stated(&named).is_err(), "no tool can have that name");
        "host".clone_into(&mut named.name);
        assert!(matches!(stated(&named), Err(ResolutionError::Routing { .. })));
    }

    #[test]
    fn every_field_of_a_tool_is_a_setting_or_the_servers() {
        let mut spec = ToolSpec::new("t");
        spec.scope = vec![crate::vocabulary::json::Pointer::default()];
        (spec.recovery, spec.confirm_expires_ms) = (Some(Recovery::ReplaySafe), Some(1));
        let written = Json::parse(&serde_json::to_string(&spec).unwrap()).unwrap();
        let mut fields: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        fields.retain(|field| !["name", "description", "parameters"].contains(field));
        assert_eq!(fields, SETTINGS);
    }
}
