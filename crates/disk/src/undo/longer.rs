//! A zone that was cut short, seen as long as it was made, while its file is as short as it is.
//!
//! That a journal is short is all that tells of the records which went with its end: once it is
//! longer again there are zeros, as behind any journal. So a repair works on this view, and the
//! file becomes longer when the new roots stand. Is the repair killed before, the next one is told
//! as much as this one was.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use format::units::{BLOCK_BYTES, Zone};

use crate::ahead::AllocationAhead;
use crate::buffer::AlignedBuf;
use crate::error::{FileError, IoError};
use crate::io::{Completion, Disk, Io, IoKind};
use crate::layout::zone_file;
use crate::undo::now::Now;

/// A disk of which one zone is longer than its file; there are zeros behind that.
pub struct LongerView {
    below: Box<dyn Disk>,
    zone: Zone,
    size_bytes: u64,
    /// What stands behind the last whole block of the file.
    tail: Vec<u8>,
    ended: Vec<Completion>,
}

impl LongerView {
    /// `below`, with a zone of at least `size_bytes`; `tail` is what stands in its file behind the
    /// last whole block, which no disk reads.
    #[must_use]
    pub fn new(below: Box<dyn Disk>, zone: Zone, size_bytes: u64, tail: Vec<u8>) -> Self {
        Self { below, zone, size_bytes, tail, ended: Vec::new() }
    }

    /// Reads what there is of a range in whole blocks, and the tail; the rest are zeros.
    fn read_over_the_end(
        &mut self,
        offset_bytes: u64,
        buf: &mut AlignedBuf,
    ) -> Result<(), IoError> {
        let block_bytes = BLOCK_BYTES as u64;
        let there_bytes = self.below.size_bytes(self.zone) / block_bytes * block_bytes;
        let read_bytes = there_bytes.saturating_sub(offset_bytes).min(buf.len() as u64) as usize;
        buf.fill(0);
        if read_bytes > 0 {
            let mut now = Now::of(&mut *self.below, &mut self.ended);
            let read = now.read(self.zone, offset_bytes, read_bytes)?;
            buf[..read_bytes].copy_from_slice(&read);
        }
        if offset_bytes <= there_bytes {
            let to = buf[read_bytes..].iter_mut();
            to.zip(&self.tail).for_each(|(byte, tail)| *byte = *tail);
        }
        Ok(())
    }
}

/// What stands in the file of a zone behind its last whole block.
///
/// # Errors
/// [`FileError`] when it cannot be read.
pub fn zone_tail(dir: &Path, zone_name: &str) -> Result<Vec<u8>, FileError> {
    let path = zone_file(dir, zone_name);
    let read = || -> std::io::Result<Vec<u8>> {
        let file = File::open(&path)?;
        let size_bytes = file.metadata()?.len();
        let mut tail = vec![0; (size_bytes % BLOCK_BYTES as u64) as usize];
        file.read_exact_at(&mut tail, size_bytes / BLOCK_BYTES as u64 * BLOCK_BYTES as u64)?;
        Ok(tail)
    };
    read().map_err(|error| FileError::new("read", &path, error))
}

impl Disk for LongerView {
    fn submit(&mut self, mut io: Io) {
        let Io { zone, offset_bytes, .. } = io;
        let short_bytes = self.below.size_bytes(zone);
        let is_over = |length_bytes: usize| {
            let end_bytes = offset_bytes.saturating_add(length_bytes as u64);
            zone == self.zone && (short_bytes + 1..=self.size_bytes).contains(&end_bytes)
        };
        match &mut io.kind {
            IoKind::Read { buf } if is_over(buf.len()) => {
                let mut bytes = AlignedBuf::new_stale(buf.len());
                let result = self.read_over_the_end(offset_bytes, &mut bytes);
                *buf = bytes;
                self.ended.push(io.complete(result));
            }
            _ => self.below.submit(io),
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.ended);
        self.below.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        if self.ended.is_empty() {
            return self.below.wait(done);
        }
        self.poll(done);
    }

    fn has_ended(&mut self) -> bool {
        !self.ended.is_empty() || self.below.has_ended()
    }

    fn degradation(&self) -> Option<&str> {
        self.below.degradation()
    }

    fn allocation_ahead(&self) -> Option<&AllocationAhead> {
        self.below.allocation_ahead()
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight() + self.ended.len()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        let size_bytes = self.below.size_bytes(zone);
        if zone == self.zone { size_bytes.max(self.size_bytes) } else { size_bytes }
    }
}

#[cfg(test)]
mod tests {
    use format::units::Zone;

    use super::LongerView;
    use crate::io::Disk;
    use crate::memory::MemoryDisk;
    use crate::undo::now::Now;

    #[test]
    fn behind_the_end_of_a_short_zone_there_are_zeros_and_nothing_is_written() {
        let disk = MemoryDisk::new(&[(Zone::Journal, 10_000)], 1);
        (0..10_000).for_each(|at| disk.corrupt(Zone::Journal, at, |byte| *byte = 7));
        let tail = vec![7; 1808];
        let mut view = LongerView::new(Box::new(disk.clone()), Zone::Journal, 16384, tail);
        assert_eq!(view.size_bytes(Zone::Journal), 16384);
        let mut others = Vec::new();
        let mut now = Now::of(&mut view, &mut others);
        let read = now.read(Zone::Journal, 4096, 12288).unwrap();
        assert!(read[..4096 + 1808].iter().all(|&byte| byte == 7));
        assert!(read[4096 + 1808..].iter().all(|&byte| byte == 0));
        let behind = now.read(Zone::Journal, 12288, 4096).unwrap();
        assert!(behind.iter().all(|&byte| byte == 0));
        assert!(now.read(Zone::Journal, 16384, 4096).is_err());
        assert!(now.write(Zone::Journal, 8192, behind.into()).is_err());
        assert_eq!(disk.peek(Zone::Journal, 8192, 1808), [7; 1808]);
    }
}
