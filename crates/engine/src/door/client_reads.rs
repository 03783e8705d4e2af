//! Reads, by the handle of [`crate::door::client`]: at once where frames are at hand, else by the
//! core.

use std::sync::Arc;

use reduce::Permit;

use crate::door::client::{Client, pooled_bytes};
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::outcome::ReadPieces;
use crate::door::requests::{ReadRequest, Request};

/// Connections among which the memory of reads is divided.
const READERS: usize = 8;

/// What a read takes: frames as they are stored, and the reply that is made from them.
pub(crate) fn read_credit(length_bytes: u32) -> usize {
    2 * pooled_bytes(length_bytes as usize)
}

impl Client {
    /// Bytes of reads that one connection should have under way at most, so that one which does not
    /// take its replies leaves memory to the others.
    #[must_use]
    pub fn read_share_bytes(&self) -> usize {
        self.intake.read_credits.total_bytes() / READERS / 2
    }

    /// Memory for a read of this length and for its reply; waits while there is none.
    #[must_use]
    pub fn read_memory(&self, length_bytes: u32) -> Permit {
        let credit = read_credit(length_bytes);
        self.intake.read_credits.take(credit);
        Permit::new(Arc::clone(&self.read_permit), credit)
    }

    /// As [`Client::read_memory`], but None while there is none.
    #[must_use]
    pub fn try_read_memory(&self, length_bytes: u32) -> Option<Permit> {
        let credit = read_credit(length_bytes);
        let granted = self.intake.read_credits.try_take(credit);
        granted.then(|| Permit::new(Arc::clone(&self.read_permit), credit))
    }

    /// In place of memory that the caller has set aside itself.
    #[must_use]
    pub fn own_memory(&self) -> Permit {
        Permit::new(Arc::clone(&self.read_permit), 0)
    }

    /// Whether somebody waits for memory of reads.
    #[must_use]
    pub fn is_read_memory_wanted(&self) -> bool {
        self.intake.read_credits.are_wanted()
    }

    /// Reads. Waits for memory as [`Client::read_memory`] does.
    pub fn read(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u32,
        done: Done<ReadPieces>,
    ) {
        self.read_in(self.read_memory(length_bytes), volume, offset_bytes, length_bytes, done);
    }

    /// Reads in memory that is there; the outcome holds it ([`ReadPieces::into_permit`]).
    pub fn read_in(
        &self,
        permit: Permit,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u32,
        done: Done<ReadPieces>,
    ) {
        if let Err(error) = volume.0.check_range(offset_bytes, u64::from(length_bytes)) {
            return done.fail(error);
        }
        let volume = Arc::clone(&volume.0);
        let as_of = self.intake.lookaside.as_of();
        let request = ReadRequest { volume, offset_bytes, length_bytes, as_of, permit, done };
        self.intake.push(Request::Read(request));
    }

    /// A short read whose frames are all in memory, by these addresses, answered on this thread:
    /// with all that was acknowledged before. None: ask with [`Client::read`].
    #[must_use]
    pub fn read_held(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u32,
    ) -> Option<ReadPieces> {
        volume.0.check_range(offset_bytes, u64::from(length_bytes)).ok()?;
        let intake = &self.intake;
        if intake.is_fenced() {
            return None;
        }
        Some(ReadPieces {
            parts: intake.lookaside.read(volume.0.id, offset_bytes, length_bytes.into())?,
            chunk_bytes: intake.chunk_bytes,
            volume: Arc::clone(&volume.0),
            expanding: Arc::clone(&intake.expanding),
            permit: None,
        })
    }

    /// Reads into `out` and waits.
    ///
    /// # Errors
    /// The [`RequestError`] of the first part that could not be read.
    pub fn read_at(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        out: &mut [u8],
    ) -> Result<(), RequestError> {
        for (at, part) in out.chunks_mut(1 << 20).enumerate() {
            let offset_bytes = offset_bytes + ((at as u64) << 20);
            let length_bytes = u32::try_from(part.len()).unwrap_or(u32::MAX);
            if let Some(pieces) = self.read_held(volume, offset_bytes, length_bytes) {
                pieces.assemble(part)?;
                continue;
            }
            self.wait_for(|done| self.read(volume, offset_bytes, length_bytes, done))?
                .assemble(part)?;
        }
        Ok(())
    }
}
