//! A run that Ctrl-C or `kill` ends leaves nothing behind: no mount, no server, no file.
//!
//! A signal only sets a flag. Who works for long asks it and returns [`Failure::Interrupted`];
//! everything that was made is then removed by what made it, as after any other failure. A
//! second signal ends the program at once. All programs are started in groups of their own, so
//! that a Ctrl-C of the terminal reaches this one only, and the clearing up is not cut short.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// What a shell adds a signal's number to.
const BY_SIGNAL: i32 = 128;

/// From now on the first signal is noted, and the second ends the program.
pub(crate) fn watch() -> Result<(), Failure> {
    let asked = INTERRUPTED.get_or_init(Arc::default);
    let register = |signal| -> io::Result<()> {
        flag::register_conditional_shutdown(signal, BY_SIGNAL + signal, Arc::clone(asked))?;
        flag::register(signal, Arc::clone(asked)).map(drop)
    };
    [SIGINT, SIGTERM, SIGHUP].into_iter().try_for_each(register).map_err(Failure::Signals)
}

/// Whether a signal has come.
pub(crate) fn has_come() -> bool {
    INTERRUPTED.get().is_some_and(|asked| asked.load(Ordering::SeqCst))
}

/// [`Failure::Interrupted`], once a signal has come.
pub(crate) fn check() -> Result<(), Failure> {
    if has_come() { Err(Failure::Interrupted) } else { Ok(()) }
}
