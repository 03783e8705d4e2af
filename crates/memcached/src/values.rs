//! Values that are too long to be whole in memory: they come and go in parts.

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
