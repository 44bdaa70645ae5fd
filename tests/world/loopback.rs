//! An HTTP server on a loopback address that answers as a test wants. It speaks bytes, so that it can speak
//! badly: drip, never end, hang up in the middle.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// `POST /v1/messages`.
    pub(crate) line: String,
    /// Headers, names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// What is done about a request: pieces, in order. Afterwards the connection is closed.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing for so long.
    Pause(Duration),
    /// These bytes over and over, as fast as they are taken.
    Endless(Vec<u8>),
    /// These bytes over and over, with a pause between them.
    Drip(Vec<u8>, Duration),
}

/// A whole answer with a length.
pub(crate) fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Piece> {
    let mut head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    vec![Piece::Bytes(format!("{head}\r\n{body}").into_bytes())]
}

/// A whole JSON answer.
pub(crate) fn json(status: u16, body: &str) -> Vec<Piece> {
    whole(status, &[("content-type", "application/json")], body)
}

/// The head of an answer whose end is the connection's.
pub(crate) fn open(content_type: &str) -> Piece {
    Piece::Bytes(format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n").into_bytes())
}

/// The server; it stops when it is dropped.
pub(crate) struct Loopback {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    /// How many connections were closed by the other side before the answer was through.
    hung_up: Arc<Mutex<u32>>,
    serving: JoinHandle<()>,
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Loopback {
    /// Answers every request with what `answer` says to it; `nth` counts from 0.
    pub(crate) async fn serve(answer: impl Fn(usize, &Received) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (received, hung_up) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (seen, closed, answer) = (Arc::clone(&received), Arc::clone(&hung_up), Arc::new(answer));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, closed, answer) = (Arc::clone(&seen), Arc::clone(&closed), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let Some(request) = receive(&mut stream).await else { return };
                    let nth = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    if send(stream.get_mut(), answer(nth, &request)).await.is_err() {
                        *closed.lock().unwrap() += 1;
                    }
                });
            }
        });
        Self { address, received, hung_up, serving }
    }

    /// `http://127.0.0.1:PORT` and a path behind it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// How many connections the other side closed before their answer was through.
    pub(crate) fn hung_up(&self) -> u32 {
        *self.hung_up.lock().unwrap()
    }
}

pub(crate) async fn receive(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|bytes| *bytes > 0)?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Received { line, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Sends the pieces. A pause ends at once when the other side hangs up.
pub(crate) async fn send(stream: &mut TcpStream, pieces: Vec<Piece>) -> std::io::Result<()> {
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => stream.write_all(&bytes).await?,
            Piece::Pause(time) => pause(stream, time).await?,
            Piece::Endless(bytes) => loop {
                stream.write_all(&bytes).await?;
            },
            Piece::Drip(bytes, time) => loop {
                stream.write_all(&bytes).await?;
                pause(stream, time).await?;
            },
        }
    }
    stream.shutdown().await
}

async fn pause(stream: &mut TcpStream, time: Duration) -> std::io::Result<()> {
    let mut byte = [0];
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        read = stream.read(&mut byte) => match read? {
            0 => Err(std::io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        },
    }
}
