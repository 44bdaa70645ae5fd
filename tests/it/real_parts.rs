//! Scenarios with real parts: ports in the place of the script (SPEC 14.19).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use portcullis::adapters::scenario::{Real, Scenario};
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::ports::{
    Invocation, Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall, ModelFailure, Tools,
};
use portcullis::vocabulary::environment::Environment;
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::input::Verdict;
use portcullis::vocabulary::llm::{self, ToolRequest};
use portcullis::vocabulary::spec::{Spec, ToolSpec};
use portcullis::vocabulary::tool::{ToolError, ToolOutput};

use crate::stage::{Played, block_on, perform_with};

/// Looks once, then concludes.
#[derive(Default)]
struct Asked(Arc<AtomicU32>);

impl Model for Asked {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        if call.call.0 > 1 {
            return Ok(ModelAnswer::text(r#"{"conclusion":{"statement":"It rains."},"citations":["f1"]}"#));
        }
        let (name, arguments) = ("sky__look".to_owned(), "{}".to_owned());
        Ok(ModelAnswer::calls([ToolRequest { name, arguments, provider_id: None }]))
    }
}

/// One tool of the source `sky`.
#[derive(Default)]
struct Sky(Arc<Mutex<Vec<String>>>);

impl Tools for Sky {
    async fn resolve(&self, spec: &Spec) -> Result<Environment, ResolutionError> {
        assert!(spec.tools.is_empty(), "the spec's own tools are the script's");
        let tools = spec.tool_sources.iter().map(|source| ToolSpec::evidence(source.tool_name("look"))).collect();
        Ok(Environment { tools, ..Environment::default() })
    }

    async fn invoke(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        self.0.lock().unwrap().push(invocation.tool().name.clone());
        Ok(ToolOutput::facts("drops", [Statement::new("drops fall")]))
    }
}

struct Agrees;

impl Judge for Agrees {
    async fn judge(&self, _: JudgeQuestion) -> Result<Judgement, llm::Error> {
        Ok(Judgement { verdict: Verdict::Supported, usage: None })
    }
}

const SOURCES: &str = r#"[{"name":"sky","transport":{"type":"stdio","command":"no-such-program"}}]"#;

fn scenario(real: &str, script: &str) -> Scenario {
    // The results of a scripted tool stand with the calls of a scripted model.
    let tools = if real.contains("model") { "[]" } else { r#"[{"name":"ask"}]"# };
    let text = format!(
        r#"{{"real":{real},"spec":{{"task":"Does it rain?","model":{{"name":"m"}},"tools":{tools},
        "tool_sources":{SOURCES},"release":{{"judge_model":{{"name":"j"}}}}}},"script":{script}}}"#
    );
    Scenario::read(text.as_bytes()).unwrap()
}

fn played(scenario: Scenario, real: Real) -> Result<Played, Error> {
    block_on(perform_with(scenario, Arc::new(MemoryStore::new()), real))
}

#[test]
fn parts_that_are_real_are_asked_and_the_script_plays_the_others() {
    let (asked, entered) = (Asked::default(), Sky::default());
    let (questions, calls) = (Arc::clone(&asked.0), Arc::clone(&entered.0));
    let real = Real::default().model(asked).tools(entered).judge(Agrees);
    let all = played(scenario(r#"["model","tools","judge"]"#, "{}"), real).unwrap();
    assert_eq!(all.ending.unwrap().row, 1);
    assert_eq!(questions.load(Ordering::Relaxed), 2);
    assert_eq!(*calls.lock().unwrap(), ["sky__look"]);
}

#[test]
fn a_scripted_model_may_call_real_and_scripted_tools_in_one_batch() {
    let script = r#"{"model":[
        {"calls":[{"tool":"sky__look"},{"tool":"ask","result":{"content":"scripted"}}]},
        {"draft":{"conclusion":{"statement":"It rains."},"citations":["f1"]}}],
        "judge":[{"verdict":"supported"}]}"#;
    let sky = Sky::default();
    let calls = Arc::clone(&sky.0);
    let mixed = played(scenario(r#"["tools"]"#, script), Real::default().tools(sky)).unwrap();
    assert_eq!(mixed.ending.unwrap().row, 1);
    assert!(mixed.questions.is_empty() && mixed.unused.is_empty(), "{:?}", mixed.questions);
    assert_eq!(*calls.lock().unwrap(), ["sky__look"]);
    let history = String::from_utf8(mixed.history).unwrap();
    assert!(history.contains(r#""content":"scripted""#) && history.contains("drops fall"));
}

#[test]
fn ports_that_the_scenario_does_not_call_real_are_never_asked() {
    let script = r#"{"model":[{"draft":{"conclusion":null,"citations":[]}}]}"#;
    let (asked, sky) = (Asked::default(), Sky::default());
    let (questions, calls) = (Arc::clone(&asked.0), Arc::clone(&sky.0));
    let real = Real::default().model(asked).tools(sky).judge(Agrees);
    let scripted = played(scenario("[]", script), real).unwrap();
    assert_eq!(scripted.ending.unwrap().row, 6);
    assert_eq!((questions.load(Ordering::Relaxed), calls.lock().unwrap().len()), (0, 0));
}

#[test]
fn a_part_without_its_port_begins_no_run() {
    for (real, missing) in [("model", "a model"), ("tools", "tools"), ("judge", "a judge")] {
        let begun = played(scenario(&format!(r#"["{real}"]"#), "{}"), Real::default());
        let Err(Error::Execution(Trouble::Unequipped(named))) = begun else { panic!("it began without {missing}") };
        assert_eq!(named, missing);
    }
}

#[test]
fn a_part_that_has_nothing_to_be_is_refused_in_the_file() {
    let spec = r#"{"task":"t","model":{"name":"m"}}"#;
    for (real, reason) in [("tools", "tool_sources"), ("judge", "judge_model")] {
        let text = format!(r#"{{"real":["{real}"],"spec":{spec}}}"#);
        let fault = Scenario::read(text.as_bytes()).unwrap_err();
        assert!(fault.reason.contains(reason), "{fault}");
    }
    assert!(Scenario::read(format!(r#"{{"real":["clock"],"spec":{spec}}}"#).as_bytes()).is_err());
}

/// The real tool would be entered in the place of the scripted one, whatever the source leaves out.
#[test]
fn a_scripted_tool_may_not_have_the_name_of_a_sources_tool() {
    let tool = r#"[{"name":"sky__fall"}]"#;
    let of_spec = format!(r#""tools":{tool},"#);
    let found = format!(r#","environment":{{"tools":{tool}}}"#);
    for (spec, environment) in [(of_spec.as_str(), ""), ("", found.as_str())] {
        let text = format!(
            r#"{{"real":["tools"],"spec":{{"task":"t","model":{{"name":"m"}},{spec}"tool_sources":{SOURCES}}}{environment}}}"#
        );
        let fault = Scenario::read(text.as_bytes()).unwrap_err();
        assert!(fault.reason.contains("sky__fall"), "{fault}");
    }
}

#[test]
fn a_real_model_cannot_call_tools_whose_results_only_a_scripted_one_has() {
    let text = r#"{"real":["model"],"spec":{"task":"t","model":{"name":"m"},"tools":[{"name":"ask"}]}}"#;
    let fault = Scenario::read(text.as_bytes()).unwrap_err();
    assert!(fault.reason.contains("ask") && fault.reason.contains("tool_sources"), "{fault}");
}

/// A judgement is charged by the price of the model that judges, whatever its verdict.
#[test]
fn a_judgement_costs_what_its_own_model_costs() {
    for verdict in ["supported", "unknown"] {
        let text = format!(
            r#"{{"spec":{{"task":"t","model":{{"name":"m"}},"tools":[{{"name":"look","evidence":true}}],
            "release":{{"judge_model":{{"name":"j"}}}},
            "budgets":{{"prices":{{"j":{{"input_micros_per_million":7000000}},"m":{{"input_micros_per_million":1000000}}}}}}}},
            "script":{{"model":[{{"calls":[{{"tool":"look","result":{{"content":"c","facts":["f"]}}}}]}},
            {{"draft":{{"conclusion":{{"statement":"s"}},"citations":["f1"]}}}}],
            "judge":[{{"verdict":"{verdict}","usage":{{"input_tokens":3,"output_tokens":0}}}}]}}}}"#
        );
        let played = played(Scenario::read(text.as_bytes()).unwrap(), Real::default()).unwrap();
        let history = String::from_utf8(played.history).unwrap();
        assert!(history.contains(r#""cost_micros":21"#), "{verdict}: {history}");
    }
}
