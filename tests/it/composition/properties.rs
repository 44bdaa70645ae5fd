//! The merge, against a model that looks for the classes of errors one by one and tries every order.

use std::cell::RefCell;
use std::collections::BTreeMap;

use portcullis::composition::{Contribution, PluginConfigError, PluginManifest, Proposal, ResolvedExecutionEnv};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::environment::{
    Capability, Environment, Gate, GateOf, HookPoint, MergePolicy, StateKeySpec, StateScope,
};
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::spec::ToolSpec;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::allowance::allows;
use super::{gate, key, run_in, runner};

const IDS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A name of the plugin's own, or, seldom, one that others use too.
fn name(id: &'static str, shared: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        12 => select(vec!["read", "write", "ask"]).prop_map(move |name| format!("{id}.{name}")),
        2 => Just(shared.to_owned()),
    ]
}

fn distinct(name: impl Strategy<Value = String>, most: usize) -> impl Strategy<Value = Vec<String>> {
    vec(name, 0..=most).prop_map(|mut names| {
        names.sort();
        names.dedup();
        names
    })
}

fn gates(id: &'static str) -> impl Strategy<Value = Vec<Gate>> {
    let stands_before = prop_oneof![
        6 => Just(Vec::new()),
        1 => Just(vec!["own"]),
        1 => Just(vec!["nothing"]),
    ];
    let of = select(GateOf::ALL);
    let one = (name(id, "gate"), of, stands_before).prop_map(|(id, of, tools)| match of {
        GateOf::Release if tools != ["nothing"] => gate(&id, of, &[]),
        GateOf::Release | GateOf::Tool => gate(&id, of, &tools),
    });
    prop_oneof![3 => Just(Vec::new()), 2 => vec(one, 1..3)]
}

fn state_keys(id: &'static str) -> impl Strategy<Value = Vec<StateKeySpec>> {
    let policy = prop_oneof![8 => Just(MergePolicy::Disjoint), 1 => select(MergePolicy::ALL)];
    let one = (select(StateScope::ALL), name(id, "notes"), policy);
    vec(one.prop_map(|(scope, name, policy)| key(scope, &name, policy)), 0..3)
}

fn hooks() -> impl Strategy<Value = Vec<HookPoint>> {
    prop_oneof![
        12 => subsequence(HookPoint::ALL, 0..4),
        1 => vec(select(HookPoint::ALL), 2..4),
    ]
}

/// Wide enough as a rule; now and then drawn at random.
fn bound(id: &'static str) -> impl Strategy<Value = Bound> {
    let wide = move || Allowance::namespace(id).and(["look", "gate", "notes", "tidy", "own"]);
    let narrow = move || {
        prop_oneof![
            6 => Just(wide()),
            1 => Just(Allowance::default()),
            1 => Just(Allowance::namespace(id)),
            1 => Just(Allowance::ids([format!("{id}.read")])),
            1 => Just(Allowance::namespace(&id[..1])),
        ]
    };
    let hooks = prop_oneof![3 => Just(HookPoint::ALL.to_vec()), 1 => subsequence(HookPoint::ALL, 0..7)];
    let drawn = (narrow(), narrow(), hooks, narrow(), narrow(), narrow()).prop_map(
        |(tools, state_keys, hooks, action_kinds, tool_gates, release_gates)| Bound {
            tools,
            state_keys,
            hooks,
            action_kinds,
            tool_gates,
            release_gates,
        },
    );
    let generous = Just(Bound {
        tools: wide(),
        state_keys: wide(),
        hooks: HookPoint::ALL.to_vec(),
        action_kinds: wide(),
        tool_gates: wide(),
        release_gates: wide(),
    });
    prop_oneof![9 => generous, 1 => drawn]
}

fn proposal(id: &'static str) -> impl Strategy<Value = Proposal> {
    let required = prop_oneof![
        60 => select(IDS.to_vec()).prop_map(|id| vec![id]),
        100 => Just(Vec::new()),
        1 => Just(vec!["nobody"]),
    ];
    let contribution =
        (distinct(name(id, "look"), 3), gates(id), hooks(), state_keys(id), distinct(name(id, "tidy"), 2)).prop_map(
            |(tools, gates, hooks, state_keys, action_kinds)| Contribution {
                tools: tools.into_iter().map(ToolSpec::new).collect(),
                gates,
                hooks,
                state_keys,
                action_kinds,
            },
        );
    let outcome = prop_oneof![
        15 => contribution.prop_map(Ok),
        1 => Just(Err(PluginConfigError::new(id, "malformed"))),
    ];
    (required, bound(id), outcome).prop_map(move |(requires, bound, contribution)| Proposal {
        manifest: PluginManifest {
            requires: requires.into_iter().map(str::to_owned).collect(),
            ..PluginManifest::new(id, bound)
        },
        contribution,
    })
}

/// Up to five plugins in any order; seldom one of them twice.
fn proposals() -> impl Strategy<Value = Vec<Proposal>> {
    let ids = subsequence(IDS.to_vec(), 0..=5).prop_shuffle();
    let ids = (ids, any::<u8>()).prop_map(|(mut ids, twice)| {
        if twice < 8 {
            ids.extend(ids.clone().first());
        }
        ids
    });
    ids.prop_flat_map(|ids| ids.into_iter().map(proposal).collect::<Vec<_>>())
}

fn host() -> impl Strategy<Value = Environment> {
    let spare = |more: bool, name: &str| more.then(|| name.to_owned());
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<u8>()).prop_map(move |(tool, gated, keyed, plugin)| {
        let mut host = Environment {
            tools: std::iter::once("own".to_owned()).chain(spare(tool, "spare")).map(ToolSpec::new).collect(),
            gates: spare(gated, "hatch").map(|id| gate(&id, GateOf::Tool, &["own"])).into_iter().collect(),
            state_keys: spare(keyed, "notes")
                .map(|name| key(StateScope::Thread, &name, MergePolicy::Disjoint))
                .into_iter()
                .collect(),
            ..Environment::default()
        };
        // A plugin of an earlier merge, which seldom is one of those that are proposed.
        if plugin % 4 == 0 {
            let id = if plugin < 16 { "a" } else { "earlier" };
            host.plugins.push(id.to_owned());
            host.tools.push(ToolSpec::new("earlier.look"));
            host.capabilities.push(Capability {
                plugin: id.to_owned(),
                bound: Bound { tools: Allowance::namespace("earlier"), ..Bound::default() },
                tools: vec!["earlier.look".to_owned()],
                gates: Vec::new(),
                action_kinds: Vec::new(),
            });
        }
        host
    })
}

/// The ids of which there is more than one.
fn repeated<'a>(ids: impl IntoIterator<Item = &'a str>) -> bool {
    let mut ids: Vec<&str> = ids.into_iter().collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() < all
}

fn contributions(proposals: &[Proposal]) -> impl Iterator<Item = (&PluginManifest, &Contribution)> {
    proposals.iter().filter_map(|proposal| Some((&proposal.manifest, proposal.contribution.as_ref().ok()?)))
}

fn is_within(bound: &Bound, contribution: &Contribution) -> bool {
    let gates = |of: GateOf, allowance: &Allowance| {
        contribution.gates.iter().filter(|gate| gate.of == of).all(|gate| allows(allowance, &gate.id))
    };
    contribution.tools.iter().all(|tool| allows(&bound.tools, &tool.name))
        && contribution.state_keys.iter().all(|state| allows(&bound.state_keys, &state.key))
        && contribution.hooks.iter().all(|point| bound.hooks.contains(point))
        && contribution.action_kinds.iter().all(|kind| allows(&bound.action_kinds, kind))
        && gates(GateOf::Tool, &bound.tool_gates)
        && gates(GateOf::Release, &bound.release_gates)
}

/// Every order of `0..count`, smallest first.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = |order: &Vec<usize>| {
            let free = (0..count).filter(|next| !order.contains(next));
            free.map(|next| order.iter().copied().chain([next]).collect()).collect::<Vec<Vec<usize>>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The first order, as the input counts, in which every plugin follows those that it requires.
fn first_order(host: &Environment, proposals: &[Proposal]) -> Option<Vec<String>> {
    let named = |order: &Vec<usize>| -> Vec<String> {
        order.iter().map(|place| proposals[*place].manifest.id.clone()).collect()
    };
    let holds = |order: &Vec<usize>| {
        let ids: Vec<String> = host.plugins.iter().cloned().chain(named(order)).collect();
        let place = |id: &String| ids.iter().position(|placed| placed == id).unwrap();
        proposals
            .iter()
            .all(|proposal| proposal.manifest.requires.iter().all(|id| place(id) < place(&proposal.manifest.id)))
    };
    orders(proposals.len()).iter().find(|order| holds(order)).map(named)
}

fn is_misconfigured(host: &Environment, proposals: &[Proposal]) -> bool {
    let gates: Vec<&Gate> = host.gates.iter().chain(contributions(proposals).flat_map(|(_, own)| &own.gates)).collect();
    let tools: Vec<&str> = tool_names(host, proposals).collect();
    let mut policies: BTreeMap<(StateScope, &str), Vec<MergePolicy>> = BTreeMap::new();
    for state in host.state_keys.iter().chain(contributions(proposals).flat_map(|(_, own)| &own.state_keys)) {
        policies.entry((state.scope, &state.key)).or_default().push(state.policy);
    }
    proposals.iter().any(|proposal| proposal.contribution.is_err())
        || repeated(gates.iter().map(|gate| gate.id.as_str()))
        || gates.iter().any(|gate| gate.tools.iter().any(|tool| !tools.contains(&tool.as_str())))
        || gates.iter().any(|gate| gate.of == GateOf::Release && !gate.tools.is_empty())
        || policies.values().any(|declared| declared.iter().any(|policy| *policy != declared[0]))
        || contributions(proposals).any(|(_, own)| repeated(own.hooks.iter().map(|point| point.word())))
}

fn tool_names<'a>(host: &'a Environment, proposals: &'a [Proposal]) -> impl Iterator<Item = &'a str> {
    host.tools.iter().chain(contributions(proposals).flat_map(|(_, own)| &own.tools)).map(|tool| tool.name.as_str())
}

/// The first class of error, if there is one.
fn fault(host: &Environment, proposals: &[Proposal]) -> Option<&'static str> {
    let ids = || host.plugins.iter().chain(proposals.iter().map(|proposal| &proposal.manifest.id));
    let kinds = || contributions(proposals).flat_map(|(_, own)| &own.action_kinds);
    let required = || proposals.iter().flat_map(|proposal| &proposal.manifest.requires);
    if repeated(ids().map(String::as_str)) {
        Some("duplicate_plugin")
    } else if !contributions(proposals).all(|(manifest, own)| is_within(&manifest.bound, own)) {
        Some("bound")
    } else if required().any(|id| !ids().any(|there| there == id)) {
        Some("missing_dependency")
    } else if first_order(host, proposals).is_none() {
        Some("dependency_cycle")
    } else if repeated(tool_names(host, proposals)) {
        Some("duplicate_tool")
    } else if repeated(kinds().map(String::as_str)) {
        Some("duplicate_action_kind")
    } else {
        is_misconfigured(host, proposals).then_some("config")
    }
}

fn merge(host: &Environment, proposals: &[Proposal]) -> Result<Environment, &'static str> {
    ResolvedExecutionEnv::merge(host.clone(), proposals.to_vec())
        .map(ResolvedExecutionEnv::into_environment)
        .map_err(|error| ResolutionError::from(error).tag())
}

#[test]
fn a_merge_fails_with_the_first_class_of_error_that_its_model_finds() {
    let met: RefCell<BTreeMap<&str, u32>> = RefCell::default();
    runner(3_000)
        .run(&(host(), proposals()), |(host, proposals)| {
            let expected = fault(&host, &proposals);
            *met.borrow_mut().entry(expected.unwrap_or("merged")).or_default() += 1;
            prop_assert_eq!(merge(&host, &proposals).err(), expected);
            Ok(())
        })
        .unwrap();
    let met = met.into_inner();
    assert_eq!(met.len(), 8, "{met:?}");
    assert!(met.values().all(|count| *count > 20) && met["merged"] > 500, "{met:?}");
}

#[test]
fn a_merge_is_stable_and_loses_nothing() {
    runner(2_000)
        .run(&(host(), proposals()), |(host, proposals)| {
            let Ok(environment) = merge(&host, &proposals) else { return Ok(()) };
            let order = first_order(&host, &proposals).unwrap();
            let plugins: Vec<String> = host.plugins.iter().cloned().chain(order.iter().cloned()).collect();
            prop_assert_eq!(&environment.plugins, &plugins);
            let own = |id: &String| {
                contributions(&proposals).find(|(manifest, _)| manifest.id == *id).map(|(_, own)| own).unwrap()
            };
            let listed = |list: fn(&Contribution) -> Vec<String>| order.iter().flat_map(|id| list(own(id))).collect();
            let tools: Vec<String> = listed(|own| own.tools.iter().map(|tool| tool.name.clone()).collect());
            let found: Vec<String> = environment.tools.iter().map(|tool| tool.name.clone()).collect();
            prop_assert_eq!(
                &found[..host.tools.len()],
                &host.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()[..]
            );
            prop_assert_eq!(&found[host.tools.len()..], &tools[..]);
            let gates: Vec<String> = listed(|own| own.gates.iter().map(|gate| gate.id.clone()).collect());
            let found: Vec<String> = environment.gates[host.gates.len()..].iter().map(|gate| gate.id.clone()).collect();
            prop_assert_eq!(found, gates);
            let hooks: Vec<(String, HookPoint)> =
                order.iter().flat_map(|id| own(id).hooks.iter().map(|point| (id.clone(), *point))).collect();
            let found: Vec<_> = environment.hooks.iter().map(|hook| (hook.plugin.clone(), hook.point)).collect();
            prop_assert_eq!(found, hooks);
            let declared = host.state_keys.iter().chain(order.iter().flat_map(|id| &own(id).state_keys));
            let mut once: Vec<&StateKeySpec> = Vec::new();
            declared.for_each(|state| {
                if !once.contains(&state) {
                    once.push(state)
                }
            });
            prop_assert_eq!(environment.state_keys.iter().collect::<Vec<_>>(), once);
            Ok(())
        })
        .unwrap();
}

/// A set is compared without its order.
fn sorted<T>(list: &[T], text: impl Fn(&T) -> String) -> Vec<String> {
    let mut all: Vec<String> = list.iter().map(text).collect();
    all.sort();
    all
}

#[test]
fn the_order_of_proposals_changes_the_order_of_a_merge_and_nothing_else() {
    let shuffled = proposals().prop_flat_map(|proposals| (Just(proposals.clone()), Just(proposals).prop_shuffle()));
    runner(2_000)
        .run(&(host(), shuffled), |(host, (one, other))| {
            let (one, other) = match (merge(&host, &one), merge(&host, &other)) {
                (Ok(one), Ok(other)) => (one, other),
                (one, other) => {
                    prop_assert_eq!(one.err(), other.err());
                    return Ok(());
                }
            };
            let sets = |all: &Environment| {
                [
                    sorted(&all.tools, |tool| format!("{tool:?}")),
                    sorted(&all.gates, |gate| format!("{gate:?}")),
                    sorted(&all.hooks, |hook| format!("{hook:?}")),
                    sorted(&all.state_keys, |state| format!("{state:?}")),
                    sorted(&all.action_kinds, Clone::clone),
                    sorted(&all.plugins, Clone::clone),
                    sorted(&all.capabilities, |capability| format!("{capability:?}")),
                ]
            };
            prop_assert_eq!(sets(&one), sets(&other));
            Ok(())
        })
        .unwrap();
}

/// Held against the model of a bound, and against the engine, which checks again.
#[test]
fn whatever_is_merged_lies_inside_a_bound_and_is_accepted_by_an_engine() {
    let merged = RefCell::new(0);
    runner(2_000)
        .run(&(host(), proposals()), |(host, proposals)| {
            let Ok(environment) = merge(&host, &proposals) else { return Ok(()) };
            *merged.borrow_mut() += 1;
            let capability = |plugin: &str| environment.capabilities.iter().find(|own| own.plugin == plugin).unwrap();
            let owners = |list: fn(&Capability) -> &Vec<String>, id: &String| -> Vec<&Capability> {
                environment.capabilities.iter().filter(|own| list(own).contains(id)).collect()
            };
            for tool in environment.tools.iter().filter(|tool| !host.tools.contains(tool)) {
                let owners = owners(|own| &own.tools, &tool.name);
                prop_assert_eq!(owners.len(), 1);
                prop_assert!(allows(&owners[0].bound.tools, &tool.name));
            }
            for gate in environment.gates.iter().filter(|gate| !host.gates.contains(gate)) {
                let owners = owners(|own| &own.gates, &gate.id);
                prop_assert_eq!(owners.len(), 1);
                let allowance = match gate.of {
                    GateOf::Tool => &owners[0].bound.tool_gates,
                    GateOf::Release => &owners[0].bound.release_gates,
                };
                prop_assert!(allows(allowance, &gate.id));
            }
            for hook in &environment.hooks {
                prop_assert!(capability(&hook.plugin).bound.hooks.contains(&hook.point));
            }
            for kind in &environment.action_kinds {
                let owners = owners(|own| &own.action_kinds, kind);
                prop_assert_eq!(owners.len(), 1);
                prop_assert!(allows(&owners[0].bound.action_kinds, kind));
            }
            for state in environment.state_keys.iter().filter(|state| !host.state_keys.contains(state)) {
                let mut declaring = contributions(&proposals).filter(|(_, own)| own.state_keys.contains(state));
                prop_assert!(declaring.all(|(manifest, _)| allows(&manifest.bound.state_keys, &state.key)));
            }
            let (engine, step) = run_in(environment);
            prop_assert!(engine.ending().is_none(), "{:?}", engine.ending());
            prop_assert!(!step.effects.is_empty());
            Ok(())
        })
        .unwrap();
    assert!(*merged.borrow() > 400, "{merged:?}");
}
