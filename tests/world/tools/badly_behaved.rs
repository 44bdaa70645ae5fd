//! A hostile server over standard streams. Each of its ways meets a limit and gets a typed error: no memory, no
//! time without end.

use std::time::Duration;

use libtest_mimic::Trial;
use portcullis::adapters::mcp::McpTools;
use portcullis::runtime::ports::Tools;
use portcullis::vocabulary::failure::ResolutionError;
use portcullis::vocabulary::spec::{SecretRef, Spec, ToolSource, ToolSpec, Transport};
use portcullis::vocabulary::tool::{Recovery, ToolError, ToolOutput};

use super::bench::{Bench, Ear, children, gone, http, none_of, only, peak_mib, runs, spec, stdio, with};
use crate::components::test;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("tools::badly_behaved::a_start_that_fails_says_why", failed_starts),
        Trial::test("tools::badly_behaved::a_handshake_has_its_time", handshake_has_its_time),
        test("tools::badly_behaved::a_list_that_breaks_a_limit_is_no_route", broken_lists),
        test("tools::badly_behaved::a_tool_that_cannot_be_used_is_refused_by_name", bad_tools),
        test("tools::badly_behaved::the_engine_refuses_schemas_that_cannot_be_bounded", bad_schemas),
        test("tools::badly_behaved::what_is_listed_in_pages_or_after_noise_joins", good_lists),
        test("tools::badly_behaved::descriptions_are_cut_and_hide_nothing", described),
        test("tools::badly_behaved::settings_win_over_hints_and_name_what_they_get_wrong", settings),
        test("tools::badly_behaved::each_answer_becomes_what_it_is", answers),
        test("tools::badly_behaved::a_result_without_the_protocols_form_is_no_success", formless),
        test("tools::badly_behaved::each_kind_of_content_becomes_text", contents),
        test("tools::badly_behaved::an_answer_without_an_end_meets_a_limit_and_not_memory", endless),
        test("tools::badly_behaved::a_message_of_very_many_values_meets_a_limit_and_not_memory", values),
        test("tools::badly_behaved::requests_of_the_server_are_not_supported", asked),
        test("tools::badly_behaved::a_long_id_of_a_servers_request_is_not_given_back", long_ids),
        test("tools::badly_behaved::floods_neither_stall_nor_grow", floods),
        test(
            "tools::badly_behaved::a_call_that_is_dropped_is_cancelled_at_the_server_and_its_late_answer_is_lost",
            dropped,
        ),
        test("tools::badly_behaved::a_server_that_stops_reading_costs_its_own_calls_alone", stops_reading),
        test("tools::badly_behaved::a_server_that_dies_is_started_again_once", dies),
        test("tools::badly_behaved::a_server_that_comes_back_without_the_tool_is_not_asked_for_it", loses_a_tool),
        test("tools::badly_behaved::a_list_that_changes_changes_no_run", changes),
        test("tools::badly_behaved::only_the_live_configuration_starts_anything", live_configuration),
        test("tools::badly_behaved::what_the_live_only_leaves_out_is_neither_offered_nor_called", left_out),
        test("tools::badly_behaved::variables_are_handed_over_by_reference_alone", variables),
        test("tools::badly_behaved::what_a_server_started_ends_with_it", grandchildren),
        test("tools::badly_behaved::numbers_arrive_exactly", numbers),
        test("tools::badly_behaved::names_of_this_process_and_of_servers_do_not_meet", namespaces),
    ]
}

pub(super) fn hostile(mode: &str, port: u16) -> ToolSource {
    stdio("h", std::env::current_exe().unwrap(), &["serve-mcp", mode, &port.to_string()])
}

/// A server in that mode, without anybody who listens.
pub(super) fn silent(mode: &str) -> ToolSource {
    hostile(mode, 1)
}

async fn plain() -> (Bench, Ear) {
    let ear = Ear::open().await;
    (Bench::new([hostile("plain", ear.port)]).await.unwrap(), ear)
}

async fn refused(source: ToolSource) -> ResolutionError {
    match tokio::time::timeout(Duration::from_secs(60), Bench::new([source])).await {
        Ok(Ok(bench)) => panic!("{:?}", bench.names()),
        Ok(Err(error)) => error,
        Err(_) => panic!("it takes for ever"),
    }
}

/// The message of an error of routing.
pub(super) async fn no_route(source: ToolSource) -> String {
    match refused(source).await {
        ResolutionError::Routing { message } => message,
        other => panic!("{other:?}"),
    }
}

async fn failed_starts() {
    let absent = no_route(stdio("h", "/nowhere/at/all", &[])).await;
    assert!(absent.contains("could not be started: there is no program at /nowhere/at/all"), "{absent}");
    let nameless = no_route(stdio("h", "a-program-that-nobody-has", &[])).await;
    assert!(nameless.contains("in the folders of PATH: /"), "{nameless}");
    let dead = no_route(silent("dies-at-once")).await;
    assert!(dead.contains("exited with 3: no licence[31m found"), "{dead}");
    let mute = no_route(stdio("h", "/bin/true", &[])).await;
    assert!(mute.contains("exited with 0"), "{mute}");
    for (mode, said) in [("initializes-with-an-error", "not today"), ("initializes-badly", "neither one result")] {
        let message = no_route(silent(mode)).await;
        assert!(message.contains(said), "{mode}: {message}");
    }
    let endless = no_route(silent("endless-line")).await;
    assert!(endless.contains("4194304 bytes"), "{endless}");
}

/// In virtual time, which passes while nothing happens.
fn handshake_has_its_time() -> Result<(), libtest_mimic::Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let began = std::time::Instant::now();
    let message = runtime.block_on(no_route(silent("never-initializes")));
    assert!(message.contains("no handshake within 30 seconds"), "{message}");
    assert!(began.elapsed() < Duration::from_secs(10));
    Ok(())
}

async fn broken_lists() {
    for (mode, said) in [
        ("lists-with-an-error", "broken"),
        ("lists-for-ever", "64 pages"),
        ("lists-in-a-circle", "circle"),
        ("lists-too-many", "256 tools"),
        ("huge-list", "4194304 bytes"),
        ("huge-page", "4194304 bytes"),
        ("schema-no-object", "form"),
        ("deep-schema", "depth"),
        ("duplicate-keys", "duplicate_key"),
    ] {
        let message = no_route(silent(mode)).await;
        assert!(message.contains(said) && message.contains("\"h\""), "{mode}: {message}");
    }
    assert!(children("huge-list").is_empty(), "a server that is not used does not stay");
}

async fn bad_tools() {
    for mode in ["control-name", "empty-name", "long-name", "huge-schema"] {
        let error = refused(silent(mode)).await;
        assert!(matches!(error, ResolutionError::InvalidTool { .. }), "{mode}: {error:?}");
        assert!(!error.to_string().contains('\u{202e}'));
    }
    let ResolutionError::DuplicateTool { id, first, second } = refused(silent("lists-twice")).await else {
        panic!("no duplicate")
    };
    assert_eq!((id.as_str(), first.as_str(), second.as_str()), ("same", "h", "h"));
    for name in ["host", "a__b", "a_", "", "a b", &"a".repeat(65)] {
        let mut source = silent("plain");
        name.clone_into(&mut source.name);
        assert!(no_route(source).await.contains("name"), "{name}");
    }
}

/// Resolution as a run has it: the engine has the last word on schemas.
async fn bad_schemas() {
    use portcullis::adapters::stores::memory::MemoryStore;
    use portcullis::runtime::{Outcome, Runtime};
    use portcullis::vocabulary::failure::{Failure, ResolutionKind};
    use portcullis::vocabulary::spec::Assessment;
    for mode in ["schema-not-one", "schema-recursive", "owns-the-assessment"] {
        let source = with(silent(mode), "t", r#"{"evidence":true,"projection":{"type":"text"}}"#);
        let mut spec = spec(std::slice::from_ref(&source));
        spec.collection.assessment = Assessment::Required;
        let model = super::bench::Script::calls([]);
        let runtime = Runtime::builder().store(MemoryStore::new()).model(model).tools(McpTools::new(vec![source]));
        let handle = runtime.build().unwrap().start(spec).await.unwrap();
        let Outcome::Ended(ended) = handle.outcome().await.unwrap() else { panic!("{mode} waits") };
        let failure = Failure::Resolution { kind: ResolutionKind::InvalidTool };
        assert_eq!((ended.ending.row, ended.ending.failure.clone()), (18, Some(failure)), "{mode}");
    }
}

async fn good_lists() {
    assert_eq!(Bench::new([silent("lists-in-pages")]).await.unwrap().names(), ["h__one", "h__two"]);
    assert!(Bench::new([silent("logs-first")]).await.unwrap().names().contains(&"h__echo"));
    let bench = Bench::new([silent("underscores")]).await.unwrap();
    assert_eq!(bench.names(), ["h____x", "h__a__b", "h___", "h__x.y-z"]);
    for (tool, name) in [("h____x", "__x"), ("h__a__b", "a__b"), ("h___", "_"), ("h__x.y-z", "x.y-z")] {
        assert_eq!(bench.text(tool, "{}").await, name);
    }
    let bench = Bench::new([only(silent("plain"), &["pid", "echo"])]).await.unwrap();
    assert_eq!(bench.names(), ["h__echo", "h__pid"], "in the server's order");
}

async fn described() {
    let bench = Bench::new([silent("described")]).await.unwrap();
    let description = &bench.tool("h__t").description;
    assert!(description.starts_with("a[31mbc\ndxxx"), "{}", &description[..20]);
    assert_eq!((description.chars().count(), description.chars().last()), (4_097, Some('…')));
}

async fn settings() {
    let mut source = silent("described");
    source.trust_hints = true;
    source = with(source, "i", r#"{"recovery":"never_replay","evidence":true,"projection":{"type":"lines"}}"#);
    let bench = Bench::new([source.clone()]).await.unwrap();
    let modes: Vec<Recovery> = bench.environment.tools.iter().map(ToolSpec::recovery_mode).collect();
    assert_eq!(modes, [Recovery::ReplaySafe, Recovery::NeverReplay, Recovery::NeverReplay]);
    assert!(bench.tool("h__i").evidence && !bench.tool("h__n").evidence);
    source.tools.clear();
    assert_eq!(Bench::new([source]).await.unwrap().tool("h__i").recovery_mode(), Recovery::Idempotent);
    for (tool, settings, said) in [
        ("n", r#"{"name":"other"}"#, "\"name\""),
        ("n", r#"{"parameters":{}}"#, "\"parameters\""),
        ("n", r#"{"evidense":true}"#, "\"evidense\""),
        ("n", r#"{"timeout_ms":"soon"}"#, "`timeout_ms`"),
        ("n", r#"{"attempts_max":0}"#, "attempts_max"),
        ("n", r#"{"projection":{"type":"lines","more":1}}"#, "`projection`"),
        ("n", r#"{"scope":["no pointer"]}"#, "`scope`"),
        ("n", "[]", "object"),
        ("absent", r#"{"evidence":true}"#, "does not list it"),
    ] {
        match refused(with(silent("described"), tool, settings)).await {
            ResolutionError::InvalidTool { id, message } => {
                assert_eq!(id, format!("h__{tool}"));
                assert!(message.contains(said), "{settings}: {message}");
            }
            other => panic!("{settings}: {other:?}"),
        }
    }
    let absent = refused(only(silent("described"), &["t", "absent"])).await;
    assert!(matches!(&absent, ResolutionError::InvalidTool { id, .. } if id == "h__absent"), "{absent:?}");
    let left_out = refused(with(only(silent("described"), &["t"]), "n", "{}")).await;
    assert!(matches!(&left_out, ResolutionError::InvalidTool { id, .. } if id == "h__n"), "{left_out:?}");
}

async fn answers() {
    let (bench, _) = plain().await;
    assert_eq!(bench.call("h__fail", "{}").await, Ok(ToolOutput::error("it did not work")));
    assert!(matches!(bench.call("h__refuse", "{}").await, Err(ToolError::InvalidArguments { .. })));
    assert!(matches!(bench.call("h__gone", "{}").await, Err(ToolError::Unknown { .. })));
    assert!(matches!(bench.call("h__break", "{}").await, Err(ToolError::Execution { .. })));
    for (tool, said) in [
        ("deep", "depth"),
        ("doubled", "duplicate_key"),
        ("inexact", "number_out_of_range"),
        ("not-utf8", "invalid_utf8"),
        ("formless", "form"),
        ("no-object", "neither one result"),
    ] {
        match bench.call(&format!("h__{tool}"), "{}").await {
            Err(ToolError::Execution { message }) => assert!(message.contains(said), "{tool}: {message}"),
            other => panic!("{tool}: {other:?}"),
        }
    }
    for (tool, text) in [("noise", "quiet again"), ("twice", "first"), ("foreign", "to you"), ("echo", "echo")] {
        assert_eq!(bench.text(&format!("h__{tool}"), "{}").await, text);
    }
    assert_eq!(bench.text("h__large", "{}").await.len(), 300_000, "the engine has its own limit for results");
}

async fn formless() {
    let (bench, _) = plain().await;
    for result in ["{}", r#"{"_meta":{}}"#, r#"{"isError":true}"#, r#"{"isError":"true","content":[]}"#] {
        let arguments = serde_json::json!({"result": result}).to_string();
        match bench.call("h__say", &arguments).await {
            Err(ToolError::Execution { message }) => assert!(message.contains("form"), "{result}: {message}"),
            other => panic!("{result}: {other:?}"),
        }
    }
    let tools = r#"{"isError":true,"content":[],"tools":[]}"#;
    let arguments = serde_json::json!({"result": tools}).to_string();
    assert!(!matches!(bench.call("h__say", &arguments).await, Ok(ToolOutput::Success { .. })));
    let arguments = serde_json::json!({"result": r#"{"content":[]}"#}).to_string();
    assert_eq!(bench.text("h__say", &arguments).await, "", "to say nothing has the form");
}

async fn contents() {
    let (bench, _) = plain().await;
    let mixed = "one\n[image image/png, 3 bytes]\n[audio audio/wav, 2 bytes]\ninside\n[resource a:c x/y, 1 bytes]\n\
                 [link a:d, 9 bytes]\ntwo";
    assert_eq!(bench.text("h__mixed", "{}").await, mixed);
    assert_eq!(bench.text("h__structured", "{}").await, "in words");
    let settings = r#"{"evidence":true,"projection":{"type":"pointers","pointers":["/items"]}}"#;
    let pointed = Bench::new([with(silent("plain"), "structured", settings)]).await.unwrap();
    let json = r#"{"items":[{"id":"a","n":9007199254740993},{"id":"b","n":0.1}]}"#;
    assert_eq!(pointed.text("h__structured", "{}").await, json);
    assert_eq!(bench.text("h__structured-only", "{}").await, r#"{"a":-0.0,"b":18446744073709551615}"#);
}

async fn endless() {
    for tool in ["h__endless", "h__huge"] {
        let (bench, _) = plain().await;
        let before = peak_mib();
        match bench.call(tool, "{}").await {
            Err(ToolError::Execution { message }) => assert!(message.contains("4194304 bytes"), "{message}"),
            other => panic!("{tool}: {other:?}"),
        }
        let grown = peak_mib() - before;
        assert!(grown < 256, "{grown} MiB");
        // The connection was given up. The server is started again.
        assert_eq!(bench.text("h__echo", "{}").await, "echo");
    }
}

async fn values() {
    let (bench, _) = plain().await;
    let before = peak_mib();
    for tool in ["h__values", "h__objects"] {
        match bench.call(tool, "{}").await {
            Err(ToolError::Execution { message }) => assert!(message.contains("100000 values"), "{message}"),
            other => panic!("{tool}: {other:?}"),
        }
    }
    let grown = peak_mib() - before;
    assert!(grown < 256, "{grown} MiB");
    assert_eq!(bench.text("h__echo", "{}").await, "echo", "the connection stays");
}

async fn long_ids() {
    let (bench, mut ear) = plain().await;
    assert_eq!(bench.text("h__ask-with-a-long-id", "{}").await, "asked");
    assert_eq!(ear.hear("answer ").await, "answer \"short\" null");
}

async fn left_out() {
    let live = only(silent("plain"), &["echo"]);
    let tools = McpTools::new(vec![live.clone()]);
    for more in [silent("plain"), only(silent("plain"), &["echo", "pid"])] {
        let error = tools.resolve(&spec(&[more])).await.unwrap_err();
        assert!(matches!(&error, ResolutionError::Routing { message } if message.contains("echo")), "{error:?}");
    }
    // A recorded environment that has a tool which was left out: a history from elsewhere.
    let mut bench = Bench::new([live]).await.unwrap();
    bench.environment.tools.push(ToolSpec::new("h__pid"));
    let refused = bench.call("h__pid", "{}").await;
    assert!(matches!(refused, Err(ToolError::UnavailableBeforeDispatch { .. })), "{refused:?}");
    assert_eq!(bench.text("h__echo", "{}").await, "echo");
}

async fn asked() {
    let (bench, mut ear) = plain().await;
    assert_eq!(bench.text("h__ask", "{}").await, "asked");
    for n in 0..3 {
        assert_eq!(ear.hear("answer ").await, format!("answer \"own-{n}\" -32601"));
    }
    assert_eq!(ear.hear("answer ").await, "answer \"own-3\" null", "a ping is answered");
}

async fn floods() {
    let (bench, _) = plain().await;
    let before = peak_mib();
    assert_eq!(bench.text("h__flood", "{}").await, "flooded");
    match bench.call("h__ask-for-ever", "{}").await {
        Err(ToolError::Execution { message }) => assert!(message.contains("asks and does not read"), "{message}"),
        other => panic!("{other:?}"),
    }
    let grown = peak_mib() - before;
    assert!(grown < 256, "{grown} MiB");
}

async fn dropped() {
    let (bench, mut ear) = plain().await;
    let invocation = bench.invocation("h__wait", r#"{"n":1}"#).await;
    let tools = bench.tools.clone();
    let call = tokio::spawn(async move { tools.invoke(invocation).await });
    ear.hear("call wait").await;
    call.abort();
    ear.hear("cancelled ").await;
    // The late answer comes together with the next one.
    let invocation = bench.invocation("h__late", "{}").await;
    let tools = bench.tools.clone();
    let call = tokio::spawn(async move { tools.invoke(invocation).await });
    ear.hear("call late").await;
    call.abort();
    ear.hear("cancelled ").await;
    assert_eq!(bench.text("h__echo", "{}").await, "echo");
}

async fn stops_reading() {
    let (bench, mut ear) = plain().await;
    let invocation = bench.invocation("h__stop-reading", "{}").await;
    let tools = bench.tools.clone();
    let call = tokio::spawn(async move { tools.invoke(invocation).await });
    ear.hear("call stop-reading").await;
    // More than any pipe holds.
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(200_000));
    let invocation = bench.invocation("h__echo", &large).await;
    let (mut refused, mut waiting) = (None, 0);
    for _ in 0..400 {
        let call = bench.tools.invoke(invocation.clone());
        if let Ok(Err(error)) = tokio::time::timeout(Duration::from_millis(2), call).await {
            refused = Some(error);
            break;
        }
        waiting += 1;
    }
    assert!(waiting < 30, "{waiting} lines of 200,000 bytes wait");
    // What cannot even wait to be written is a proof.
    assert!(matches!(refused, Some(ToolError::UnavailableBeforeDispatch { .. })), "{refused:?}");
    call.abort();
    bench.tools.close().await;
    assert!(ear.heard().iter().all(|line| !line.starts_with("call echo")));
}

async fn dies() {
    let ear = Ear::open().await;
    let bench = Bench::new([hostile("plain", ear.port)]).await.unwrap();
    let first = bench.text("h__pid", "{}").await;
    assert!(matches!(bench.call("h__die", "{}").await, Err(ToolError::Execution { .. })));
    let second = bench.text("h__pid", "{}").await;
    assert_ne!(first, second);
    gone(first.parse().unwrap()).await;
    // It answered, so it is started again; then it dies before it has answered anything.
    for _ in 0..2 {
        assert!(matches!(bench.call("h__die", "{}").await, Err(ToolError::Execution { .. })));
    }
    for _ in 0..3 {
        let refused = bench.call("h__pid", "{}").await;
        assert!(matches!(&refused, Err(ToolError::UnavailableBeforeDispatch { message }) if message.contains("again")));
    }
    // A new resolution starts it anew.
    let source = bench.tools.resolve(&spec(&[hostile("plain", ear.port)])).await;
    assert!(source.is_ok());
    assert_ne!(bench.text("h__pid", "{}").await, second);
}

async fn loses_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("was-here").display().to_string();
    let mut source = silent("loses-a-tool");
    if let Transport::Stdio { args, .. } = &mut source.transport {
        args.push(place);
    }
    let bench = Bench::new([source]).await.unwrap();
    assert!(matches!(bench.call("h__die", "{}").await, Err(ToolError::Execution { .. })));
    let refused = bench.call("h__echo", "{}").await;
    assert!(matches!(&refused, Err(ToolError::UnavailableBeforeDispatch { message }) if message.contains("list")));
    assert!(bench.text("h__pid", "{}").await.parse::<u32>().is_ok(), "what it still lists is called");
}

async fn changes() {
    let (bench, _) = plain().await;
    assert_eq!(bench.text("h__change", "{}").await, "changed");
    // The server does not list it any more, and says itself what becomes of a call.
    assert_eq!(bench.text("h__echo", "{}").await, "echo");
    assert!(bench.names().contains(&"h__echo"));
}

async fn live_configuration() {
    let mut ear = Ear::open().await;
    let live = hostile("plain", ear.port);
    let tools = McpTools::new(vec![live.clone()]);
    let mut other = live.clone();
    "other".clone_into(&mut other.name);
    let mut elsewhere = live.clone();
    elsewhere.transport = stdio("h", "/bin/false", &[]).transport;
    for named in [vec![other], vec![elsewhere], vec![http("h", "http://127.0.0.1:1/")], vec![live.clone(), live]] {
        let error = tools.resolve(&spec(&named)).await.unwrap_err();
        assert!(matches!(&error, ResolutionError::Routing { message } if message.contains("names")), "{error:?}");
    }
    let declared = Spec { tools: vec![ToolSpec::new("own")], ..Spec::new("t", "m") };
    assert!(matches!(tools.resolve(&declared).await, Err(ResolutionError::Routing { .. })));
    assert_eq!(tools.resolve(&Spec::new("t", "m")).await.unwrap().tools, Vec::new());
    assert_eq!(ear.heard(), Vec::<String>::new(), "nothing was started");
}

async fn variables() {
    let mut ear = Ear::open().await;
    let mut source = hostile("plain", ear.port);
    let set = |source: &mut ToolSource, name: &str, from: &str| {
        if let Transport::Stdio { env, .. } = &mut source.transport {
            env.insert(name.to_owned(), SecretRef { env: from.to_owned() });
        }
    };
    set(&mut source, "HANDED_OVER", "CARGO_MANIFEST_DIR_THAT_IS_NOT_SET");
    let message = no_route(source.clone()).await;
    assert!(message.contains("CARGO_MANIFEST_DIR_THAT_IS_NOT_SET"), "{message}");
    assert_eq!(ear.heard(), Vec::<String>::new(), "nothing was started");
    set(&mut source, "HANDED_OVER", "PATH");
    let _bench = Bench::new([source]).await.unwrap();
    let names = ear.hear("env ").await;
    for name in names.split(' ').skip(1) {
        let minimum = ["HOME", "LANG", "PATH", "TMPDIR", "TZ", "USER", "HANDED_OVER"].contains(&name);
        assert!(minimum || name.starts_with("LC_"), "{name}");
    }
    assert!(names.contains("HANDED_OVER"), "{names}");
}

async fn grandchildren() {
    let mut ear = Ear::open().await;
    let own = std::env::current_exe().unwrap().display().to_string();
    // A launcher that stays, as package runners do, and a child of its own that ignores everything.
    let script = format!("sleep 600 & '{own}' serve-mcp plain {} ; wait", ear.port);
    let bench = Bench::new([stdio("h", "/bin/sh", &["-c", &script])]).await.unwrap();
    let up = ear.hear("up ").await;
    let server: u32 = up.trim_start_matches("up ").parse().unwrap();
    let group = std::fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let group: u32 = group.rsplit(") ").next().unwrap().split(' ').nth(2).unwrap().parse().unwrap();
    assert!(runs(group) && group != server);
    drop(bench);
    gone(server).await;
    gone(group).await;
    none_of(group).await;
}

async fn numbers() {
    let (bench, mut ear) = plain().await;
    let arguments = r#"{"a":18446744073709551615,"b":-9223372036854775808,"c":9007199254740993,"d":0.1,"e":-0.0}"#;
    bench.text("h__echo", arguments).await;
    assert_eq!(ear.hear("call echo").await, format!("call echo {arguments}"));
}

async fn namespaces() {
    use portcullis::runtime::ports::Toolset;
    let own =
        |name: &str| Toolset::new().with(ToolSpec::new(name), |(): (), _| async { Ok(ToolOutput::text("never")) });
    let source = silent("plain");
    let clash = McpTools::new(vec![source.clone()]).beside(own("h__echo"));
    let error = clash.resolve(&spec(std::slice::from_ref(&source))).await.unwrap_err();
    let clash = ResolutionError::DuplicateTool { id: "h__echo".into(), first: "host".into(), second: "h".into() };
    assert_eq!(error, clash);
    let both = McpTools::new(vec![source.clone()]).beside(own("own__tool"));
    let tools = both.resolve(&spec(&[source])).await.unwrap().tools;
    assert_eq!(tools.first().map(|tool| tool.name.as_str()), Some("own__tool"));
    assert!(tools.len() > 1);
    let live = both.live().await;
    assert_eq!(live.len(), tools.len());
}
