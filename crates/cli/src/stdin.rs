//! Standard input that a signal interrupts. It is read on a thread of its own, since a read of a
//! pipe that is silent comes back only when something comes.

use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::error::CliError;
use crate::interrupt::Interrupt;

/// What a pipe holds.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_AHEAD: usize = 16;
/// How long a signal may go unheard.
const TIME_LIMIT: Duration = Duration::from_millis(50);

/// Standard input.
pub(crate) struct Stdin {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Cursor<Vec<u8>>,
    interrupt: Interrupt,
}

impl Stdin {
    /// From now on it is read ahead, by nobody else.
    pub(crate) fn open(interrupt: &Interrupt) -> Result<Self, CliError> {
        let (sender, pieces) = sync_channel(PIECES_AHEAD);
        // Nobody waits for it: it may never come back from its last read.
        thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || read_ahead(&sender))
            .map_err(|source| CliError::System { action: "a thread cannot be made", source })?;
        Ok(Self { pieces, piece: Cursor::default(), interrupt: interrupt.clone() })
    }
}

impl Read for Stdin {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.piece.read(out)?;
            if length > 0 || out.is_empty() {
                return Ok(length);
            }
            self.interrupt.check().map_err(io::Error::other)?;
            match self.pieces.recv_timeout(TIME_LIMIT) {
                Ok(piece) => self.piece = Cursor::new(piece?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}

fn read_ahead(pieces: &SyncSender<io::Result<Vec<u8>>>) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let read = match stdin.read(&mut piece) {
            Ok(0) => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other,
        };
        let failed = read.is_err();
        let piece = read.map(|length| {
            piece.truncate(length);
            piece
        });
        if pieces.send(piece).is_err() || failed {
            return;
        }
    }
}

/// What a failed read came to: the signal that ended it, or what `otherwise` makes of it.
pub(crate) fn unread(source: io::Error, otherwise: impl FnOnce(io::Error) -> CliError) -> CliError {
    source.downcast::<CliError>().unwrap_or_else(otherwise)
}
