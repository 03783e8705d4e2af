//! The container being collected, and how fast.
//!
//! Collection is paid for by what clients store: for each of their bytes it may look at so many of
//! its victims'. How many follows from the containers that are still free, by a hyperbola: one
//! when there are just few enough for it to begin, and beyond all bounds where it must hurry. So it
//! settles by itself where what it frees equals what clients take, whatever share of its victims
//! lives, and clients see its load grow, not begin.

use disk::AlignedBuf;
use format::directory::DirectoryEntry;
use format::units::ContainerId;

/// Entries of one slice, and bytes of their frames: a fraction of the reserved containers.
const SLICE_ENTRIES: usize = 128;
const SLICE_BYTES: u64 = 1 << 20;
/// What a moved chunk takes beside its frame, at most.
const ENTRY_BYTES: u64 = 64;
/// Share of all containers that stay free while clients write, and its bounds: enough for what
/// they have on its way, no more, since all that is kept free is taken from what dies by itself.
const RESERVE_SHARE: u64 = 64;
const RESERVE_MIN: u64 = 6;
const RESERVE_MAX: u64 = 64;
/// What may be saved up while there is nothing to collect.
const CREDIT_BYTES_MAX: i64 = SLICE_BYTES as i64;

/// Free containers at which collection begins, and at which all else waits for it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Reserve {
    pub(crate) begin: u64,
    pub(crate) hurry: u64,
}

impl Reserve {
    pub(crate) fn of(containers: u64) -> Self {
        let hurry = (containers / RESERVE_SHARE).clamp(RESERVE_MIN, RESERVE_MAX);
        Self { begin: 2 * hurry, hurry }
    }
}

/// How much of the victims may be looked at now.
#[derive(Default)]
pub(crate) struct Pace {
    /// Below zero: overdrawn by the rest of a slice.
    credit_bytes: i64,
    /// What clients had stored when this was looked at last.
    seen_bytes: u64,
}

impl Pace {
    /// Clients have stored so much in all, and so many containers are free.
    pub(crate) fn earn(&mut self, stored_bytes: u64, free: u64, reserve: Reserve) {
        let bytes = stored_bytes - std::mem::replace(&mut self.seen_bytes, stored_bytes);
        let left = free.saturating_sub(reserve.hurry).max(1);
        let earned_bytes = bytes * (reserve.begin - reserve.hurry) / left;
        self.credit_bytes = (self.credit_bytes + earned_bytes as i64).min(CREDIT_BYTES_MAX);
    }

    pub(crate) fn allows(&self) -> bool {
        self.credit_bytes > 0
    }

    pub(crate) fn spend(&mut self, bytes: u64) {
        self.credit_bytes -= bytes as i64;
    }
}

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
    pub(crate) pace: Pace,
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
