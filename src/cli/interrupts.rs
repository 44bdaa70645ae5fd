//! Signals: who wants the process to stop, and a limit that is an error instead of a death.

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

/// Makes a write beyond the file size limit fail, as one to a full disk does, where the system's own answer is to
/// kill the process without a word.
#[cfg(unix)]
pub(crate) fn survive_file_size_limits() {
    use signal::unix::{SignalKind, signal};
    /// SIGXFSZ, which has this number everywhere but there.
    const FILE_SIZE: i32 = if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 31 } else { 25 };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let _entered = runtime.enter();
    // What is registered once stays, and nobody needs to hear of it. If it cannot be, all is as it was.
    drop(signal(SignalKind::from_raw(FILE_SIZE)));
}

/// Other systems have no such signal.
#[cfg(not(unix))]
pub(crate) const fn survive_file_size_limits() {}
