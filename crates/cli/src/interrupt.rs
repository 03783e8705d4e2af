//! SIGINT, SIGTERM, SIGQUIT and SIGHUP: the first asks the running command to end cleanly, a second
//! ends the process at once. A store survives both; after the second the next opening recovers it.
//!
//! ```text
//! listening ──(signal)──> asked to end ──(command returns)──────────────> ended, store clean
//!                              ├ 1 s ──> another signal ends it at once ─> ended, store to recover
//!                              └ 10 s, of who listens by [`Interrupt::listen`] ──────^
//! ```
//!
//! Ten seconds, because what a command waits for may never come: room on a device, the answer of a
//! server that stalls. Only a server sees to its end itself, for it may have much to write.
//!
//! Who signals the process and its group, as `timeout` does, sends the first twice: another one
//! counts a second later. A hangup counts unless the process was started to outlive its terminal,
//! as `nohup` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use signal_hook::consts::{SIGHUP, SIGXFSZ, TERM_SIGNALS};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::error::{CliError, SIGNAL_EXIT_BASE};
use crate::output;

/// What comes so soon after the first signal is the same one.
const SAME_SIGNAL: Duration = Duration::from_secs(1);
/// What a command has for its end, from then on.
const END_TIME_MAX: Duration = Duration::from_secs(10);

/// Whether an end has been asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    /// The signal that came last; 0: none has.
    signal: Arc<AtomicUsize>,
    /// Whether another signal ends the process.
    is_impatience: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on the signals are heard here and no longer end the process by themselves, unless
    /// it takes long to end.
    pub(crate) fn listen() -> Result<Self, CliError> {
        let interrupt = Self::hear()?;
        let heard = interrupt.clone();
        interrupt.on_signal(move || {
            thread::sleep(SAME_SIGNAL + END_TIME_MAX);
            heard.cut_off();
        })?;
        Ok(interrupt)
    }

    /// The same for who ends soon whatever happens.
    pub(crate) fn hear() -> Result<Self, CliError> {
        let interrupt = Self::default();
        interrupt.register().map_err(unheard)?;
        let is_impatience = Arc::clone(&interrupt.is_impatience);
        interrupt.on_signal(move || {
            thread::sleep(SAME_SIGNAL);
            is_impatience.store(true, Ordering::Relaxed);
        })?;
        Ok(interrupt)
    }

    /// Ends the process as a second signal does.
    fn cut_off(&self) {
        let signal = self.signal.load(Ordering::Relaxed);
        let error = CliError::CutOff { signal: u8::try_from(signal).unwrap_or(0) };
        output::say_failure(&error);
        signal_hook::low_level::exit(i32::from(error.code()));
    }

    fn register(&self) -> io::Result<()> {
        for signal in end_signals() {
            let number = Arc::clone(&self.signal);
            let exit_code = i32::from(SIGNAL_EXIT_BASE) + signal;
            let is_impatience = Arc::clone(&self.is_impatience);
            // The number first: a signal between the two is heard by what is registered alone.
            flag::register_usize(signal, number, usize::try_from(signal).unwrap_or(0))?;
            flag::register_conditional_shutdown(signal, exit_code, is_impatience)?;
        }
        Ok(())
    }

    /// An error when an end has been asked for: a loop's way to ask.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        match u8::try_from(self.signal.load(Ordering::Relaxed)) {
            Ok(signal @ 1..) => Err(CliError::Interrupted { signal }),
            _ => Ok(()),
        }
    }

    /// Calls `then` on a thread of its own when the first signal comes, or at once if it has come.
    pub(crate) fn on_signal(&self, then: impl FnOnce() + Send + 'static) -> Result<(), CliError> {
        self.on_first_of(Signals::new(end_signals()).map_err(unheard)?, then)
    }

    fn on_first_of(
        &self,
        mut signals: Signals,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<(), CliError> {
        // One that came before these were listened to is known here only.
        let has_come = self.check().is_err();
        let wait = move || {
            if has_come || signals.forever().next().is_some() {
                then();
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(unheard)?;
        Ok(())
    }
}

/// Has a write beyond the limit of file lengths fail with an error, where it would end the process.
pub(crate) fn outlive_file_limits() {
    // Any handler does that. Where none can be had it is as it was.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// The signals that ask for an end.
fn end_signals() -> Vec<i32> {
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    TERM_SIGNALS.iter().copied().chain(hangup).collect()
}

/// Whether this process was started with a signal ignored, as far as the kernel tells; handlers of
/// our own take nothing from that, for they are no ignoring.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

fn unheard(source: io::Error) -> CliError {
    CliError::System { action: "signals cannot be heard", source }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use signal_hook::consts::{SIGTERM, SIGUSR1};
    use signal_hook::iterator::Signals;

    use super::Interrupt;

    #[test]
    fn a_signal_that_comes_before_anybody_waits_for_it_is_not_lost() {
        let interrupt = Interrupt::default();
        let (told, hears) = channel();
        interrupt.signal.store(SIGTERM as usize, Ordering::Relaxed);
        // Of one that does not come, for the tests must end by the others.
        let signals = Signals::new([SIGUSR1]).unwrap();
        interrupt.on_first_of(signals, move || told.send(()).unwrap()).unwrap();
        hears.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
