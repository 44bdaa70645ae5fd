//! The real server: llama.cpp with a small model. One for all tests; it ends with this process.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use portcullis::vocabulary::spec::{Api, ModelSpec};

use super::asking::json;
use crate::components::Component;

/// The server. Its standard input is the rope: it ends when that is closed.
struct Llama {
    port: u16,
    _process: Child,
}

static SERVER: OnceLock<Llama> = OnceLock::new();

fn server() -> &'static Llama {
    SERVER.get_or_init(|| {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(Component::Llama.program())
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = said.find(|line| line.starts_with("http://"));
        assert!(address.is_some_and(|address| address.ends_with(&port.to_string())), "llama.cpp did not start");
        Llama { port, _process: process }
    })
}

/// The model, asked as it is.
pub(crate) fn model(parameters: &str) -> ModelSpec {
    ModelSpec {
        api: Some(Api::OpenAi),
        base_url: Some(format!("http://127.0.0.1:{}/v1", server().port)),
        parameters: json(parameters),
        timeout_ms: 100_000,
        ..ModelSpec::new("smollm2")
    }
}
