//! Our answers to questions that a server asks within its answer over HTTP. They are sent beside the reading, so
//! that a server that does not take them holds up nothing of ours.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::http::Endpoint;

/// Replies of one connection that are under way at once.
const UNDER_WAY_MAX: usize = 16;
/// Questions within one answer.
const QUESTIONS_MAX: usize = 256;
/// How long a reply may wait and be under way.
const REPLY_MAX: Duration = Duration::from_secs(5);

/// Where replies stand in line.
pub(super) struct Replies(Arc<Semaphore>);

impl Default for Replies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNDER_WAY_MAX)))
    }
}

impl Replies {
    /// Sends a reply in the background. Whether it arrives is the server's affair.
    pub(super) fn send(&self, endpoint: &Arc<Endpoint>, reply: Vec<u8>) {
        let (places, endpoint) = (Arc::clone(&self.0), Arc::clone(endpoint));
        tokio::spawn(async move {
            let sent = async {
                let _place = places.acquire().await;
                let _ = endpoint.post(reply).await;
            };
            tokio::select! {
                _ = tokio::time::timeout(REPLY_MAX, sent) => {}
                () = endpoint.ended() => {}
            }
        });
    }
}

/// How many questions one answer has brought.
#[derive(Default)]
pub(super) struct Questions(usize);

impl Questions {
    /// One more. The error says that there are too many.
    pub(super) fn count(&mut self) -> Result<(), String> {
        self.0 += 1;
        if self.0 > QUESTIONS_MAX {
            return Err(format!("the server asks more than {QUESTIONS_MAX} questions before it answers"));
        }
        Ok(())
    }
}
