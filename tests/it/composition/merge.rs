//! The merge, error by error.

use portcullis::composition::{
    BoundViolation, Contribution, ContributionKind, HOST, MergeError, PluginConfigError, PluginManifest, Proposal,
    ResolvedExecutionEnv,
};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::environment::{Capability, Environment, GateOf, Hook, HookPoint, MergePolicy, StateScope};
use portcullis::vocabulary::failure::{Failure, ResolutionError, ResolutionKind};
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::spec::ToolSpec;

use super::{all_of, gate, key, kinds, plugin, requiring, run_in, tools};

pub(super) fn merged(host: Environment, proposals: Vec<Proposal>) -> Environment {
    let resolved = ResolvedExecutionEnv::merge(host, proposals).unwrap();
    let environment = resolved.environment().clone();
    assert_eq!(environment, resolved.into_environment());
    assert!(run_in(environment.clone()).0.ending().is_none(), "the engine refuses {environment:?}");
    environment
}

pub(super) fn refused(host: Environment, proposals: Vec<Proposal>) -> MergeError {
    ResolvedExecutionEnv::merge(host, proposals).expect_err("it was accepted")
}

fn hosting(names: &[&str]) -> Environment {
    Environment { tools: tools(names).tools, ..Environment::default() }
}

/// Something of everything.
fn full(id: &str) -> Contribution {
    let own = |name: &str| format!("{id}.{name}");
    Contribution {
        tools: vec![ToolSpec::evidence(own("look"))],
        gates: vec![gate(&own("door"), GateOf::Tool, &[]), gate(&own("exit"), GateOf::Release, &[])],
        hooks: vec![HookPoint::RoundStart, HookPoint::RunEnd],
        state_keys: vec![key(StateScope::Run, &own("seen"), MergePolicy::Commutative)],
        action_kinds: vec![own("tidy")],
    }
}

#[test]
fn what_the_host_brings_comes_first_and_plugins_follow_in_topological_order() {
    let host = Environment { gates: vec![gate("gate", GateOf::Tool, &["b.look"])], ..hosting(&["own"]) };
    let proposals = vec![requiring(&["b"], plugin("a", full("a"))), plugin("b", full("b"))];
    let environment = merged(host, proposals);
    let names: Vec<&str> = environment.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["own", "b.look", "a.look"]);
    let gates: Vec<&str> = environment.gates.iter().map(|gate| gate.id.as_str()).collect();
    assert_eq!(gates, ["gate", "b.door", "b.exit", "a.door", "a.exit"]);
    let hook = |plugin: &str, point| Hook { plugin: plugin.to_owned(), point };
    let [start, end] = [HookPoint::RoundStart, HookPoint::RunEnd];
    assert_eq!(environment.hooks, [hook("b", start), hook("b", end), hook("a", start), hook("a", end)]);
    assert_eq!(environment.plugins, ["b", "a"]);
    assert_eq!(environment.action_kinds, ["b.tidy", "a.tidy"]);
    let capability = |id: &str| Capability {
        plugin: id.to_owned(),
        bound: all_of(id),
        tools: vec![format!("{id}.look")],
        gates: vec![format!("{id}.door"), format!("{id}.exit")],
        action_kinds: vec![format!("{id}.tidy")],
    };
    assert_eq!(environment.capabilities, [capability("b"), capability("a")]);
}

#[test]
fn nothing_but_a_host_is_what_the_host_is() {
    let host = Environment {
        gates: vec![gate("gate", GateOf::Release, &[])],
        state_keys: vec![key(StateScope::Thread, "notes", MergePolicy::Disjoint)],
        ..hosting(&["own"])
    };
    assert_eq!(merged(host.clone(), Vec::new()), host);
}

#[test]
fn ties_keep_the_order_of_the_input() {
    let named = |order: &[&str]| order.iter().map(|id| plugin(id, Contribution::default())).collect::<Vec<_>>();
    assert_eq!(merged(Environment::default(), named(&["c", "a", "b"])).plugins, ["c", "a", "b"]);
    let late = vec![
        requiring(&["d"], plugin("a", Contribution::default())),
        plugin("b", Contribution::default()),
        requiring(&["b"], plugin("c", Contribution::default())),
        plugin("d", Contribution::default()),
    ];
    assert_eq!(merged(Environment::default(), late).plugins, ["b", "c", "d", "a"]);
}

#[test]
fn a_merged_environment_may_be_the_host_of_the_next_merge() {
    let first = merged(hosting(&["own"]), vec![plugin("a", full("a"))]);
    let second = merged(first, vec![requiring(&["a"], plugin("b", full("b")))]);
    let at_once = merged(hosting(&["own"]), vec![plugin("a", full("a")), plugin("b", full("b"))]);
    assert_eq!(second, at_once);
}

#[test]
fn a_plugin_id_that_stands_twice_is_refused_before_everything_else() {
    let twice = vec![
        requiring(&["nobody"], plugin("a", tools(&["beyond"]))),
        plugin("b", Contribution::default()),
        plugin("a", Contribution::default()),
    ];
    assert_eq!(refused(Environment::default(), twice), MergeError::DuplicatePlugin { id: "a".into() });
    let host = Environment { plugins: vec!["a".into()], ..Environment::default() };
    let error = refused(host, vec![plugin("a", Contribution::default())]);
    assert_eq!(error, MergeError::DuplicatePlugin { id: "a".into() });
}

#[test]
fn every_kind_of_contribution_is_held_against_the_bound() {
    let state = key(StateScope::Run, "k", MergePolicy::Exclusive);
    let cases = [
        (ContributionKind::Tool, "t", tools(&["t"])),
        (ContributionKind::StateKey, "k", Contribution { state_keys: vec![state], ..Contribution::default() }),
        (
            ContributionKind::Hook,
            "after_tool",
            Contribution { hooks: vec![HookPoint::AfterTool], ..Contribution::default() },
        ),
        (ContributionKind::ActionKind, "act", kinds(&["act"])),
        (
            ContributionKind::ToolGate,
            "g",
            Contribution { gates: vec![gate("g", GateOf::Tool, &[])], ..Contribution::default() },
        ),
        (
            ContributionKind::ReleaseGate,
            "g",
            Contribution { gates: vec![gate("g", GateOf::Release, &[])], ..Contribution::default() },
        ),
    ];
    assert_eq!(cases.each_ref().map(|case| case.0), ContributionKind::ALL);
    for (kind, id, contribution) in cases {
        let wide = Bound { hooks: HookPoint::ALL.to_vec(), ..all_of("a") };
        let bounds = [
            Bound::default(),
            // Everything but this.
            Bound {
                hooks: HookPoint::ALL.iter().copied().filter(|point| *point != HookPoint::AfterTool).collect(),
                ..wide
            },
        ];
        for bound in bounds {
            let manifest = PluginManifest::new("a", bound);
            let error = refused(Environment::default(), vec![Proposal::new(manifest, contribution.clone())]);
            let violation = BoundViolation { plugin: "a".into(), kind, id: id.to_owned() };
            assert_eq!(error, MergeError::Bound(violation));
            let resolution = ResolutionError::from(error);
            assert_eq!(resolution.failure(), Failure::CapabilityBound);
        }
        let just = Allowance::ids([id]);
        let bound = match kind {
            ContributionKind::Tool => Bound { tools: just, ..Bound::default() },
            ContributionKind::StateKey => Bound { state_keys: just, ..Bound::default() },
            ContributionKind::Hook => Bound { hooks: vec![HookPoint::AfterTool], ..Bound::default() },
            ContributionKind::ActionKind => Bound { action_kinds: just, ..Bound::default() },
            ContributionKind::ToolGate => Bound { tool_gates: just, ..Bound::default() },
            ContributionKind::ReleaseGate => Bound { release_gates: just, ..Bound::default() },
        };
        merged(Environment::default(), vec![Proposal::new(PluginManifest::new("a", bound), contribution)]);
    }
}

#[test]
fn a_hook_of_the_host_needs_a_bound_as_every_other() {
    let hook = Hook { plugin: "own".into(), point: HookPoint::RoundEnd };
    let bare = Environment { plugins: vec!["own".into()], hooks: vec![hook], ..Environment::default() };
    let violation = BoundViolation { plugin: "own".into(), kind: ContributionKind::Hook, id: "round_end".into() };
    assert_eq!(refused(bare.clone(), Vec::new()), MergeError::Bound(violation));
    let bound = Bound { hooks: vec![HookPoint::RoundEnd], ..Bound::default() };
    let capability =
        Capability { plugin: "own".into(), bound, tools: Vec::new(), gates: Vec::new(), action_kinds: Vec::new() };
    merged(Environment { capabilities: vec![capability], ..bare }, Vec::new());
}

#[test]
fn a_plugin_that_is_missing_is_named_with_the_one_that_requires_it() {
    let proposals = vec![plugin("a", Contribution::default()), requiring(&["a", "c"], plugin("b", tools(&["b.look"])))];
    let error = refused(Environment::default(), proposals.clone());
    assert_eq!(error, MergeError::MissingDependency { plugin: "b".into(), missing: "c".into() });
    let host = Environment { plugins: vec!["c".into()], ..Environment::default() };
    assert_eq!(merged(host, proposals).plugins, ["c", "a", "b"]);
}

#[test]
fn a_circle_is_named_without_those_who_only_wait_for_it() {
    let waits = |requires: &[&str], id: &str| requiring(requires, plugin(id, Contribution::default()));
    let proposals =
        vec![waits(&["b"], "a"), waits(&["d"], "b"), waits(&[], "c"), waits(&["c", "e"], "d"), waits(&["b"], "e")];
    let error = refused(Environment::default(), proposals);
    let MergeError::DependencyCycle { plugins } = &error else { panic!("{error:?}") };
    assert_eq!(plugins, &["b", "d", "e"]);
    assert!(error.to_string().contains(r#""b" -> "d" -> "e" -> "b""#), "{error}");
    let itself = refused(Environment::default(), vec![waits(&["a"], "a")]);
    assert_eq!(itself, MergeError::DependencyCycle { plugins: vec!["a".into()] });
}

#[test]
fn a_tool_that_stands_twice_names_both_owners_in_order() {
    let twice = |id: &str, first: &str, second: &str| MergeError::DuplicateTool {
        id: id.into(),
        first: first.into(),
        second: second.into(),
    };
    let bringing = |id: &str, names: &[&str]| {
        let bound = Bound { tools: Allowance::ids(names.iter().copied()), ..Bound::default() };
        Proposal::new(PluginManifest::new(id, bound), tools(names))
    };
    assert_eq!(refused(hosting(&["look"]), vec![bringing("a", &["look"])]), twice("look", HOST, "a"));
    let later = requiring(&["b"], bringing("a", &["look"]));
    assert_eq!(refused(hosting(&[]), vec![later, bringing("b", &["look"])]), twice("look", "b", "a"));
    assert_eq!(refused(hosting(&[]), vec![bringing("a", &["look", "look"])]), twice("look", "a", "a"));
    assert_eq!(refused(hosting(&["look", "look"]), Vec::new()), twice("look", HOST, HOST));
}

#[test]
fn an_action_kind_that_stands_twice_names_both_owners_in_order() {
    let bringing = |id: &str| {
        let bound = Bound { action_kinds: Allowance::ids(["tidy"]), ..Bound::default() };
        Proposal::new(PluginManifest::new(id, bound), kinds(&["tidy"]))
    };
    let later = requiring(&["b"], bringing("a"));
    let (id, first, second) = ("tidy".to_owned(), "b".to_owned(), "a".to_owned());
    let error = refused(Environment::default(), vec![later, bringing("b")]);
    assert_eq!(error, MergeError::DuplicateActionKind { id, first, second });
}

/// One fault of each class, mended one after the other: each shows only when those before it are gone.
#[test]
fn the_classes_of_checks_come_in_their_order() {
    let config = || Err(PluginConfigError::new("a", "it is malformed"));
    let bound = Bound {
        tools: Allowance::ids(["look"]),
        action_kinds: Allowance::ids(["tidy"]),
        hooks: vec![HookPoint::RoundEnd],
        ..Bound::default()
    };
    let manifest = |id: &str| PluginManifest::new(id, bound.clone());
    let broken = Proposal { manifest: manifest("a"), contribution: config() };
    let both = Contribution { action_kinds: vec!["tidy".into()], ..tools(&["look"]) };
    let mut host = hosting(&["look"]);
    let mut proposals = vec![
        broken,
        requiring(&["c"], Proposal::new(manifest("b"), both)),
        requiring(&["b", "nobody"], Proposal::new(manifest("c"), kinds(&["tidy", "beyond"]))),
        plugin("c", Contribution::default()),
    ];
    let mut classes = Vec::new();
    let mut next = |host: &Environment, proposals: &[Proposal]| {
        let error = refused(host.clone(), proposals.to_vec());
        classes.push(ResolutionError::from(error).tag());
    };
    next(&host, &proposals);
    proposals.pop();
    next(&host, &proposals);
    proposals[2].contribution.as_mut().unwrap().action_kinds.pop();
    next(&host, &proposals);
    proposals[2].manifest.requires.pop();
    next(&host, &proposals);
    proposals[2].manifest.requires.clear();
    next(&host, &proposals);
    host.tools.clear();
    next(&host, &proposals);
    proposals[2].contribution.as_mut().unwrap().action_kinds.clear();
    next(&host, &proposals);
    let expected = [
        "duplicate_plugin",
        "bound",
        "missing_dependency",
        "dependency_cycle",
        "duplicate_tool",
        "duplicate_action_kind",
        "config",
    ];
    assert_eq!(classes, expected);
    proposals[0].contribution = Ok(Contribution::default());
    merged(host, proposals);
}

/// Every variant, as a person reads it and as the run commits it.
#[test]
fn every_merge_error_says_the_ids_and_the_way_out() {
    let (id, first, second) = ("acme.look", "acme", "other");
    let pair = || (id.to_owned(), first.to_owned(), second.to_owned());
    let bound = |kind| MergeError::Bound(BoundViolation { plugin: first.into(), kind, id: id.into() });
    let mut errors: Vec<MergeError> = ContributionKind::ALL.iter().copied().map(bound).collect();
    let (tool, kind) = (pair(), pair());
    let config = PluginConfigError::new("acme", "the value breaks `type` of the plugin's schema");
    errors.extend([
        MergeError::DuplicateTool { id: tool.0, first: tool.1, second: tool.2 },
        MergeError::DuplicateActionKind { id: kind.0, first: kind.1, second: kind.2 },
        MergeError::MissingDependency { plugin: first.into(), missing: second.into() },
        MergeError::DependencyCycle { plugins: vec![first.into(), second.into()] },
        MergeError::DuplicatePlugin { id: first.into() },
        MergeError::Config(config.clone()),
        MergeError::Config(config.at("/port".parse().unwrap())),
    ]);
    let shown = errors.into_iter().map(|error| {
        let message = error.to_string();
        let resolution = ResolutionError::from(error);
        format!("{message}\n  {resolution}\n  {:?}", resolution.failure())
    });
    snapshot!("merge_errors", shown.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_merge_error_ends_the_run_under_its_own_name() {
    let waits = |requires: &[&str], id: &str| requiring(requires, plugin(id, Contribution::default()));
    let error = refused(Environment::default(), vec![waits(&["b"], "a"), waits(&["a"], "b")]);
    let error = ResolutionError::from(error);
    assert_eq!(error.failure(), Failure::Resolution { kind: ResolutionKind::DependencyCycle });
    let input = Input::ResolutionFailed { error };
    let written = serde_json::to_string(&input).unwrap();
    let expected = r#"{"type":"resolution_failed","error":{"type":"dependency_cycle","plugins":["a","b"]}}"#;
    assert_eq!(written, expected);
    assert_eq!(serde_json::from_str::<Input>(&written).unwrap(), input);
}

/// Histories from before circles had names keep their bytes.
#[test]
fn a_circle_without_names_is_written_as_it_was() {
    let text = r#"{"type":"resolution_failed","error":{"type":"dependency_cycle"}}"#;
    let input: Input = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&input).unwrap(), text);
}
