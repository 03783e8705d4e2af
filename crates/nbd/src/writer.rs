//! The writer's thread: outcomes of the engine become replies, which are gathered and sent.
//!
//! Reads are put together here, so that decompression runs beside the engine's core and beside the
//! writers of other connections. As long as outcomes wait they share a send, up to
//! [`GATHERED_BYTES`]; more would only keep the client waiting for what is ready.

use engine::{Reply, RequestError};

use crate::error::Hangup;
use crate::link::{Batch, Link, Load, Outcome};
use crate::reply::{ReadRange, Replies};
use crate::wire::{Command, Errno, Request};

/// Replies of so many bytes are sent without waiting for others.
const GATHERED_BYTES: usize = 64 << 10;

/// Sends replies until there will be no more.
pub(crate) fn run(link: &Link, structured: bool) {
    let mut replies = Replies::new(structured);
    let mut batch = Batch::default();
    while link.take(&mut batch) {
        if send_all(link, &mut batch, &mut replies).is_err() {
            return;
        }
    }
}

fn send_all(link: &Link, batch: &mut Batch, replies: &mut Replies) -> Result<(), Hangup> {
    replies.append(&batch.replies);
    batch.replies.clear();
    let mut load = Load::default();
    for (request, outcome) in batch.outcomes.drain(..) {
        answer(replies, &request, outcome);
        load.add(&request);
        if replies.as_bytes().len() >= GATHERED_BYTES {
            send(link, replies, &mut load)?;
        }
    }
    send(link, replies, &mut load)
}

fn send(link: &Link, replies: &mut Replies, load: &mut Load) -> Result<(), Hangup> {
    if replies.is_empty() {
        return Ok(());
    }
    link.send(replies.as_bytes())?;
    replies.clear();
    link.release(std::mem::take(load));
    Ok(())
}

fn answer(replies: &mut Replies, request: &Request, outcome: Outcome) {
    let cookie = request.cookie;
    match (request.command, outcome) {
        (command, Err(error)) => replies.error(cookie, command, &error),
        (Command::Read, Ok(Reply::Read(pieces))) => {
            replies.read(&ReadRange::of(request), &pieces);
        }
        (Command::BlockStatus, Ok(Reply::Extents(extents))) => replies.extents(cookie, &extents),
        (Command::Read | Command::BlockStatus, Ok(_)) => {
            replies.fail(cookie, Errno::Io, &RequestError::Closing.to_string());
        }
        (_, Ok(_)) => replies.done(cookie),
    }
}
