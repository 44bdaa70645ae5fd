//! Signals: who wants the process to stop.

use tokio::signal;

/// Whoever interrupts the process, from the moment on at which this was made: one that comes while something
/// else is waited for is not lost.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    interrupt: Option<signal::unix::Signal>,
    #[cfg(unix)]
    terminate: Option<signal::unix::Signal>,
}

impl Interrupts {
    /// Listens. What cannot be listened for ends the process as it always does.
    pub(crate) fn listen() -> Self {
        #[cfg(unix)]
        {
            use signal::unix::{SignalKind, signal};
            let listen = |kind| signal(kind).ok();
            Self { interrupt: listen(SignalKind::interrupt()), terminate: listen(SignalKind::terminate()) }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for the next one, and says who it is.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> &'static str {
        async fn heard(signal: &mut Option<signal::unix::Signal>) {
            let heard = match signal {
                Some(signal) => signal.recv().await,
                None => None,
            };
            if heard.is_none() {
                std::future::pending::<()>().await;
            }
        }
        tokio::select! {
            () = heard(&mut self.interrupt) => "an interrupt",
            () = heard(&mut self.terminate) => "a termination signal",
        }
    }

    /// Waits for the next one, and says who it is.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> &'static str {
        if signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "an interrupt"
    }
}
