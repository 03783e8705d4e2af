//! A position in a view, for what reads, writes and seeks.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::byte_view::{ByteView, io_error};

/// Reads, writes and seeks in a [`ByteView`]; [`ByteView::cursor`] makes it. The view does not
/// grow: at its end a read gives nothing and a write fails with [`io::ErrorKind::StorageFull`].
pub struct ByteCursor {
    view: ByteView,
    position_bytes: u64,
}

impl ByteCursor {
    pub(crate) fn new(view: ByteView) -> Self {
        Self { view, position_bytes: 0 }
    }

    /// How much of `wished` lies before the end.
    fn available(&self, wished: usize) -> usize {
        let rest_bytes = self.view.len().saturating_sub(self.position_bytes);
        wished.min(usize::try_from(rest_bytes).unwrap_or(usize::MAX))
    }
}

impl Read for ByteCursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.available(out.len());
        if length == 0 {
            return Ok(0);
        }
        self.view.read_at(self.position_bytes, &mut out[..length]).map_err(io_error)?;
        self.position_bytes += length as u64;
        Ok(length)
    }
}

impl Write for ByteCursor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.available(bytes.len());
        if length == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the volume ends here"));
        }
        self.view.write_at(self.position_bytes, &bytes[..length]).map_err(io_error)?;
        self.position_bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.view.flush().map_err(io_error)
    }
}

impl Seek for ByteCursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.view.len().checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position_bytes.checked_add_signed(distance),
        };
        let before_start =
            || io::Error::new(io::ErrorKind::InvalidInput, "a seek before the first byte");
        self.position_bytes = position.ok_or_else(before_start)?;
        Ok(self.position_bytes)
    }
}
