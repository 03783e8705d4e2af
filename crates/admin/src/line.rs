//! Messages as lines: one JSON document each, ended by a newline.
//!
//! A line is read up to a bound and no further: the other end cannot make this side
//! hold more than that.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::CallError;

/// Longest request: the names of all volumes of which snapshots are taken at one moment, of the
/// longest some sixteen thousand.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 << 20;
/// Longest response: a part of the list of volumes, or the figures of some ten thousand of them.
pub(crate) const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// Sends one message.
pub(crate) fn send<T: Serialize>(to: &mut impl Write, message: &T) -> Result<(), CallError> {
    send_bytes(to, serde_json::to_vec(message)?)
}

/// Sends one message that is JSON already.
pub(crate) fn send_bytes(to: &mut impl Write, mut line: Vec<u8>) -> Result<(), CallError> {
    line.push(b'\n');
    to.write_all(&line)?;
    Ok(to.flush()?)
}

/// Receives one message of at most `limit_bytes`; `None` when the other side has gone.
pub(crate) fn receive<T: DeserializeOwned>(
    from: &mut impl BufRead,
    limit_bytes: usize,
) -> Result<Option<T>, CallError> {
    receive_if(from, limit_bytes, |_| false)
}

/// The same, however long nothing comes: until the other side has gone.
pub(crate) fn receive_at_last<T: DeserializeOwned>(
    from: &mut impl BufRead,
    limit_bytes: usize,
) -> Result<Option<T>, CallError> {
    receive_if(from, limit_bytes, |error| {
        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
    })
}

fn receive_if<T: DeserializeOwned>(
    from: &mut impl BufRead,
    limit_bytes: usize,
    waits_on: impl Fn(&io::Error) -> bool,
) -> Result<Option<T>, CallError> {
    let mut line = Vec::new();
    let mut from = from.take(limit_bytes as u64 + 1);
    // What came before an error stays in the line.
    while let Err(error) = from.read_until(b'\n', &mut line) {
        if !waits_on(&error) {
            return Err(error.into());
        }
    }
    if line.pop_if(|byte| *byte == b'\n').is_some() {
        return Ok(Some(serde_json::from_slice(&line)?));
    }
    match line.len() {
        0 => Ok(None),
        length if length > limit_bytes => Err(CallError::TooLong { limit_bytes }),
        _ => Err(CallError::Closed),
    }
}
