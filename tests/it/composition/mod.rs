//! Plugins: their merge, their bounds, their state (SPEC 12).

mod allowance;
mod configuration;
mod merge;
mod properties;
mod shared;
mod state;

use portcullis::composition::{Contribution, PluginManifest, Proposal};
use portcullis::engine::{Engine, Step};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::environment::{
    Environment, Gate, GateOf, HookPoint, MergePolicy, StateKeySpec, StateScope,
};
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use proptest::test_runner::{Config, FileFailurePersistence, RngAlgorithm, TestRng, TestRunner};

/// A bound that allows whatever lies in the namespace, and every hook.
fn all_of(namespace: &str) -> Bound {
    let own = || Allowance::namespace(namespace);
    Bound {
        tools: own(),
        state_keys: own(),
        hooks: HookPoint::ALL.to_vec(),
        action_kinds: own(),
        tool_gates: own(),
        release_gates: own(),
    }
}

/// A plugin that may contribute what lies in the namespace of its id.
fn plugin(id: &str, contribution: Contribution) -> Proposal {
    Proposal::new(PluginManifest::new(id, all_of(id)), contribution)
}

fn requiring(requires: &[&str], proposal: Proposal) -> Proposal {
    let requires = requires.iter().map(|id| (*id).to_owned()).collect();
    Proposal { manifest: PluginManifest { requires, ..proposal.manifest }, ..proposal }
}

fn tools(names: &[&str]) -> Contribution {
    Contribution { tools: names.iter().map(|name| ToolSpec::new(*name)).collect(), ..Contribution::default() }
}

fn kinds(names: &[&str]) -> Contribution {
    Contribution { action_kinds: names.iter().map(|name| (*name).to_owned()).collect(), ..Contribution::default() }
}

fn gate(id: &str, of: GateOf, tools: &[&str]) -> Gate {
    Gate { id: id.to_owned(), of, tools: tools.iter().map(|name| (*name).to_owned()).collect() }
}

fn key(scope: StateScope, key: &str, policy: MergePolicy) -> StateKeySpec {
    StateKeySpec { scope, key: key.to_owned(), policy }
}

/// A run that is given this environment, and the step in which it was.
fn run_in(environment: Environment) -> (Engine, Step) {
    let mut engine = Engine::new();
    let (run_id, spec) = ("composed".parse().unwrap(), Box::new(Spec::new("find out", "model")));
    let (nonce, wall_time) = ("nonce".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    engine.step(0, Input::RunStarted { run_id, spec, nonce, wall_time, forked_from: None }).unwrap();
    let step = engine.step(0, Input::EnvironmentResolved { environment: Box::new(environment) }).unwrap();
    (engine, step)
}

/// The same cases in every run: what was counted once is counted again.
fn runner(cases: u32) -> TestRunner {
    let persistence = FileFailurePersistence::Direct("proptest-regressions/composition.txt");
    let config = Config { cases, failure_persistence: Some(Box::new(persistence)), ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}
