//! SIGINT and SIGTERM: the first asks the running command to end cleanly, a second ends the
//! process at once. A store survives both; after the second the next opening recovers it.
//!
//! Who signals the process and its group, as `timeout` does, sends the first twice: another one
//! counts a second later.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::TERM_SIGNALS;
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::error::{CliError, SIGNAL_EXIT_BASE};

/// What comes so soon after the first signal is the same one.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// Whether an end has been asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    /// Whether another signal ends the process.
    is_impatience: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on the signals are heard here and no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, CliError> {
        let interrupt = Self::default();
        interrupt.register().map_err(unheard)?;
        let is_impatience = Arc::clone(&interrupt.is_impatience);
        Self::on_signal(move || {
            thread::sleep(SAME_SIGNAL);
            is_impatience.store(true, Ordering::Relaxed);
        })?;
        Ok(interrupt)
    }

    fn register(&self) -> io::Result<()> {
        for signal in TERM_SIGNALS {
            let (asked, number) = (Arc::clone(&self.asked), Arc::clone(&self.signal));
            let exit_code = i32::from(SIGNAL_EXIT_BASE) + signal;
            let is_impatience = Arc::clone(&self.is_impatience);
            flag::register_conditional_shutdown(*signal, exit_code, is_impatience)?;
            flag::register(*signal, asked)?;
            flag::register_usize(*signal, number, usize::try_from(*signal).unwrap_or(0))?;
        }
        Ok(())
    }

    /// An error when an end has been asked for: a loop's way to ask.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if !self.asked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let signal = u8::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(0);
        Err(CliError::Interrupted { signal })
    }

    /// Calls `then` on a thread of its own when the first signal comes.
    pub(crate) fn on_signal(then: impl FnOnce() + Send + 'static) -> Result<(), CliError> {
        let mut signals = Signals::new(TERM_SIGNALS).map_err(unheard)?;
        let wait = move || {
            if signals.forever().next().is_some() {
                then();
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(unheard)?;
        Ok(())
    }
}

fn unheard(source: io::Error) -> CliError {
    CliError::System { action: "signals cannot be heard", source }
}
