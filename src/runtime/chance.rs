//! What of a runtime is left to chance, and how a simulation takes that away.

use super::execution::{Error, Trouble};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::RunId;

/// Where nonces come from, and where histories are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Chance {
    /// Nonces are random, and a history is replayed on a thread of its own while other runs go on.
    #[default]
    Free,
    /// Nonces follow from the seed and the run, and a history is replayed where it is asked for, at once.
    Seeded(u64),
}

impl Chance {
    /// The nonce of a run that begins.
    pub(super) fn nonce(self, run: &RunId) -> String {
        match self {
            Self::Free => uuid::Uuid::new_v4().simple().to_string(),
            Self::Seeded(seed) => {
                let digest = Digest::of("portcullis.runtime.nonce", &[&seed.to_be_bytes(), run.as_str().as_bytes()]);
                digest.hex().as_str().chars().take(32).collect()
            }
        }
    }

    /// Does work that takes long and waits for nobody.
    ///
    /// # Errors
    /// `Stopped` when it panicked, or when the process ends.
    pub(super) async fn work<T: Send + 'static>(
        self,
        run: &RunId,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Free => {
                let done = tokio::task::spawn_blocking(work).await;
                done.unwrap_or_else(|_| Err(Trouble::Stopped(run.clone()).into()))
            }
            Self::Seeded(_) => work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeded_nonce_follows_from_the_seed_and_the_run() {
        let run = |name: &str| name.parse::<RunId>().unwrap();
        let nonce = Chance::Seeded(7).nonce(&run("a"));
        assert_eq!(nonce, Chance::Seeded(7).nonce(&run("a")));
        assert_ne!(nonce, Chance::Seeded(8).nonce(&run("a")));
        assert_ne!(nonce, Chance::Seeded(7).nonce(&run("b")));
        assert_ne!(Chance::Free.nonce(&run("a")), Chance::Free.nonce(&run("a")));
    }
}
