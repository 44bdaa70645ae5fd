//! Where a fuzzer begins: what is in the project already, and a few inputs of every kind.

use std::fs;
use std::io::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Named inputs.
pub(crate) type Seeds = Vec<(String, Vec<u8>)>;

fn numbered(kind: &str, texts: &[&str]) -> Seeds {
    let named = |(at, text): (usize, &&str)| (format!("{kind}-{at:02}"), text.as_bytes().to_vec());
    texts.iter().enumerate().map(named).collect()
}

/// Payloads of every kind, and texts that are none.
pub(crate) fn payloads() -> Seeds {
    let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
    let deeper = format!("{}{}", "[".repeat(65), "]".repeat(65));
    numbered(
        "payload",
        &[
            "null",
            r#"{"a":[1,-2,3.5,1e3,-0,-0.0],"b":{"c":"d"},"":true}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#""\ud83d\ude00 \u0000\n\t\"\\\/ é""#,
            r#""\ud800""#,
            "[9223372036854775807,-9223372036854775808,18446744073709551615,18446744073709551616]",
            "[1e308,1e309,5e-324,1e-400,0e9,123456789.123456789,1e21,9007199254740993,9007199254740993.0]",
            " [ 1 , 2 ] \n",
            "[1,2",
            "{\"\u{e000}\":1,\"\u{10000}\":2,\"z\":3}",
            &deep,
            &deeper,
        ],
    )
}

/// Answers of a model. The first byte asks for JSON (`0`), JSON with data (`1`), text (`2`), or for another end.
pub(crate) fn answers() -> Seeds {
    numbered(
        "answer",
        &[
            r#"0{"conclusion":{"statement":"the pool is used up"},"citations":["f1"],"quotes":{"f1":"100 of 100"}}"#,
            r#"0{"conclusion":{"statement":"it is slow"},"citations":["f2","f1","f2"]}"#,
            r#"0{"conclusion":{"statement":"it is slow"},"citations":[]}"#,
            r#"0{"conclusion":{"statement":"it is slow"},"citations":["f3"]}"#,
            r#"0{"conclusion":{"statement":"it is slow"},"citations":["f1"],"quotes":{"f2":"4100 ms"}}"#,
            r#"0{"conclusion":null,"citations":["f2"]}"#,
            r#"0{"citations":["f1"]}"#,
            r#"0{"conclusion":{"statement":" "},"citations":["f1"]}"#,
            r#"1{"conclusion":{"statement":"it is slow"},"citations":["f1"],"data":{"n":7}}"#,
            r#"1{"conclusion":{"statement":"it is slow"},"citations":["f1"],"data":{"n":"seven"}}"#,
            r#"1{"conclusion":{"statement":"it is slow"},"citations":["f1"]}"#,
            "0```json\n{\"conclusion\":null,\"citations\":[]}\n```",
            "0Here it is:\n```\n{\"conclusion\":null,\"citations\":[]}\n```\nDone.",
            "2The pool is used up.",
            "0The pool is used up.",
            "0 \u{200b}\n",
            "6{\"conclusion\":{\"statement\":\"cut",
            r#"9{"conclusion":{"statement":"filtered"},"citations":["f1"]}"#,
        ],
    )
}

/// Recorded conversations of every shape.
pub(crate) fn conversations() -> Seeds {
    const TURN: &str = r#"{"role":"system","content":"rules"},{"role":"user","content":"why?"},
{"role":"assistant","content":"I look","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"c2","function":{"name":"Finish","arguments":"{\"final_answer\":\"x\"}"}}]},
{"role":"tool","tool_call_id":"c1","name":"look","content":"seen"}"#;
    const ANSWER: &str = r#"{"role":"assistant","content":"done"}"#;
    let list = format!("[{TURN},{ANSWER}]");
    let texts = [
        list.clone(),
        format!(r#"{{"messages":{list}}}"#),
        format!(r#"{{"task_id":1,"traj":{list}}}"#),
        format!(r#"{{"answer_generation":{{"query":"q","train_messages":[[{TURN}],{list}]}}}}"#),
        r#"{"answer_generation":{"query":"q","train_messages":[]}}"#.to_owned(),
        format!(
            r#"[{{"role":"user","content":[{{"type":"text","text":"why?"}},{{"type":"image_url"}}]}},
{{"role":"assistant","content":null,"function_call":{{"name":"look","arguments":{{}}}}}},
{{"role":"function","name":"look","content":"Error: no"}},{ANSWER},
{{"role":"user","content":"and?","valid":false}},{{"role":"developer","content":"late"}},{{"role":"critic","content":""}},
{{"role":"user","content":""}},{{"role":"tool","content":"nobody asked"}},{{"role":"assistant","content":"","refusal":"no"}}]"#
        ),
        r#"[{"role":"user","content":"anybody there?"}]"#.to_owned(),
        r#"[{"role":"assistant","content":"hello"}]"#.to_owned(),
    ];
    numbered("conversation", &texts.each_ref().map(String::as_str))
}

/// The golden histories.
pub(crate) fn histories() -> Seeds {
    let goldens = super::files("tests/golden/v1").into_iter();
    let named = |path: std::path::PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        (name, fs::read(path).expect("it is there"))
    };
    goldens.map(named).collect()
}

#[derive(Deserialize)]
struct Record<'a> {
    at_ms: u64,
    #[serde(borrow)]
    input: &'a RawValue,
}

/// The inputs of the golden histories as scripts, and choices in each of the explorer's worlds.
pub(crate) fn inputs() -> Seeds {
    let script = |(name, history): (String, Vec<u8>)| {
        let mut script = Vec::new();
        for line in history.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Record { at_ms, input } = serde_json::from_slice(line).expect("a record");
            writeln!(script, r#"{{"at_ms":{at_ms},"input":{input}}}"#).expect("memory");
        }
        (name, script)
    };
    let choices = |world: u8| {
        let choices = (1..24_u8).flat_map(|at| [at.wrapping_mul(world | 1).wrapping_mul(37), at.wrapping_mul(101)]);
        let bytes = std::iter::once(world).chain([0, 1, 0, 1]).chain(choices).collect();
        (format!("world-{world:02}"), bytes)
    };
    let scripts = numbered("script", &[&LOOKED.join("\n"), &LOOKED[..3].join("\n")]);
    scripts.into_iter().chain(histories().into_iter().map(script)).chain((0..21).map(choices)).collect()
}

/// A small run: one look, one answer, and its delivery.
const LOOKED: [&str; 7] = [
    r#"{"at_ms":0,"input":{"type":"run_started","run_id":"r","nonce":"n","wall_time":"","spec":{"task":"why?","model":{"name":"m"},"tools":[{"name":"look","evidence":true}],"release":{"judge":"off"},"deadline_ms":1000}}}"#,
    r#"{"at_ms":1,"input":{"type":"environment_resolved","environment":{"tools":[{"name":"look","evidence":true}]}}}"#,
    r#"{"at_ms":2,"input":{"type":"model_responded","call":"m1","attempt":1,"content":{"calls":[{"name":"look","arguments":"{}"}]},"finish":"tool_calls","usage":{}}}"#,
    r#"{"at_ms":3,"input":{"type":"tools_dispatched","calls":["t1.0"]}}"#,
    r#"{"at_ms":4,"input":{"type":"tool_completed","call":"t1.0","attempt":1,"output":{"type":"success","content":"seen","facts":[{"statement":"seen"}]}}}"#,
    r#"{"at_ms":5,"input":{"type":"model_responded","call":"m2","attempt":1,"content":{"text":"{\"conclusion\":{\"statement\":\"so\"},\"citations\":[\"f1\"]}"},"finish":"stop","usage":{}}}"#,
    r#"{"at_ms":6,"input":{"type":"release_delivered","receipt":"read"}}"#,
];

/// One blow of every kind, on both images.
pub(crate) fn damages() -> Seeds {
    let blow = |what: u8| {
        let place = what.wrapping_mul(83);
        let bytes = [&[what & 1][..], &[what, 0, place, place], &[what, 3, 1, 1]].concat();
        (format!("blow-{what:02}"), bytes)
    };
    [("none-0".to_owned(), vec![0]), ("none-1".to_owned(), vec![1])].into_iter().chain((0..16).map(blow)).collect()
}
