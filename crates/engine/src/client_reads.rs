//! Reads, by the handle of [`crate::client`]: at once where frames are at hand, else by the core.

use std::sync::Arc;

use reduce::Permit;

use crate::client::{Client, pooled_bytes};
use crate::done::Done;
use crate::error::RequestError;
use crate::intake::{ReadRequest, Request};
use crate::outcome::{ReadPieces, Reply};
use crate::volume::VolumeHandle;

/// Connections among which the memory of reads is divided.
const READERS: usize = 8;

impl Client {
    /// Bytes of reads that one connection should have under way at most, so that one which does not
    /// take its replies leaves memory to the others.
    #[must_use]
    pub fn read_share_bytes(&self) -> usize {
        self.intake.read_credits.total_bytes() / READERS / 2
    }

    /// Reads; the outcome is [`Reply::Read`]. Waits while other reads, whose replies have not been
    /// dropped, take all the memory that is meant for them.
    pub fn read(&self, volume: &VolumeHandle, offset_bytes: u64, length_bytes: u32, done: Done) {
        if let Err(error) = volume.0.check_range(offset_bytes, u64::from(length_bytes)) {
            return done.fail(error);
        }
        let volume = Arc::clone(&volume.0);
        // Frames as they are stored, and the reply that is made from them.
        let credit = 2 * pooled_bytes(length_bytes as usize);
        self.intake.read_credits.take(credit);
        let permit = Permit::new(Arc::clone(&self.read_permit), credit);
        let as_of = self.intake.lookaside.as_of();
        let request = ReadRequest { volume, offset_bytes, length_bytes, as_of, permit, done };
        self.intake.push(Request::Read(request));
    }

    /// A short read whose frames are all in memory, by these addresses, answered on this thread:
    /// with all that was acknowledged before. None: ask with [`Client::read`].
    #[must_use]
    pub fn read_held(
        &self,
        volume: &VolumeHandle,
        offset_bytes: u64,
        length_bytes: u32,
    ) -> Option<ReadPieces> {
        volume.0.check_range(offset_bytes, u64::from(length_bytes)).ok()?;
        let intake = &self.intake;
        Some(ReadPieces {
            parts: intake.lookaside.read(volume.0.id, offset_bytes, length_bytes.into())?,
            chunk_bytes: intake.chunk_bytes,
            volume: Arc::clone(&volume.0),
            expanding: Arc::clone(&intake.expanding),
            _permit: None,
        })
    }

    /// Reads into `out` and waits.
    ///
    /// # Errors
    /// The [`RequestError`] of the first part that could not be read.
    pub fn read_at(
        &self,
        volume: &VolumeHandle,
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
            let reply =
                self.wait_for(|done| self.read(volume, offset_bytes, length_bytes, done))?;
            if let Reply::Read(pieces) = reply {
                pieces.assemble(part)?;
            }
        }
        Ok(())
    }
}
