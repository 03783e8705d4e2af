//! Frames by address, for doors: what is read again and again is answered without the core.
//!
//! ```text
//! volume, LBA --> address read before ---------------------------> frame
//!        '------> leaf of its map ([`leaves`]) --PBN--> [`chunks`] ---'
//! ```
//!
//! A read that the core answered from a frame in memory leaves that frame here, under its volume
//! and LBA, and one of a hole that it is a hole. The next read of the LBA is put together on the
//! door's own thread, which saves the two threads that would be woken, and the core's time
//! (decisions/029). The frame is left under its PBN as well, and so are copies of leaves in which
//! addresses are read: so a door finds the frame of a chunk that is hot, although nobody has read
//! it by this address yet, which is how machines start that are clones of one image
//! (decisions/038). Only a weak hand is kept on a frame: when the cache of frames lets it go, it is
//! gone here, too.
//!
//! Invariant: **what a door takes from here is what the core would answer now.** Changes of volumes
//! are numbered, in one count. A change of what an address holds takes the next number and
//! *stamps* the address with it, before the change is acknowledged:
//!
//! * a write that is acknowledged at the door, under the lock that gives it its place in the queue;
//! * any other write, an unmap, as it enters the write buffer;
//! * what changes a volume as a whole (rollback, resizing, deletion), as it is applied: that raises
//!   the *floor*, a stamp of all addresses.
//!
//! A read notes the count before it is queued. What it finds is let in, and an entry is handed out,
//! only while the address has no younger stamp than that. So if a read came to the queue before the
//! change, the change's number is higher than what it noted, and its frame is refused or not given
//! out any more; if it came after, the core answers it from the write buffer or from the new map.
//!
//! A read of several chunks takes one after the other, and others write meanwhile. So when it has
//! them all it looks at all stamps once more: what nothing was changed of until then held at that
//! moment, all together.
//!
//! A leaf is copied as of such a count, too. Whatever the core had taken by then is in it, or was
//! in the write buffer and is left out. A name that was found in a copy may be given to another
//! chunk before its frame is looked for; so the stamp is looked at after that. A name changes hands
//! only after the last address that had it was stamped.
//!
//! Addresses share entries and stamps by their number modulo the size, as a processor's cache does:
//! neighbours lie next to each other, and a stamp for another address costs a hit, never a promise.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use format::page::Page;
use format::units::{FrameCheck, Lba, Pbn, VolumeId};
use mutants::mutant;

use crate::door::outcome::{FrameBytes, Piece, PiecePart};
use crate::read::frame_cache::HeldFrame;

mod chunks;
mod leaves;

use chunks::Chunks;
pub(crate) use leaves::SlotSet;
use leaves::{LeafOf, Leaves, start_of};

/// What an entry and its stamp take.
const ENTRY_BYTES: usize = size_of::<Mutex<Entry>>() + size_of::<AtomicU64>();
/// Longer reads go to the core, and are put together beside the next request.
pub(crate) const READ_BYTES_MAX: u64 = 32 << 10;
/// Chunks that such a read touches, of the smallest.
const PARTS_MAX: usize = READ_BYTES_MAX as usize / 4096 + 1;
/// More chunks than this are not stamped one by one.
const STAMPS_MAX: u64 = 1024;

/// What an address was read from.
#[derive(Default)]
enum Found {
    /// Nothing is mapped there.
    #[default]
    Zeros,
    Frame {
        frame: Weak<HeldFrame>,
        pbn: Pbn,
        check: FrameCheck,
    },
}

/// What the last read of an address found.
#[derive(Default)]
struct Entry {
    of: Option<(VolumeId, Lba)>,
    /// The count of changes when that read was queued.
    as_of: u64,
    found: Found,
}

/// Frames by address.
pub(crate) struct Lookaside {
    entries: Box<[Mutex<Entry>]>,
    /// The newest change of each entry's addresses.
    stamps: Box<[AtomicU64]>,
    changes: AtomicU64,
    floor: AtomicU64,
    leaves: Leaves,
    frames: Chunks,
    chunk_bytes: u64,
    /// Reads that doors answered, their chunks, and their bytes.
    pub(crate) reads: AtomicU64,
    pub(crate) chunks: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl Lookaside {
    /// Half of `memory_bytes` for addresses, the rest for leaves and names.
    pub(crate) fn new(memory_bytes: u64, chunk_bytes: u32) -> Self {
        let entries = 1 << (memory_bytes / 2 / ENTRY_BYTES as u64).max(1).ilog2();
        Self {
            entries: (0..entries).map(|_| Mutex::default()).collect(),
            stamps: (0..entries).map(|_| AtomicU64::new(0)).collect(),
            changes: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            leaves: Leaves::new(memory_bytes / 4),
            frames: Chunks::new(memory_bytes / 4),
            chunk_bytes: chunk_bytes.into(),
            reads: AtomicU64::new(0),
            chunks: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Memory that it takes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let addresses_bytes = (self.entries.len() * ENTRY_BYTES) as u64;
        addresses_bytes + self.leaves.resident_bytes() + self.frames.resident_bytes()
    }

    /// The count of changes, for a read that is about to be queued.
    pub(crate) fn as_of(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The chunks that a range of bytes touches are changed.
    pub(crate) fn stamp(&self, volume: VolumeId, range_bytes: Range<u64>) {
        if range_bytes.is_empty() || mutant!(ForgetsStamp) {
            return;
        }
        let number = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
        let first = range_bytes.start / self.chunk_bytes;
        let end = range_bytes.end.div_ceil(self.chunk_bytes);
        if end - first > STAMPS_MAX {
            self.floor.fetch_max(number, Ordering::AcqRel);
            return;
        }
        for lba in first..end {
            self.stamps[self.place(volume, Lba(lba))].fetch_max(number, Ordering::AcqRel);
        }
    }

    /// Volumes are changed as a whole.
    pub(crate) fn stamp_all(&self) {
        let number = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
        self.floor.fetch_max(number, Ordering::AcqRel);
    }

    /// A read that noted `as_of` found this frame at the address.
    pub(crate) fn fill(
        &self,
        address: (VolumeId, Lba),
        as_of: u64,
        (pbn, check): (Pbn, FrameCheck),
        frame: &Arc<HeldFrame>,
    ) {
        self.fill_name((pbn, check), frame);
        self.enter(address, as_of, || Found::Frame { frame: Arc::downgrade(frame), pbn, check });
    }

    /// This frame is held of the chunk that has the name now.
    pub(crate) fn fill_name(&self, (pbn, check): (Pbn, FrameCheck), frame: &Arc<HeldFrame>) {
        self.frames.fill(pbn, check, frame);
    }

    /// Whether a leaf should be copied, in which the core has answered a read.
    pub(crate) fn leaf_is_due(&self, of: LeafOf) -> bool {
        self.leaves.is_due(of)
    }

    /// Copies a leaf for a read that noted `as_of`, but for those slots that the write buffer
    /// knows better.
    pub(crate) fn fill_leaf(&self, of: LeafOf, as_of: u64, page: &Page, left_out: SlotSet) {
        self.leaves.fill(of, as_of, page, left_out);
    }

    /// Nothing has this name any more.
    pub(crate) fn forget(&self, pbn: Pbn) {
        self.frames.forget(pbn);
    }

    /// A read that noted `as_of` found that nothing is mapped at the address.
    pub(crate) fn fill_zeros(&self, address: (VolumeId, Lba), as_of: u64) {
        self.enter(address, as_of, || Found::Zeros);
    }

    fn enter(&self, (volume, lba): (VolumeId, Lba), as_of: u64, found: impl FnOnce() -> Found) {
        let place = self.place(volume, lba);
        if self.is_current(place, as_of) {
            *self.lock(place) = Entry { of: Some((volume, lba)), as_of, found: found() };
        }
    }

    /// The parts of a read, if all its frames are here.
    pub(crate) fn read(
        &self,
        volume: VolumeId,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Option<Vec<PiecePart>> {
        let end_bytes = offset_bytes + length_bytes;
        let (first, end) = (offset_bytes / self.chunk_bytes, end_bytes.div_ceil(self.chunk_bytes));
        if length_bytes > READ_BYTES_MAX || end - first > PARTS_MAX as u64 {
            return None;
        }
        let mut counts = [0; PARTS_MAX];
        let part = |(lba, count): (u64, &mut u64)| {
            let start_bytes = offset_bytes.max(lba * self.chunk_bytes);
            let stop_bytes = end_bytes.min((lba + 1) * self.chunk_bytes);
            let (piece, as_of) = self.piece(volume, Lba(lba))?;
            *count = as_of;
            Some(PiecePart {
                piece,
                lba,
                skip_bytes: (start_bytes % self.chunk_bytes) as u32,
                take_bytes: (stop_bytes - start_bytes) as u32,
            })
        };
        let parts: Vec<_> = (first..end).zip(&mut counts).map(part).collect::<Option<_>>()?;
        let stays = |(lba, &as_of)| self.is_current(self.place(volume, Lba(lba)), as_of);
        if parts.len() > 1 && !(first..end).zip(&counts).all(stays) {
            return None;
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.chunks.fetch_add(parts.len() as u64, Ordering::Relaxed);
        self.bytes.fetch_add(length_bytes, Ordering::Relaxed);
        Some(parts)
    }

    /// What an address holds, and the count that it is as of.
    fn piece(&self, volume: VolumeId, lba: Lba) -> Option<(Piece, u64)> {
        let place = self.place(volume, lba);
        self.by_address(place, volume, lba).or_else(|| self.by_name(place, volume, lba))
    }

    fn by_address(&self, place: usize, volume: VolumeId, lba: Lba) -> Option<(Piece, u64)> {
        let entry = self.lock(place);
        if entry.of != Some((volume, lba)) || !self.is_current(place, entry.as_of) {
            return None;
        }
        let as_of = entry.as_of;
        let Found::Frame { frame, pbn, check } = &entry.found else {
            return Some((Piece::Zeros, as_of));
        };
        let (frame, pbn, check) = (frame.upgrade()?, *pbn, *check);
        drop(entry);
        frame.mark_wanted();
        Some((Piece::Frame { bytes: FrameBytes::Held(frame), pbn, check }, as_of))
    }

    fn by_name(&self, place: usize, volume: VolumeId, lba: Lba) -> Option<(Piece, u64)> {
        let (pbn, as_of) = self.leaves.name(volume, lba)?;
        let piece = if pbn.is_none() {
            Piece::Zeros
        } else {
            let (frame, check) = self.frames.get(pbn)?;
            frame.mark_wanted();
            Piece::Frame { bytes: FrameBytes::Held(frame), pbn, check }
        };
        self.is_current(place, as_of).then_some((piece, as_of))
    }

    /// Whether nothing was changed there since the count was noted.
    fn is_current(&self, place: usize, as_of: u64) -> bool {
        self.stamps[place].load(Ordering::Acquire) <= as_of
            && self.floor.load(Ordering::Acquire) <= as_of
    }

    fn lock(&self, place: usize) -> std::sync::MutexGuard<'_, Entry> {
        self.entries[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Neighbours are next to each other; volumes begin far apart.
    fn place(&self, volume: VolumeId, lba: Lba) -> usize {
        (start_of(volume).wrapping_add(lba.0) as usize) & (self.entries.len() - 1)
    }
}

#[cfg(test)]
mod tests;
