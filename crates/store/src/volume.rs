//! One volume of a running store, with the client that reaches it.

use std::sync::Arc;

use engine::{Client, OpenVolume, RequestError};

/// An open volume; cheap to clone, for any number of threads, and open until its last clone is
/// dropped. Offsets and lengths are in bytes and multiples of 512.
#[derive(Clone)]
pub struct Volume {
    client: Client,
    open: Arc<OpenVolume>,
}

impl Volume {
    /// The volume that `client` has opened.
    #[must_use]
    pub fn new(client: Client, open: OpenVolume) -> Self {
        Self { client, open: Arc::new(open) }
    }

    /// The way to its engine.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the engine knows it by.
    #[must_use]
    pub fn handle(&self) -> &OpenVolume {
        &self.open
    }

    /// Its size now.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.open.size_bytes()
    }
}

/// The blocking forms.
///
/// # Errors
/// Each returns the [`RequestError`] of its request; [`RequestError::OutOfRange`] when the range is
/// not inside the volume or not in units of 512 bytes.
impl Volume {
    /// Writes, and waits for the acknowledgement: a later read sees it, a crash may undo it until
    /// the next flush.
    pub fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> Result<(), RequestError> {
        self.client.write_at(&self.open, offset_bytes, bytes)
    }

    /// Fills `out` with what the volume holds from `offset_bytes` on.
    pub fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.client.read_at(&self.open, offset_bytes, out)
    }

    /// Unmaps whole chunks of the range and zeroes the rest of it.
    pub fn trim_blocking(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        self.client.trim_blocking(&self.open, offset_bytes, length_bytes)
    }

    /// Makes durable everything that was acknowledged before, on every volume of the store.
    pub fn flush_blocking(&self) -> Result<(), RequestError> {
        self.client.flush_blocking()
    }
}
