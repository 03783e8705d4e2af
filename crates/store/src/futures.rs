//! Requests as futures, for any executor.
//!
//! ```text
//! made ──first poll──> memory taken, sent ──the engine's thread wakes the task──> ended
//!  │                     │
//!  └──────────────────dropped: nothing was sent, or its outcome is heard by nobody
//! ```
//!
//! * A future sends nothing before its first poll. The order of first polls is the order of the
//!   requests, as that of calls is for the blocking forms; a write that finds the write buffer full
//!   takes its place when a later poll finds room.
//! * Dropping a future is safe at any time: the engine owns the bytes of what was sent. What was
//!   sent is carried out as if its sender had gone: a write may be there afterwards or not, and one
//!   that still waits for room or a quota is not carried out.
//! * A poll never waits. It copies the bytes of a write, and checks and expands those of a read, at
//!   most a piece of 1 MiB at a time: longer requests are sent piece by piece.
//! * Wakers are called on the engine's thread, so waking must not block. Executors' wakers do not.
//!
//! A future that has ended is not polled again: it panics then, as futures may.

mod acknowledged;
mod read;
mod sent;
mod write;

use acknowledged::{Area, Verb};

use crate::volume::Volume;

pub use acknowledged::Acknowledged;
pub use read::Read;
pub use write::Write;

/// The futures. Each owns what it needs of the volume and ends with the [`RequestError`] of its
/// request.
impl Volume {
    /// Writes `bytes`; ends when that is acknowledged or, if `durable`, when it is durable, with
    /// all that was acknowledged before. After an error a part of it may be written, from its
    /// beginning on.
    pub fn write<B>(&self, offset_bytes: u64, bytes: B, durable: bool) -> Write<B>
    where
        B: AsRef<[u8]> + Unpin,
    {
        Write::new(self.clone(), offset_bytes, bytes, durable)
    }

    /// Reads `length_bytes` and ends with them.
    pub fn read(&self, offset_bytes: u64, length_bytes: usize) -> Read {
        Read::new(self.clone(), offset_bytes, length_bytes)
    }

    /// Ends when everything that was acknowledged before its first poll is durable, on every volume
    /// of the store.
    pub fn flush(&self) -> Acknowledged {
        Acknowledged::new(self.clone(), Verb::Flush)
    }

    /// Unmaps whole chunks of the range and zeroes the rest of it; in a store that is full, what is
    /// covered of chunks in part may stay as it is.
    pub fn trim(&self, offset_bytes: u64, length_bytes: u64, durable: bool) -> Acknowledged {
        let area = Area { offset_bytes, length_bytes, durable };
        Acknowledged::new(self.clone(), Verb::Trim(area))
    }

    /// As [`Volume::trim`], but all of the range reads as zeros afterwards, or it ends with
    /// [`RequestError::NoSpace`].
    pub fn write_zeroes(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
        durable: bool,
    ) -> Acknowledged {
        let area = Area { offset_bytes, length_bytes, durable };
        Acknowledged::new(self.clone(), Verb::WriteZeroes(area))
    }
}
