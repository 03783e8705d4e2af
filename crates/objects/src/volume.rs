//! What a bucket needs of the volume that holds it.

use store::{RequestError, Reservation, ReservedFor, WriteOptions, WriteRoom};

/// A volume with blocking requests in one order: whatever is written is visible to every later
/// read, and a crash keeps a prefix of all writes of the store.
///
/// [`store::Volume`] is one. The simulator implements it over an engine that it steps by hand.
/// Offsets and lengths are in bytes, any; requests of whole chunks cost least.
///
/// # Errors
/// Each request returns the error of the engine.
pub trait BucketVolume: Send + Sync {
    /// The size of the volume in bytes.
    fn size_bytes(&self) -> u64;

    /// Fills `out` with what the volume holds from `offset_bytes` on.
    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError>;

    /// Writes several ranges in the order of the list; a crash leaves a prefix of the list.
    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError>;

    /// Whether writes of `length_bytes` would wait for memory that earlier ones hold. A guess.
    fn would_wait(&self, length_bytes: usize) -> bool {
        let _ = length_bytes;
        false
    }

    /// Reserves room for writes until the reservation is dropped.
    fn reserve(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError>;

    /// As [`BucketVolume::write_vectored_at`], with the room that `reservation` holds.
    fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError>;

    /// Unmaps whole chunks of the range and zeroes the rest of it.
    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError>;

    /// Makes durable what was acknowledged before, on every volume of the store.
    fn flush(&self) -> Result<(), RequestError>;
}

impl BucketVolume for store::Volume {
    fn size_bytes(&self) -> u64 {
        store::Volume::size_bytes(self)
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.read_at(offset_bytes, out)
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.write_vectored_at(writes, options)
    }

    fn would_wait(&self, length_bytes: usize) -> bool {
        self.would_wait(length_bytes)
    }

    fn reserve(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        self.reserve_blocking(room, reserved_for)
    }

    fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.write_reserved_at(reservation, writes, options)
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        self.trim_blocking(offset_bytes, length_bytes)
    }

    fn flush(&self) -> Result<(), RequestError> {
        self.flush_blocking()
    }
}
