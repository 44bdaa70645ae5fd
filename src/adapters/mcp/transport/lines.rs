//! Messages over a process's standard streams, one a line.

use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use super::message::{Said, answer_to, read};
use super::{MESSAGE_BYTES_MAX, Message, SendFault, WAITING_MAX};

/// Why a connection was given up, where it was.
pub(in crate::adapters::mcp) type GivenUp = Arc<OnceLock<String>>;

/// A line on its way out.
struct Line {
    bytes: Vec<u8>,
    written: oneshot::Sender<Result<(), SendFault>>,
    /// What it takes of the bytes that may wait.
    room: OwnedSemaphorePermit,
}

/// The writer's queue: so many lines, and so many bytes in them.
struct Queue {
    lines: mpsc::Sender<Line>,
    room: Arc<Semaphore>,
}

/// Where replies go while the client is there.
struct Replies {
    lines: mpsc::WeakSender<Line>,
    room: Arc<Semaphore>,
}

impl Replies {
    fn queue(&self) -> Option<Queue> {
        Some(Queue { lines: self.lines.upgrade()?, room: Arc::clone(&self.room) })
    }
}

/// The most bytes that wait to be written, as many as one message of a server. A larger line waits alone.
const WAITING_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// The client's end.
pub(in crate::adapters::mcp) struct Pipe {
    outgoing: Queue,
    incoming: mpsc::Receiver<Message>,
}

/// Connects a process's streams. Both are served by tasks of their own, so that a server that does not read
/// cannot keep its answers from being read. The handle ends the writing, which closes the server's input.
pub(in crate::adapters::mcp) fn pipe(
    input: impl AsyncWrite + Send + Unpin + 'static,
    output: impl AsyncRead + Send + Unpin + 'static,
) -> (Pipe, AbortHandle, GivenUp) {
    let (sender, lines) = mpsc::channel(WAITING_MAX);
    let outgoing = Queue { lines: sender, room: Arc::new(Semaphore::new(WAITING_BYTES_MAX)) };
    let (messages, incoming) = mpsc::channel(WAITING_MAX);
    let given_up = GivenUp::default();
    let writing = tokio::spawn(write(input, lines));
    let replies = Replies { lines: outgoing.lines.downgrade(), room: Arc::clone(&outgoing.room) };
    let reason = Arc::clone(&given_up);
    tokio::spawn(async move {
        if let Err(why) = receive(BufReader::new(output), &messages, &replies).await {
            // The first reason stands.
            let _ = reason.set(why);
        }
    });
    (Pipe { outgoing, incoming }, writing.abort_handle(), given_up)
}

impl Transport<RoleClient> for Pipe {
    type Error = SendFault;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendFault>> + Send + 'static {
        let handed = serde_json::to_vec(&item).map_err(|error| SendFault::Unwritten(error.to_string()));
        let handed = handed.and_then(|bytes| hand(&self.outgoing, bytes));
        async move {
            match handed?.await {
                Ok(written) => written,
                // The writer ended with the line in its queue or in its hands.
                Err(_) => Err(SendFault::Begun("the server's input closed".to_owned())),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), SendFault> {
        Ok(())
    }
}

/// Puts a line into the writer's queue.
fn hand(outgoing: &Queue, mut bytes: Vec<u8>) -> Result<oneshot::Receiver<Result<(), SendFault>>, SendFault> {
    bytes.push(b'\n');
    let (written, done) = oneshot::channel();
    let needed = u32::try_from(bytes.len().min(WAITING_BYTES_MAX)).unwrap_or(u32::MAX);
    let room = Arc::clone(&outgoing.room).try_acquire_many_owned(needed);
    let room = room.map_err(|_| SendFault::Unwritten(UNREAD.to_owned()))?;
    outgoing.lines.try_send(Line { bytes, written, room }).map_err(|refused| {
        SendFault::Unwritten(match refused {
            mpsc::error::TrySendError::Full(_) => UNREAD.to_owned(),
            mpsc::error::TrySendError::Closed(_) => "the server's input is closed".to_owned(),
        })
    })?;
    Ok(done)
}

const UNREAD: &str = "the server does not read its input";

/// Writes lines until there are none, or the server takes none.
async fn write(mut input: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Line>) {
    while let Some(Line { bytes, written, room }) = lines.recv().await {
        let result = write_line(&mut input, &bytes).await;
        drop(room);
        let failed = result.is_err();
        // Nobody may be waiting for it any more.
        let _ = written.send(result);
        if failed {
            break;
        }
    }
    lines.close();
    while let Some(Line { written, .. }) = lines.recv().await {
        let _ = written.send(Err(SendFault::Unwritten("the server's input is closed".to_owned())));
    }
}

/// A write that failed before its first byte was taken is a proof.
async fn write_line(input: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), SendFault> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let fault = |error: std::io::Error| {
            let reason = format!("the server's input closed: {error}");
            if rest.len() == bytes.len() { SendFault::Unwritten(reason) } else { SendFault::Begun(reason) }
        };
        match input.write(rest).await {
            Ok(0) => return Err(fault(std::io::ErrorKind::WriteZero.into())),
            Ok(taken) => rest = rest.get(taken..).unwrap_or_default(),
            Err(error) => return Err(fault(error)),
        }
    }
    input.flush().await.map_err(|error| SendFault::Begun(error.to_string()))
}

/// Reads messages until the server's output ends. The error says why nothing more of it is read.
async fn receive(
    mut output: impl AsyncBufRead + Unpin,
    messages: &mpsc::Sender<Message>,
    replies: &Replies,
) -> Result<(), String> {
    let mut line = Vec::new();
    while next_line(&mut output, &mut line).await? {
        match read(&line) {
            Said::Answer(message) => {
                if messages.send(*message).await.is_err() {
                    return Ok(());
                }
            }
            Said::Asks { method, id } => {
                let Some(outgoing) = replies.queue() else { return Ok(()) };
                // Whether it is written is the server's affair.
                hand(&outgoing, answer_to(&method, id)).map_err(|_| "the server asks and does not read".to_owned())?;
            }
            Said::Tells => {}
            Said::Unreadable(_) | Said::Noise => {
                tracing::debug!(bytes = line.len(), "a tool server wrote a line that is no message")
            }
        }
        line.clear();
    }
    Ok(())
}

/// Reads one line, without its end; false at the end of the output. What follows the last line end is no
/// message: it may have been cut.
async fn next_line(output: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> Result<bool, String> {
    loop {
        let available = output.fill_buf().await.map_err(|error| format!("the server's output failed: {error}"))?;
        if available.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', available);
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > MESSAGE_BYTES_MAX {
            return Err(format!("the server wrote a message of more than {MESSAGE_BYTES_MAX} bytes"));
        }
        line.extend_from_slice(available.get(..taken).unwrap_or_default());
        let consumed = end.map_or(taken, |end| end + 1);
        output.consume(consumed);
        if end.is_some() {
            return Ok(true);
        }
    }
}
