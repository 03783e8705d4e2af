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
mod reserve;
mod sent;
mod write;
mod write_vectored;

use acknowledged::{Area, Verb};
use engine::{Durability, Reservation, ReservedFor, WriteOptions, WriteRoom};

use crate::volume::Volume;

pub use acknowledged::Acknowledged;
pub use read::Read;
pub use reserve::Reserve;
pub use write::Write;
pub use write_vectored::WriteVectored;

/// The futures. Each owns what it needs of the volume and ends with the
/// [`RequestError`](crate::RequestError) of its request.
impl Volume {
    /// Writes `bytes`; ends when that is acknowledged or, if `durable`, when it is durable, with
    /// all that was acknowledged before. After an error a part of it may be written, from its
    /// beginning on.
    pub fn write<B>(&self, offset_bytes: u64, bytes: B, durable: bool) -> Write<B>
    where
        B: AsRef<[u8]> + Unpin,
    {
        let durability = if durable { Durability::Durable } else { Durability::Acknowledged };
        self.write_with(offset_bytes, bytes, WriteOptions { durability, ..Default::default() })
    }

    /// As [`Volume::write`], with hints as well.
    pub fn write_with<B>(&self, offset_bytes: u64, bytes: B, options: WriteOptions) -> Write<B>
    where
        B: AsRef<[u8]> + Unpin,
    {
        Write::new(self.clone(), offset_bytes, bytes, options)
    }

    /// Writes several ranges in the order in which they are listed, as
    /// [`engine::Client::write_vectored`] does: a crash leaves a prefix of the vector.
    pub fn write_vectored<B>(
        &self,
        writes: Vec<(u64, B)>,
        options: WriteOptions,
    ) -> WriteVectored<'static, B>
    where
        B: AsRef<[u8]> + Unpin,
    {
        WriteVectored::new(self.clone(), writes, options, None)
    }

    /// As [`Volume::write_vectored`], to the volume of `reservation` and with the room that it
    /// holds: none of the writes fails or waits for want of room.
    pub fn write_reserved<'a, B>(
        &self,
        reservation: &'a Reservation,
        writes: Vec<(u64, B)>,
        options: WriteOptions,
    ) -> WriteVectored<'a, B>
    where
        B: AsRef<[u8]> + Unpin,
    {
        WriteVectored::new(self.clone(), writes, options, Some(reservation))
    }

    /// Reserves room for writes to the volume, as [`engine::Client::reserve_with`] does.
    pub fn reserve(&self, room: WriteRoom, reserved_for: ReservedFor) -> Reserve {
        Reserve::new(self.clone(), room, reserved_for)
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
    /// [`RequestError::NoSpace`](crate::RequestError::NoSpace).
    pub fn write_zeroes(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
        durable: bool,
    ) -> Acknowledged {
        let area = Area { offset_bytes, length_bytes, durable };
        Acknowledged::new(self.clone(), Verb::WriteZeroes(area))
    }

    /// Maps the chunks of a range of `from` in this volume as well; no bytes move. All places are
    /// in bytes and whole chunks, and both volumes are of one domain, as
    /// [`engine::Client::copy_range`] says.
    pub fn copy_from(
        &self,
        offset_bytes: u64,
        from: &Self,
        from_bytes: u64,
        length_bytes: u64,
        durable: bool,
    ) -> Acknowledged {
        let to = Area { offset_bytes, length_bytes, durable };
        Acknowledged::new(self.clone(), Verb::Copy { from: from.clone(), from_bytes, to })
    }
}
