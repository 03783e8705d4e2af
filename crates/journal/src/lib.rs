//! Room journal: the redo log, a ring of records.
//!
//! The engine appends what it does to the tables as records; a record that is on disk when the
//! store crashes is done again. The journal decides where records go and which of them count; it
//! does no I/O. A [`Writer`] hands out writes for the engine to issue, and a [`Replay`] asks for
//! bytes and gives records.
//!
//! ```text
//!            tail                                  next
//!   ...------+--------+--------+-------------+-----+......   offsets, growing for ever
//!    free    | record | record | record      | filler? free, up to tail + length of the ring
//! ```
//!
//! Offsets never wrap; the place in the zone is the offset modulo the ring's length
//! ([`Ring`]). What holds:
//!
//! - Nothing from `tail` on is overwritten. The tail moves when a checkpoint has made what lies
//!   before it needless.
//! - Records are whole blocks: writing one never touches the blocks of another.
//! - A record counts if all before it count and it is bound to the one before: by sequence,
//!   checksum and incarnation (`format::record`). So replay ends at the first record that did not
//!   reach the disk whole, and never goes on into what an earlier lap or an earlier life left.
//! - A writer goes on after a replay with a higher incarnation, from the replay's position.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod error;
mod replay;
mod ring;
mod writer;

#[cfg(test)]
mod tests;

pub use error::AppendError;
pub use replay::{End, Replay, ReplayRecord, ReplayStep};
pub use ring::Ring;
pub use writer::{Appended, JournalWrite, Writer};
