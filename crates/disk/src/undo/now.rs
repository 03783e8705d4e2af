//! Operations on a disk that are waited for, one at a time, beside those of its owner.

use format::checksum::crc32c_append;
use format::units::Zone;

use crate::buffer::{AlignedBuf, SharedBuf};
use crate::error::IoError;
use crate::io::{Completion, Disk, Io, IoKind};

/// Read at once, to learn what a zone holds.
const PIECE_BYTES: u64 = 4 << 20;
/// Of these operations; an owner counts its own from below.
const TAG: u64 = u64::MAX;

/// A disk, and where completions go that are its owner's.
pub(super) struct Now<'a> {
    disk: &'a mut dyn Disk,
    others: &'a mut Vec<Completion>,
}

impl<'a> Now<'a> {
    pub(super) fn of(disk: &'a mut dyn Disk, others: &'a mut Vec<Completion>) -> Self {
        Self { disk, others }
    }

    pub(super) fn read(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        length_bytes: usize,
    ) -> Result<AlignedBuf, IoError> {
        let buf = AlignedBuf::new_stale(length_bytes);
        let read = self.wait_for(zone, offset_bytes, IoKind::Read { buf })?;
        read.ok_or(IoError::lost(zone, offset_bytes))
    }

    pub(super) fn write(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        buf: SharedBuf,
    ) -> Result<(), IoError> {
        let kind = IoKind::Write { buf, durable: false };
        self.wait_for(zone, offset_bytes, kind).map(drop)
    }

    pub(super) fn sync(&mut self, zone: Zone) -> Result<(), IoError> {
        self.wait_for(zone, 0, IoKind::Sync).map(drop)
    }

    /// The checksum of all of a zone, as `lay_over` changes the bytes from an offset on.
    pub(super) fn checksum(
        &mut self,
        zone: Zone,
        mut lay_over: impl FnMut(u64, &mut [u8]),
    ) -> Result<u32, IoError> {
        let (size_bytes, mut crc) = (self.disk.size_bytes(zone), 0);
        for at_bytes in (0..size_bytes).step_by(PIECE_BYTES as usize) {
            let length_bytes = PIECE_BYTES.min(size_bytes - at_bytes) as usize;
            let mut piece = self.read(zone, at_bytes, length_bytes)?;
            lay_over(at_bytes, &mut piece);
            crc = crc32c_append(crc, &piece);
        }
        Ok(crc)
    }

    fn wait_for(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        kind: IoKind,
    ) -> Result<Option<AlignedBuf>, IoError> {
        self.disk.submit(Io { zone, offset_bytes, kind, tag: TAG });
        let mut done = Vec::new();
        while self.disk.in_flight() > 0 {
            self.disk.wait(&mut done);
            let mut own = None;
            for completion in done.drain(..) {
                match completion.tag {
                    TAG => own = Some(completion),
                    _ => self.others.push(completion),
                }
            }
            if let Some(Completion { result, buf, .. }) = own {
                return result.map(|()| buf);
            }
        }
        Err(IoError::lost(zone, offset_bytes))
    }
}
