//! Values that are too long to be whole in memory, or of which a part is read.

use crate::answer::Fault;

/// Takes the parts of a long value.
pub trait ValueWriter {
    /// The next part.
    ///
    /// # Errors
    /// If it cannot be kept. The rest of the value is dropped, and the client hears the fault.
    fn write(&mut self, part: &[u8]) -> Result<(), Fault>;
}

/// Gives the parts of a long value.
pub trait ValueReader {
    /// Fills the front of `out` with what follows, and says how much that is. 0 is the end.
    ///
    /// # Errors
    /// If it cannot be read. The connection is closed: its client has the front of the value, and
    /// nothing else can be said in its place.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault>;
}

/// A value of which any part can be read.
pub trait ValueSource {
    /// Where a long part of it comes from.
    type Reader: ValueReader;

    /// Fills `out` with what stands at `offset`, in bytes. All of it is inside the value.
    ///
    /// # Errors
    /// If it cannot be read. The client hears the fault.
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Fault>;

    /// Gives the `bytes` bytes from `offset` on in parts.
    ///
    /// # Errors
    /// If it cannot be read. The client hears the fault.
    fn into_reader(self, offset: u64, bytes: u64) -> Result<Self::Reader, Fault>;
}
