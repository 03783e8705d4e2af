//! The container being collected.

use disk::AlignedBuf;
use format::directory::DirectoryEntry;
use format::units::ContainerId;

/// Entries of one slice, and bytes of their frames: a fraction of the reserved containers.
const SLICE_ENTRIES: usize = 128;
const SLICE_BYTES: u64 = 1 << 20;
/// What a moved chunk takes beside its frame, at most.
const ENTRY_BYTES: u64 = 64;

/// The container being collected.
pub(crate) struct Victim {
    pub(crate) id: ContainerId,
    pub(crate) image: Option<AlignedBuf>,
    pub(crate) entries: Vec<DirectoryEntry>,
    pub(crate) cursor: usize,
    pub(crate) damaged: bool,
    /// Its directory is damaged: the entries are made from what frames are there.
    pub(crate) scanned: bool,
}

/// The container being collected.
#[derive(Default)]
pub(crate) struct Collection {
    pub(crate) victim: Option<Victim>,
}

impl Victim {
    /// A container that is to be read.
    pub(crate) fn new(id: ContainerId) -> Self {
        let (image, entries) = (None, Vec::new());
        Self { id, image, entries, cursor: 0, damaged: false, scanned: false }
    }

    /// The end of the slice that begins at the cursor.
    pub(crate) fn slice_end(&self) -> usize {
        let mut bytes = 0;
        let fits = |entry: &&DirectoryEntry| {
            bytes += u64::from(entry.length_bytes);
            bytes <= SLICE_BYTES
        };
        let slice = self.entries.iter().skip(self.cursor).take(SLICE_ENTRIES);
        self.cursor + slice.take_while(fits).count()
    }

    /// Room that what is left of it takes at most.
    pub(crate) fn rest_bytes(&self) -> u64 {
        room_of(self.entries.get(self.cursor..).unwrap_or_default())
    }
}

/// Room in containers that these chunks take at most when all are moved.
pub(crate) fn room_of(entries: &[DirectoryEntry]) -> u64 {
    entries.iter().map(|entry| u64::from(entry.length_bytes) + ENTRY_BYTES).sum()
}

impl Collection {
    pub(crate) fn is_busy(&self) -> bool {
        self.victim.is_some()
    }
}
