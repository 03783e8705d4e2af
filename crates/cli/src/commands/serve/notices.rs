//! What a server says while it works, on a thread of its own.
//!
//! The reader of standard error may have stopped: a terminal at Ctrl-S, a pipe that nobody
//! empties. Then this thread waits, and neither the engine nor who is to end the server does. What
//! finds no room meanwhile is counted, and the count is said in its place.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::error::CliError;
use crate::output;

/// Lines that may wait to be said.
const LINES_MAX: usize = 64;
/// How long the end of a server waits for the last of them.
const TIME_LIMIT_AT_THE_END: Duration = Duration::from_secs(1);

/// The thread that says lines.
#[derive(Debug)]
pub(super) struct Notices {
    teller: Teller,
    /// Nothing comes here; it closes when the thread has said everything.
    all_said: Receiver<()>,
}

/// Has lines said, and never waits.
#[derive(Clone, Debug)]
pub(super) struct Teller {
    lines: SyncSender<String>,
    left_out: Arc<AtomicU64>,
}

impl Notices {
    pub(super) fn begin() -> Result<Self, CliError> {
        let (lines, to_say) = sync_channel(LINES_MAX);
        let (saying, all_said) = channel::<()>();
        let say_all = move || {
            to_say.iter().for_each(|line: String| output::say(line));
            drop(saying);
        };
        thread::Builder::new()
            .name("notices".to_owned())
            .spawn(say_all)
            .map_err(|source| CliError::System { action: "a thread cannot be made", source })?;
        Ok(Self { teller: Teller { lines, left_out: Arc::default() }, all_said })
    }

    /// Another one, for what else has something to say.
    pub(super) fn teller(&self) -> Teller {
        self.teller.clone()
    }

    /// Waits until everything is said, if somebody reads it, and all other tellers are gone.
    pub(super) fn end(self) {
        drop(self.teller);
        // Said or not, the server ends.
        let _ = self.all_said.recv_timeout(TIME_LIMIT_AT_THE_END);
    }
}

impl Teller {
    pub(super) fn tell(&self, line: impl Display) {
        let missing = self.left_out.swap(0, Ordering::Relaxed);
        let line = match missing {
            0 => line.to_string(),
            missing => format!("({missing} messages dropped: standard error was not read)\n{line}"),
        };
        if self.lines.try_send(line).is_err() {
            self.left_out.fetch_add(missing + 1, Ordering::Relaxed);
        }
    }
}
