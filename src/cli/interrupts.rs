//! Signals: who wants the process to stop, and a limit that is an error instead of a death.

use tokio::signal;

/// Whoever interrupts the process, from the moment on at which this was made: one that comes while something
/// else is waited for is not lost.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    interrupt: Option<signal::unix::Signal>,
    #[cfg(unix)]
    terminate: Option<signal::unix::Signal>,
    /// The terminal was closed. Whoever started this process so that it should not care (`nohup`) gets that.
    #[cfg(unix)]
    hangup: Option<signal::unix::Signal>,
}

impl Interrupts {
    /// Listens. What cannot be listened for ends the process as it always does.
    pub(crate) fn listen() -> Self {
        #[cfg(unix)]
        {
            use signal::unix::{SignalKind, signal};
            let listen = |kind| signal(kind).ok();
            let cares = !is_ignored(SignalKind::hangup());
            Self {
                interrupt: listen(SignalKind::interrupt()),
                terminate: listen(SignalKind::terminate()),
                hangup: cares.then(|| listen(SignalKind::hangup())).flatten(),
            }
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
            () = heard(&mut self.hangup) => "a closed terminal",
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

/// Whether this process was started to ignore a signal. Where that cannot be found out, it is taken to be so.
#[cfg(unix)]
fn is_ignored(signal: signal::unix::SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(signal.as_raw_value().saturating_sub(1)).ok().and_then(|place| 1_u64.checked_shl(place));
    ignored.zip(bit).is_none_or(|(ignored, bit)| ignored & bit != 0)
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
