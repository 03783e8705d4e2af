//! Copies between volumes, as clients ask for them.

use std::sync::Arc;

use crate::copy_range::copied_range::CopiedRange;
use crate::door::client::Client;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::requests::CopyRequest;
use crate::write::partial::Ack;

impl Client {
    /// Makes `length_bytes` of `to`, from `to_bytes` on, equal to those of `from`, from
    /// `from_bytes` on. The chunks are mapped and no bytes move: it takes no room but for maps, and
    /// a small part of the time that reading and writing would. Where `from` has holes, `to` gets
    /// holes.
    ///
    /// It has a place in the order of all requests: it sees all that was acknowledged before it was
    /// called, and what is written to `from` or `to` afterwards does not change what it copies. It
    /// is answered when the whole range is mapped, and with `durable` when that is durable, too.
    /// A long range is mapped in pieces, in ascending order, and writes behind it wait until it is
    /// done. **A crash, or an error, leaves the pieces done that were in
    /// front.**
    ///
    /// Volumes share chunks inside a domain only. `from` may be a snapshot, or be read-only; `from`
    /// and `to` may be one volume if the ranges do not overlap. Whether either has deduplication
    /// does not matter.
    ///
    /// # Errors
    /// Those of a write, and:
    ///
    /// * [`RequestError::RaggedCopy`]: offsets or length are not in whole chunks;
    /// * [`RequestError::OtherDomain`], [`RequestError::OverlappingCopy`];
    /// * [`RequestError::QuotaExceeded`] when `to` would map more than it may, with the writes to
    ///   it that have been admitted meanwhile;
    /// * [`RequestError::NotCopied`]: a page of the tables cannot be read. It names the first
    ///   chunk that was not copied. The copy of a chunk that is itself damaged succeeds: it is
    ///   damaged at both addresses.
    #[expect(clippy::too_many_arguments, reason = "two places, a length and what every verb has")]
    pub fn copy_range(
        &self,
        from: &OpenVolume,
        from_bytes: u64,
        to: &OpenVolume,
        to_bytes: u64,
        length_bytes: u64,
        durable: bool,
        done: Done<()>,
    ) {
        let range = match self.copied_range((from, from_bytes), (to, to_bytes), length_bytes) {
            Ok(range) => range,
            Err(error) => return done.fail(error),
        };
        let durable = durable || self.intake.sync;
        if range.chunks > 0 {
            let ack = Ack::new(Some(done));
            return self.intake.copy_range(CopyRequest { range, durable, reserved: false, ack });
        }
        // It needs no room, however full the store is.
        match self.intake.refusal_of_writes() {
            Some(error) => done.fail(error),
            None if durable => self.flush(done),
            None => done.reply(()),
        }
    }

    /// The same, and waits for the answer.
    ///
    /// # Errors
    /// Those of [`Client::copy_range`].
    ///
    /// # Examples
    /// A record is copied, its place in the index is written behind it, and one flush makes both
    /// durable: no crash leaves an index that names bytes which are not there.
    ///
    /// ```no_run
    /// # fn copy(client: &engine::Client, from: &engine::OpenVolume, to: &engine::OpenVolume)
    /// # -> Result<(), engine::RequestError> {
    /// client.copy_range_blocking(from, 8 << 20, to, 64 << 20, 1 << 20, false)?;
    /// client.write_at(to, 0, &[1; 4096])?;
    /// client.flush_blocking()
    /// # }
    /// ```
    pub fn copy_range_blocking(
        &self,
        from: &OpenVolume,
        from_bytes: u64,
        to: &OpenVolume,
        to_bytes: u64,
        length_bytes: u64,
        durable: bool,
    ) -> Result<(), RequestError> {
        let send =
            |done| self.copy_range(from, from_bytes, to, to_bytes, length_bytes, durable, done);
        self.wait_for(send)
    }

    fn copied_range(
        &self,
        (from, from_bytes): (&OpenVolume, u64),
        (to, to_bytes): (&OpenVolume, u64),
        length_bytes: u64,
    ) -> Result<CopiedRange, RequestError> {
        let chunk_bytes = self.intake.chunk_bytes;
        let chunks = |bytes: u64| bytes / u64::from(chunk_bytes);
        let whole = |bytes: &u64| bytes.is_multiple_of(chunk_bytes.into());
        if ![from_bytes, to_bytes, length_bytes].iter().all(whole) {
            return Err(RequestError::RaggedCopy { chunk_bytes });
        }
        let range = CopiedRange {
            from: Arc::clone(&from.0),
            from_lba: chunks(from_bytes),
            to: Arc::clone(&to.0),
            to_lba: chunks(to_bytes),
            chunks: chunks(length_bytes),
        };
        range.check(chunk_bytes)?;
        Ok(range)
    }
}
