//! The last class of checks, and configurations against their schema.

use portcullis::composition::{Contribution, HOST, MergeError, PluginConfigError, PluginManifest, Proposal};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::environment::{
    Capability, Environment, GateOf, HookPoint, MergePolicy, StateKeySpec, StateScope,
};
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::spec::ToolSpec;

use super::merge::{merged, refused};
use super::{all_of, gate, key, kinds, plugin, requiring, tools};

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

#[track_caller]
fn misconfigured(host: Environment, proposals: Vec<Proposal>) -> PluginConfigError {
    match refused(host, proposals) {
        MergeError::Config(error) => error,
        other => panic!("{other}"),
    }
}

#[track_caller]
fn alone(contribution: Contribution) -> String {
    let error = misconfigured(Environment::default(), vec![plugin("a", contribution)]);
    assert_eq!(error.plugin, "a");
    error.reason
}

fn gated(gates: Vec<portcullis::vocabulary::environment::Gate>) -> Contribution {
    Contribution { gates, ..Contribution::default() }
}

fn keyed(state_keys: Vec<StateKeySpec>) -> Contribution {
    Contribution { state_keys, ..Contribution::default() }
}

#[test]
fn a_failed_configuration_is_reported_in_its_place() {
    let failed = |id: &str| Proposal {
        manifest: PluginManifest::new(id, all_of(id)),
        contribution: Err(PluginConfigError::new("someone else", format!("{id} is malformed"))),
    };
    let twice = Contribution { hooks: vec![HookPoint::RunEnd; 2], ..Contribution::default() };
    let first = |proposals| {
        let error = misconfigured(Environment::default(), proposals);
        (error.plugin, error.reason)
    };
    let own = |id: &str| (id.to_owned(), format!("{id} is malformed"));
    // The plugin that was asked is named, whatever its error says.
    assert_eq!(first(vec![failed("a"), failed("b")]), own("a"));
    assert_eq!(first(vec![requiring(&["b"], failed("a")), failed("b")]), own("b"));
    assert_eq!(first(vec![failed("b"), plugin("a", twice.clone())]), own("b"));
    assert_eq!(first(vec![plugin("a", twice), failed("b")]).0, "a");
    // A bound that a later plugin breaks comes before it.
    let error = refused(Environment::default(), vec![failed("a"), plugin("b", tools(&["beyond"]))]);
    assert!(matches!(error, MergeError::Bound(violation) if violation.plugin == "b"));
}

#[test]
fn a_gate_is_not_blamed_for_the_tool_that_a_failed_plugin_would_have_brought() {
    let failed = Proposal {
        manifest: PluginManifest::new("b", all_of("b")),
        contribution: Err(PluginConfigError::new("b", "malformed")),
    };
    let before = gated(vec![gate("a.door", GateOf::Tool, &["b.look"])]);
    let error = misconfigured(Environment::default(), vec![plugin("a", before), failed]);
    assert_eq!(error, PluginConfigError::new("b", "malformed"));
}

#[test]
fn plugins_have_ids_and_none_is_the_embedder_s() {
    let error = misconfigured(Environment::default(), vec![plugin("", Contribution::default())]);
    assert!(error.reason.contains("empty"), "{error}");
    let error = misconfigured(Environment::default(), vec![plugin(HOST, Contribution::default())]);
    assert!(error.reason.contains("embedder"), "{error}");
}

#[test]
fn what_has_no_name_or_no_use_is_refused() {
    let wide = |contribution| {
        let blank = || Allowance { namespace: Some("a".into()), ids: vec!["bad name".into()] };
        let bound = Bound { tools: blank(), ..all_of("a") };
        vec![Proposal::new(PluginManifest::new("a", bound), contribution)]
    };
    let error = misconfigured(Environment::default(), wide(tools(&["bad name"])));
    assert!(error.reason.contains(r#""bad name""#), "{error}");
    assert!(
        alone(Contribution { hooks: vec![HookPoint::AfterTool; 2], ..Contribution::default() }).contains("after_tool")
    );
    assert!(alone(gated(vec![gate("a.exit", GateOf::Release, &["x"])])).contains("a.exit"));
}

#[test]
fn a_bound_with_an_empty_name_is_refused() {
    let all: [fn(Allowance) -> Bound; 5] = [
        |tools| Bound { tools, ..Bound::default() },
        |state_keys| Bound { state_keys, ..Bound::default() },
        |action_kinds| Bound { action_kinds, ..Bound::default() },
        |tool_gates| Bound { tool_gates, ..Bound::default() },
        |release_gates| Bound { release_gates, ..Bound::default() },
    ];
    for bound in all {
        for allowance in [Allowance::namespace(""), Allowance::ids([" "])] {
            let proposal = Proposal::new(PluginManifest::new("a", bound(allowance)), Contribution::default());
            let error = misconfigured(Environment::default(), vec![proposal]);
            assert!(error.reason.contains("is empty"), "{error}");
        }
    }
}

/// An empty name cannot lie within a namespace, so only a bound that names it would let it through.
#[test]
fn empty_names_are_refused_by_the_bound_and_to_the_host() {
    let error = refused(Environment::default(), vec![plugin("a", kinds(&[""]))]);
    assert!(matches!(error, MergeError::Bound(_)));
    let host = Environment { gates: vec![gate(" ", GateOf::Tool, &[])], ..Environment::default() };
    assert_eq!(misconfigured(host, Vec::new()).plugin, HOST);
    let state_keys = vec![key(StateScope::Run, "", MergePolicy::Disjoint)];
    assert_eq!(misconfigured(Environment { state_keys, ..Environment::default() }, Vec::new()).plugin, HOST);
    let tools = vec![ToolSpec::new("")];
    assert_eq!(misconfigured(Environment { tools, ..Environment::default() }, Vec::new()).plugin, HOST);
}

#[test]
fn a_gate_id_stands_once_whatever_it_stands_before() {
    let reason = alone(gated(vec![gate("a.g", GateOf::Tool, &[]), gate("a.g", GateOf::Release, &[])]));
    assert!(reason.contains("a.g"), "{reason}");
    let host = Environment { gates: vec![gate("a.g", GateOf::Tool, &[])], ..Environment::default() };
    let error = misconfigured(host, vec![plugin("a", gated(vec![gate("a.g", GateOf::Tool, &[])]))]);
    assert_eq!(error.plugin, "a");
    assert!(error.reason.contains(HOST), "{error}");
}

#[test]
fn a_gate_stands_before_tools_that_are_there() {
    assert!(alone(gated(vec![gate("a.g", GateOf::Tool, &["nothing"])])).contains("nothing"));
    let behind = Contribution { gates: vec![gate("a.g", GateOf::Tool, &["b.look"])], ..tools(&["a.look"]) };
    merged(Environment::default(), vec![plugin("a", behind), plugin("b", tools(&["b.look"]))]);
}

#[test]
fn a_key_that_two_declare_alike_is_one_and_otherwise_a_fault() {
    let sharing = |id: &str, spec: StateKeySpec| {
        let bound = Bound { state_keys: Allowance::ids(["notes"]), ..Bound::default() };
        Proposal::new(PluginManifest::new(id, bound), keyed(vec![spec]))
    };
    let of = |scope, policy| key(scope, "notes", policy);
    let alike = of(StateScope::Thread, MergePolicy::Disjoint);
    let environment = merged(Environment::default(), vec![sharing("a", alike.clone()), sharing("b", alike.clone())]);
    assert_eq!(environment.state_keys, vec![alike.clone()]);
    let host = Environment { state_keys: vec![alike.clone(); 2], ..Environment::default() };
    assert_eq!(merged(host, vec![sharing("a", alike.clone())]).state_keys, vec![alike.clone()]);
    let other = of(StateScope::Run, MergePolicy::Exclusive);
    let environment = merged(Environment::default(), vec![sharing("a", alike.clone()), sharing("b", other.clone())]);
    assert_eq!(environment.state_keys, [alike.clone(), other]);
    let unlike = of(StateScope::Thread, MergePolicy::Commutative);
    let error = misconfigured(Environment::default(), vec![sharing("a", alike), sharing("b", unlike)]);
    assert_eq!(error.plugin, "b");
    for part in ["thread", "notes", "commutative", "disjoint", r#""a""#] {
        assert!(error.reason.contains(part), "{error}");
    }
}

#[test]
fn a_host_that_does_not_hold_together_is_refused() {
    let claiming = |tool: &[&str], gates: &[&str], kinds: &[&str]| {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let capability = Capability {
            plugin: "own".into(),
            bound: all_of("own"),
            tools: owned(tool),
            gates: owned(gates),
            action_kinds: owned(kinds),
        };
        Environment { plugins: vec!["own".into()], capabilities: vec![capability], ..Environment::default() }
    };
    merged(claiming(&[], &[], &[]), Vec::new());
    for (host, id) in [
        (claiming(&["own.look"], &[], &[]), "own.look"),
        (claiming(&[], &["own.door"], &[]), "own.door"),
        (claiming(&[], &[], &["own.tidy"]), "own.tidy"),
        (Environment { plugins: Vec::new(), ..claiming(&[], &[], &[]) }, "own"),
        (Environment { action_kinds: vec!["tidy".into()], ..Environment::default() }, "tidy"),
    ] {
        let error = misconfigured(host, Vec::new());
        assert_eq!(error.plugin, HOST);
        assert!(error.reason.contains(id), "{error}");
    }
    let mut twice = claiming(&[], &[], &[]);
    twice.capabilities.extend(twice.capabilities.clone());
    assert_eq!(refused(twice, Vec::new()), MergeError::DuplicatePlugin { id: "own".into() });
}

#[test]
fn a_plugin_without_a_schema_takes_nothing_but_null() {
    let manifest = PluginManifest::new("a", Bound::default());
    assert_eq!(manifest.check_config(&Json::Null), Ok(()));
    for config in ["{}", "false", "0", r#""""#, "[]"] {
        let error = manifest.check_config(&json(config)).unwrap_err();
        assert_eq!((error.plugin.as_str(), error.pointer.is_none()), ("a", true));
        assert!(error.reason.contains("takes no configuration"), "{error}");
    }
}

#[test]
fn a_configuration_is_checked_against_the_schema_and_the_place_is_named() {
    let schema = r#"{"type":"object","required":["port"],"properties":{"port":{"type":"integer","minimum":1}},"additionalProperties":false}"#;
    let manifest = PluginManifest { config: Some(json(schema)), ..PluginManifest::new("a", Bound::default()) };
    assert_eq!(manifest.check_config(&json(r#"{"port":8080}"#)), Ok(()));
    for (config, pointer, keyword) in [
        (r#"{"port":0}"#, "/port", "minimum"),
        (r#"{"port":"x"}"#, "/port", "type"),
        ("{}", "", "required"),
        ("null", "", "type"),
        (r#"{"port":1,"host":"x"}"#, "", "additionalProperties"),
    ] {
        let error = manifest.check_config(&json(config)).unwrap_err();
        assert_eq!(error.pointer.as_ref().map(ToString::to_string).as_deref(), Some(pointer), "{config}");
        assert!(error.reason.contains(keyword), "{error}");
        let ResolutionError::Config { plugin, message } = MergeError::from(error).into() else { panic!("{config}") };
        assert_eq!(plugin, "a");
        assert!(message.contains(&format!("{pointer:?}")), "{message}");
    }
}

#[test]
fn a_schema_that_cannot_be_used_is_the_manifest_s_fault() {
    for schema in [r#"{"type":7}"#, r##"{"$ref":"#"}"##, r#"{"$ref":"http://localhost/x"}"#] {
        let manifest = PluginManifest { config: Some(json(schema)), ..PluginManifest::new("a", Bound::default()) };
        let error = manifest.check_config(&Json::Null).unwrap_err();
        assert!(error.reason.starts_with("in its manifest"), "{error}");
    }
}
