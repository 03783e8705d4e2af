//! The writer's thread: outcomes of the engine become replies, which are gathered and sent.
//!
//! Reads are put together here, so that decompression runs beside the engine's core and beside the
//! writers of other connections; but for short ones that are alone ([`crate::link`]). As long as
//! outcomes wait they share a send, up to [`GATHERED_BYTES`]; more would only keep the client
//! waiting for what is ready.

use crate::link::{Batch, Link, send};
use crate::reply::Replies;
use door::{Hangup, Load};

/// Replies of so many bytes are sent without waiting for others.
const GATHERED_BYTES: usize = 64 << 10;
/// What most replies find room in: those, and a read beside them.
pub(crate) const REPLIES_BYTES: usize = 2 * GATHERED_BYTES;

/// Sends replies until there will be no more; false when the client does not take them.
pub(crate) fn run(link: &Link, mut replies: Replies) -> bool {
    let mut batch = Batch::default();
    while link.next_batch(&mut batch) {
        if send_some(link, &mut batch, &mut replies).is_err() {
            return false;
        }
    }
    true
}

/// Sends what is gathered of a batch; the rest waits with the link, which looks after it while the
/// client does not take this.
fn send_some(link: &Link, batch: &mut Batch, replies: &mut Replies) -> Result<(), Hangup> {
    replies.append(&batch.encoded);
    batch.encoded.clear();
    let mut load = Load::default();
    while replies.as_bytes().len() < GATHERED_BYTES
        && let Some((request, outcome)) = batch.outcomes.pop_front()
    {
        replies.outcome(&request, outcome);
        load.add(&request);
    }
    link.put_back(&mut batch.outcomes);
    // With nothing of our own, too: the rest of a reply that was sent in part may wait.
    send(link, replies.as_bytes())?;
    replies.clear();
    link.release(load);
    Ok(())
}
