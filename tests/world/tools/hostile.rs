//! A tool server that does what it should not. It is this program, started again as
//! `serve-mcp MODE PORT`: what happens to it is reported to that port, a line each.

use std::io::Write;
use std::net::TcpStream;
use std::process::ExitCode;

use serde_json::{Value, json};

/// Serves, where this process was started to.
pub(crate) fn served() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next()? != "serve-mcp" {
        return None;
    }
    let (mode, port) = (args.next()?, args.next()?.parse::<u16>().ok()?);
    let reports = TcpStream::connect(("127.0.0.1", port)).ok();
    let mut server = Server { mode, reports, pages: 0, asked: 0, waiting: None };
    server.report(&format!("up {}", std::process::id()));
    server.report(&format!("env {}", std::env::vars().map(|(name, _)| name).collect::<Vec<_>>().join(" ")));
    server.serve();
    server.report("over");
    Some(ExitCode::SUCCESS)
}

struct Server {
    mode: String,
    reports: Option<TcpStream>,
    pages: u32,
    asked: u32,
    /// A call that waits for answers to its own requests.
    waiting: Option<Value>,
}

impl Server {
    fn report(&mut self, line: &str) {
        if let Some(reports) = &mut self.reports {
            let _ = writeln!(reports, "{line}");
        }
    }

    fn serve(&mut self) {
        match self.mode.as_str() {
            "dies-at-once" => {
                eprintln!("no licence\x1b[31m found");
                std::process::exit(3);
            }
            "dies-with-what-it-was-handed" => {
                eprintln!("refused: {}", handed_over());
                std::process::exit(3);
            }
            "logs-first" => {
                say("starting up ...");
                say("{not even json");
                say("[]");
            }
            "endless-line" => endless(b"x"),
            _ => {}
        }
        while let Some(line) = next() {
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            self.take(&message);
        }
    }

    fn take(&mut self, message: &Value) {
        let (id, params) = (message["id"].clone(), &message["params"]);
        let Some(method) = message["method"].as_str() else {
            self.report(&format!("answer {} {}", message["id"], message["error"]["code"]));
            self.asked = self.asked.saturating_sub(1);
            if self.asked == 0
                && let Some(call) = self.waiting.take()
            {
                text(&call, "asked");
            }
            return;
        };
        match method {
            "initialize" => self.initialize(&id),
            "tools/list" => self.list(&id, params),
            "tools/call" => {
                let name = params["name"].as_str().unwrap().to_owned();
                self.report(&format!("call {name} {}", params["arguments"]));
                match params["arguments"]["result"].as_str() {
                    Some(result) if name == "say" => raw(&id, result),
                    Some(_) | None => self.call(&id, &name),
                }
            }
            "notifications/cancelled" => self.report(&format!("cancelled {}", params["requestId"])),
            _ => {}
        }
    }

    fn initialize(&mut self, id: &Value) {
        match self.mode.as_str() {
            "never-initializes" => return,
            "initializes-with-an-error" => {
                return send(&json!({"jsonrpc":"2.0","id":id,"error":{"code":-32000,"message":"not today"}}));
            }
            "initializes-badly" => return send(&json!({"jsonrpc":"2.0","id":id,"result":[]})),
            _ => {}
        }
        result(
            id,
            &json!({
                "protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}
            }),
        );
    }

    fn list(&mut self, id: &Value, params: &Value) {
        self.pages += 1;
        let page = self.pages;
        let tool = |name: &str| json!({"name":name,"inputSchema":{"type":"object"}});
        let named = |names: &[&str]| names.iter().map(|name| tool(name)).collect::<Vec<_>>();
        let tools = match self.mode.as_str() {
            "never-lists" => return,
            "lists-with-an-error" => {
                return send(&json!({"jsonrpc":"2.0","id":id,"error":{"code":-32603,"message":"broken"}}));
            }
            "lists-for-ever" => {
                return result(id, &json!({"tools":named(&[&format!("t{page}")]),"nextCursor":format!("c{page}")}));
            }
            "lists-in-a-circle" => {
                return result(id, &json!({"tools":named(&[&format!("t{page}")]),"nextCursor":"again"}));
            }
            "lists-in-pages" if params["cursor"].is_null() => {
                return result(id, &json!({"tools":named(&["one"]),"nextCursor":"two"}));
            }
            "lists-in-pages" => named(&["two"]),
            "lists-too-many" => (0..300).map(|index| tool(&format!("t{index}"))).collect(),
            "lists-twice" => named(&["same", "same"]),
            "control-name" => named(&["a\u{202e}b\n"]),
            "empty-name" => named(&[""]),
            "long-name" => named(&[&"n".repeat(128)]),
            "underscores" => named(&["__x", "a__b", "_", "x.y-z"]),
            "huge-schema" => {
                vec![json!({"name":"t","inputSchema":{"type":"object","description":"x".repeat(100_000)}})]
            }
            "huge-list" => {
                let tool = json!({"name":format!("t{page}"),"description":"x".repeat(1 << 20),
                    "inputSchema":{"type":"object"}});
                return result(id, &json!({"tools":[tool],"nextCursor":format!("c{page}")}));
            }
            "huge-page" => vec![json!({"name":"t","description":"x".repeat(5 << 20),"inputSchema":{"type":"object"}})],
            "schema-no-object" => vec![json!({"name":"t","inputSchema":"any"})],
            "schema-not-one" => vec![json!({"name":"t","inputSchema":{"type":"objekt"}})],
            "schema-recursive" => vec![json!({"name":"t","inputSchema":{"$ref":"#"}})],
            "owns-the-assessment" => vec![json!({"name":"t","inputSchema":{"type":"object",
                "properties":{"previous_observation":{"type":"string"}}}})],
            "deep-schema" => {
                let schema = format!("{}{{}}{}", "{\"not\":".repeat(100), "}".repeat(100));
                return raw(id, &format!("{{\"tools\":[{{\"name\":\"t\",\"inputSchema\":{schema}}}]}}"));
            }
            "duplicate-keys" => {
                return raw(id, r#"{"tools":[{"name":"t","inputSchema":{"type":"object","type":"array"}}]}"#);
            }
            "described" => vec![
                json!({"name":"t","description":format!("a\u{1b}[31mb\u{202e}c\nd{}", "x".repeat(9_000)),
                "inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true}}),
                json!({"name":"i","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}}),
                json!({"name":"n","inputSchema":{"type":"object"}}),
            ],
            "describes-what-it-was-handed" => {
                vec![json!({"name":"t","description":handed_over(),"inputSchema":{"type":"object"}})]
            }
            "waits-and-looks" => vec![json!({"name":"wait","inputSchema":{"type":"object"},
                "annotations":{"readOnlyHint":true}})],
            "loses-a-tool" if was_here_before() => named(&["pid"]),
            _ => TOOLS.iter().map(|name| tool(name)).collect(),
        };
        result(id, &json!({"tools":tools}));
    }

    fn call(&mut self, id: &Value, name: &str) {
        match name {
            "pid" => text(id, &std::process::id().to_string()),
            "wait" => {}
            "late" => {
                // Answers once it is told that nobody waits.
                let Some(line) = next() else { return };
                text(id, "late");
                let message: Value = serde_json::from_str(&line).unwrap();
                self.take(&message);
            }
            "die" => std::process::exit(1),
            "die-talking" => {
                eprintln!("config: colour=mauve");
                std::process::exit(1);
            }
            "ask-with-a-long-id" => {
                send(&json!({"jsonrpc":"2.0","id":"x".repeat(4_000_000),"method":"ping"}));
                send(&json!({"jsonrpc":"2.0","id":"short","method":"ping"}));
                self.asked = 1;
                self.waiting = Some(id.clone());
            }
            "ask" => {
                let methods = ["sampling/createMessage", "roots/list", "elicitation/create", "ping"];
                for (n, method) in methods.iter().enumerate() {
                    send(&json!({"jsonrpc":"2.0","id":format!("own-{n}"),"method":method,"params":{}}));
                    self.asked += 1;
                }
                self.waiting = Some(id.clone());
            }
            "change" => {
                self.mode = "lists-in-pages".to_owned();
                say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
                text(id, "changed");
            }
            "stop-reading" => loop {
                std::thread::sleep(std::time::Duration::from_secs(60));
            },
            _ => answer(id, name),
        }
    }
}

/// Answers that are in order, but for what they say.
fn answer(id: &Value, name: &str) {
    match name {
        "fail" => result(id, &json!({"content":[{"type":"text","text":"it did not work"}],"isError":true})),
        "refuse" => error(id, -32602, "no such argument"),
        "gone" => error(id, -32601, "no such tool"),
        "break" => error(id, -32603, "internal"),
        "tell" => text(id, &format!("it is {}", handed_over())),
        "tell-in-json" => result(id, &json!({"structuredContent":{"it is":handed_over()}})),
        "tell-in-an-error" => error(id, -32000, &format!("not allowed: {}", handed_over())),
        "tell-in-a-failure" => {
            result(id, &json!({"content":[{"type":"text","text":handed_over()}],"isError":true}));
        }
        "large" => text(id, &"x".repeat(300_000)),
        "mixed" => result(
            id,
            &json!({"content":[
                {"type":"text","text":"one"},
                {"type":"image","data":"AAAA","mimeType":"image/png"},
                {"type":"audio","data":"AAA=","mimeType":"audio/wav"},
                {"type":"resource","resource":{"uri":"a:b","text":"inside"}},
                {"type":"resource","resource":{"uri":"a:c","blob":"AA==","mimeType":"x/y"}},
                {"type":"resource_link","uri":"a:d\u{202e}","name":"d","size":9},
                {"type":"text","text":"two"},
            ]}),
        ),
        "structured" => result(
            id,
            &json!({"content":[{"type":"text","text":"in words"}],
                "structuredContent":{"items":[{"id":"a","n":9_007_199_254_740_993_u64},{"id":"b","n":0.1}]}}),
        ),
        "structured-only" => raw(id, r#"{"structuredContent":{"b":18446744073709551615,"a":-0.0}}"#),
        "twice" => {
            text(id, "first");
            text(id, "second");
        }
        "foreign" => {
            text(&json!(4711), "to nobody");
            text(&json!("4711"), "to nobody");
            text(&Value::Null, "to nobody");
            text(id, "to you");
        }
        _ => misbehave(id, name),
    }
}

/// Answers that are none, or without an end.
fn misbehave(id: &Value, name: &str) {
    match name {
        "huge" => text(id, &"x".repeat(5 << 20)),
        "endless" => {
            print!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"");
            endless(b"x");
        }
        "values" => raw(id, &format!("{{\"content\":[],\"x\":[{}0]}}", "0,".repeat(2_000_000))),
        "objects" => raw(id, &format!("{{\"content\":[],\"structuredContent\":[{}0]}}", "{\"\":0},".repeat(590_000))),
        "deep" => {
            let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
            raw(id, &format!("{{\"content\":[],\"structuredContent\":{deep}}}"));
        }
        "doubled" => raw(id, r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#),
        "inexact" => raw(id, r#"{"content":[],"structuredContent":{"n":123456789012345678901234567890}}"#),
        "formless" => raw(id, r#"{"content":[{"type":"hologram"}]}"#),
        "no-object" => raw(id, "[]"),
        "not-utf8" => {
            let content = r#"{"content":[{"type":"text","text":""#;
            let mut line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{content}").into_bytes();
            line.extend_from_slice(b"\xff\xfe\"}]}}\n");
            std::io::stdout().write_all(&line).unwrap();
            std::io::stdout().flush().unwrap();
        }
        "noise" => {
            say("a log line");
            say("");
            say("{\"jsonrpc\":\"2.0\"}");
            say("\u{0}\u{1}");
            text(id, "quiet again");
        }
        "flood" => {
            for n in 0..200_000 {
                let told = format!("{{\"level\":\"info\",\"data\":{n}}}");
                say(&format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{told}}}"));
            }
            text(id, "flooded");
        }
        "ask-for-ever" => loop {
            say(r#"{"jsonrpc":"2.0","id":"own","method":"ping"}"#);
        },
        _ => text(id, name),
    }
}

const TOOLS: [&str; 41] = [
    "echo",
    "pid",
    "wait",
    "late",
    "die",
    "fail",
    "refuse",
    "gone",
    "break",
    "large",
    "huge",
    "endless",
    "deep",
    "doubled",
    "inexact",
    "not-utf8",
    "formless",
    "no-object",
    "noise",
    "twice",
    "foreign",
    "flood",
    "ask",
    "ask-for-ever",
    "stop-reading",
    "change",
    "mixed",
    "structured",
    "structured-only",
    "say",
    "die-talking",
    "ask-with-a-long-id",
    "tell",
    "tell-in-json",
    "tell-in-an-error",
    "tell-in-a-failure",
    "values",
    "objects",
    "two",
    "three",
    "four",
];

/// Whether this is the second server with its place: the first left a file.
fn was_here_before() -> bool {
    let Some(place) = std::env::args().nth(4) else { return false };
    let before = std::path::Path::new(&place).exists();
    std::fs::write(place, "").unwrap();
    before
}

/// What it was handed under one of these names.
fn handed_over() -> String {
    std::env::var("HANDED_TOKEN").or_else(|_| std::env::var("HANDED_PLACE")).unwrap_or_default()
}

fn next() -> Option<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok().filter(|bytes| *bytes > 0).map(|_| line)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody listens any more.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn send(message: &Value) {
    say(&message.to_string());
}

fn result(id: &Value, result: &Value) {
    send(&json!({"jsonrpc":"2.0","id":id,"result":result}));
}

fn raw(id: &Value, result: &str) {
    say(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"));
}

fn error(id: &Value, code: i32, message: &str) {
    send(&json!({"jsonrpc":"2.0","id":id,"error":{"code":code,"message":message}}));
}

fn text(id: &Value, text: &str) {
    result(id, &json!({"content":[{"type":"text","text":text}]}));
}

fn endless(bytes: &[u8]) {
    let piece = bytes.repeat(1 << 16);
    let mut out = std::io::stdout().lock();
    while out.write_all(&piece).is_ok() {}
    std::process::exit(0);
}
