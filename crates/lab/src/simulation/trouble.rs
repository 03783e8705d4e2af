//! What can go wrong with a disk while it is used, each begun by a line of a script.
//!
//! ```text
//! trouble unreadable N   reads of one block of a data file fail
//! trouble passing N      reads of one block of some file fail for a while
//! trouble unwritable N   the next write to some file fails, and that place from then on
//! trouble unsyncable N   syncs of some file fail; what they should have kept is lost
//! trouble rot N          one bit of a data file flips at rest
//! trouble pages N        the same of the tables
//! trouble lost N         the next write to tables or data is acknowledged and never done
//! trouble elsewhere N    the same goes to another place of its file
//! trouble slow N         some file's operations are held back for a while
//! trouble lagging N      its writes are, and what it is asked for else goes on
//! ```

use disk::{Completion, Disk, Fault, Io, IoKind, MemoryDisk};
use engine::{Problem, RequestError};
use format::units::{BLOCK_BYTES, Zone};

use crate::dice::mixed;
use crate::range::Range;

/// What goes wrong.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the head of the file says what each is")]
pub enum Trouble {
    Unreadable,
    Passing,
    Unwritable,
    Unsyncable,
    Rot,
    Pages,
    Lost,
    Elsewhere,
    Slow,
    Lagging,
}

/// What was asked that failed.
#[derive(Copy, Clone)]
pub(crate) enum Asked {
    /// What a range holds.
    Read(Range),
    /// A change that reads what is left of a chunk.
    Part,
    /// One that reads nothing; a flush.
    Change,
    /// What tables say, or a scrub.
    Look,
    /// Growth, collection, what is refused.
    Upkeep,
}

/// Whether a store that answers so writes no more.
pub(crate) fn is_of_writes(error: &RequestError) -> bool {
    matches!(error, RequestError::WriteFailed { .. } | RequestError::SyncFailed { .. })
}

/// Whether it is said of a page of a table.
pub(crate) fn is_of_tables(error: &RequestError) -> bool {
    match error {
        RequestError::DamagedTable { .. } => true,
        RequestError::ReadFailed { zone, .. } => zone == "tables",
        _ => false,
    }
}

impl Trouble {
    /// All there are, with their names in scripts.
    pub const ALL: [(Self, &str); 10] = [
        (Self::Unreadable, "unreadable"),
        (Self::Passing, "passing"),
        (Self::Unwritable, "unwritable"),
        (Self::Unsyncable, "unsyncable"),
        (Self::Rot, "rot"),
        (Self::Pages, "pages"),
        (Self::Lost, "lost"),
        (Self::Elsewhere, "elsewhere"),
        (Self::Slow, "slow"),
        (Self::Lagging, "lagging"),
    ];

    /// What scripts call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(trouble, _)| *trouble == self).map_or("", |(_, name)| name)
    }

    /// What scripts call so.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, of)| *of == name).map(|(trouble, _)| *trouble)
    }

    /// Whether a request may fail so from then on: nothing that is wrong with a few frames stops
    /// the writing, and what cannot be written was there to be read.
    pub(crate) fn excuses(self, error: &RequestError, asked: Asked) -> bool {
        use RequestError::{Damaged, ReadFailed, SyncFailed, WriteFailed};
        let reads = matches!(asked, Asked::Read(_) | Asked::Part);
        let writes = !matches!(asked, Asked::Read(_) | Asked::Look);
        let of_data = |zone: &str| zone.starts_with("data");
        match error {
            Damaged { .. } => reads && self.damages(),
            ReadFailed { zone, .. } if of_data(zone) => {
                reads && matches!(self, Self::Unreadable | Self::Passing)
            }
            // What waits for a page stops the writing if it waits for too long.
            ReadFailed { .. } => self == Self::Passing && is_of_tables(error),
            RequestError::DamagedTable { .. } => self.harms_tables(),
            WriteFailed { .. } => writes && matches!(self, Self::Unwritable | Self::Unsyncable),
            SyncFailed { .. } => writes && self == Self::Unsyncable,
            _ => false,
        }
    }

    /// Whether a scrub may find so: where something of the tables is wrong, anything.
    pub(crate) fn may_find(self, problem: &Problem) -> bool {
        let is_of_data = match problem {
            Problem::Unreadable { zone, .. } => zone.starts_with("data"),
            Problem::DamagedFrame { .. }
            | Problem::DamagedCopy { .. }
            | Problem::WrongFingerprint { .. }
            | Problem::Directory { .. }
            | Problem::DirectoryLacks { .. }
            | Problem::UnreadableContainer { .. }
            | Problem::LostChunks { .. } => true,
            _ => false,
        };
        let is_half_done = matches!(problem, Problem::GeometryCopy { .. });
        match self {
            Self::Rot | Self::Unreadable => is_of_data,
            Self::Passing | Self::Pages | Self::Lost | Self::Elsewhere => true,
            // What the device did not take is not there; that it was to be is in memory only.
            Self::Unwritable => {
                is_of_data || matches!(problem, Problem::RootSlot { .. }) || is_half_done
            }
            // The store stopped before it wrote the other copy of its geometry.
            Self::Unsyncable => is_half_done,
            Self::Slow | Self::Lagging => false,
        }
    }

    /// Stored chunks that cannot be read for it, at most: those in one bad block, or none. A page
    /// of a map, or a device that lies, may lose any number.
    pub(crate) fn costs_chunks_max(self, has_twins: bool) -> u64 {
        match self {
            // A frame of a chunk that is half random takes half a block.
            Self::Unreadable if !has_twins => 3,
            Self::Unreadable => BLOCK_BYTES as u64 / TWIN_BYTES,
            Self::Rot => 1,
            Self::Pages | Self::Lost | Self::Elsewhere => u64::MAX,
            _ => 0,
        }
    }

    /// Whether all is done, only later.
    pub(crate) fn delays(self) -> bool {
        matches!(self, Self::Slow | Self::Lagging)
    }

    /// Whether bytes on the medium are wrong for good: a check may find problems, and an opening
    /// may be refused.
    pub(crate) fn damages(self) -> bool {
        matches!(self, Self::Rot | Self::Pages | Self::Lost | Self::Elsewhere)
    }

    /// Whether a frame may be met that cannot be read, nor compared with what comes.
    pub(crate) fn fails_reads(self) -> bool {
        self.damages() || matches!(self, Self::Unreadable | Self::Passing)
    }

    /// Whether it changes what is at rest: it comes right after a close, so that it does not look
    /// like a crash.
    #[must_use]
    pub fn rots(self) -> bool {
        matches!(self, Self::Rot | Self::Pages)
    }

    /// Whether volumes can be changed while it lasts, or tables are in doubt.
    pub(crate) fn harms_tables(self) -> bool {
        matches!(self, Self::Pages | Self::Lost | Self::Elsewhere)
    }

    /// Whether a write that was answered as durable may be lost: the device lied.
    pub(crate) fn lies(self) -> bool {
        matches!(self, Self::Lost | Self::Elsewhere)
    }
}

/// What a tap does to the disk behind it.
#[derive(Default)]
pub(crate) struct Mischief {
    /// Begins with the next operation.
    coming: Option<(Trouble, u64)>,
    /// Strikes the next write that it can.
    armed: Option<(Trouble, u64)>,
    /// Held back until so many polls have passed.
    slow: Option<Slowness>,
    /// Polls until all can be read again.
    passing_polls: u64,
    /// Whether all can be, after some could not.
    pub(crate) has_passed: bool,
    held: Vec<Io>,
    /// Writes that are said to be done.
    claimed: Vec<Completion>,
}

/// What of a file is held back, and for how many polls yet.
#[derive(Copy, Clone)]
struct Slowness {
    zone: Zone,
    writes_only: bool,
    polls: u64,
}

/// Polls for which a slow file's operations are held back, or a block cannot be read.
const SLOW_POLLS: u64 = 60;
/// Bytes of the shortest frame, that of a twin of zeros, in the most compressed form.
const TWIN_BYTES: u64 = 64;
/// Where in a data file trouble strikes: in the first so many bytes, or up to 64 times as many.
const STRUCK_BYTES: u64 = 32 << 10;

impl Mischief {
    pub(crate) fn begin(&mut self, trouble: Trouble, number: u64) {
        self.coming = Some((trouble, number));
    }

    fn data_zone(disk: &MemoryDisk, number: u64) -> Zone {
        let zones = (0..4).map(Zone::Data).filter(|&zone| disk.size_bytes(zone) > 0).count();
        Zone::Data((number % zones.max(1) as u64) as u16)
    }

    fn any_zone(disk: &MemoryDisk, number: u64) -> Zone {
        match number % 4 {
            0 => Zone::Journal,
            1 => Zone::Tables,
            2 => Zone::Superblock,
            _ => Self::data_zone(disk, number / 4),
        }
    }

    /// Begins what is coming.
    pub(crate) fn strike(&mut self, disk: &MemoryDisk) {
        let Some((trouble, number)) = self.coming.take() else { return };
        let struck_bytes = STRUCK_BYTES << (2 * (mixed(number, 6) % 4));
        let offset_bytes = mixed(number, 5) % struck_bytes;
        match trouble {
            Trouble::Unreadable => {
                disk.inject(Fault::Read { zone: Self::data_zone(disk, number), offset_bytes });
            }
            Trouble::Passing => {
                disk.inject(Fault::Read { zone: Self::any_zone(disk, number), offset_bytes });
                self.passing_polls = SLOW_POLLS;
            }
            Trouble::Unsyncable => disk.inject(Fault::Sync { zone: Self::any_zone(disk, number) }),
            Trouble::Rot | Trouble::Pages => {
                let of_data = trouble == Trouble::Rot;
                let zone = if of_data { Self::data_zone(disk, number) } else { Zone::Tables };
                let bit = 1 << (number % 8);
                disk.corrupt(zone, offset_bytes, |byte| *byte ^= bit);
            }
            Trouble::Slow | Trouble::Lagging => {
                let (zone, writes_only) =
                    (Self::any_zone(disk, number), trouble == Trouble::Lagging);
                self.slow = Some(Slowness { zone, writes_only, polls: SLOW_POLLS });
            }
            Trouble::Unwritable | Trouble::Lost | Trouble::Elsewhere => {
                self.armed = Some((trouble, number));
            }
        }
    }

    /// Lets an operation through to the disk, or not.
    pub(crate) fn submit(&mut self, disk: &mut MemoryDisk, mut io: Io) {
        self.strike(disk);
        let is_write = matches!(io.kind, IoKind::Write { .. });
        let is_held = |slow: Slowness| slow.zone == io.zone && (is_write || !slow.writes_only);
        if self.slow.is_some_and(is_held) {
            return self.held.push(io);
        }
        let (zone, offset_bytes) = (io.zone, io.offset_bytes);
        let can_lie = matches!(zone, Zone::Tables | Zone::Data(_));
        match self.armed {
            Some((Trouble::Unwritable, number))
                if is_write && zone == Self::any_zone(disk, number) =>
            {
                self.armed = None;
                disk.inject(Fault::Write { zone, offset_bytes });
            }
            Some((Trouble::Lost, _)) if is_write && can_lie => {
                self.armed = None;
                return self.claimed.push(io.complete(Ok(())));
            }
            Some((Trouble::Elsewhere, number)) if is_write && can_lie => {
                self.armed = None;
                // Back by up to 64 blocks: among what was written before.
                let back = 4096 * (1 + number % 64);
                io.offset_bytes = io.offset_bytes.saturating_sub(back);
            }
            _ => {}
        }
        disk.submit(io);
    }

    /// What it says is done; and what was held back long enough goes on.
    pub(crate) fn poll(&mut self, disk: &mut MemoryDisk, done: &mut Vec<Completion>) {
        self.strike(disk);
        done.append(&mut self.claimed);
        if self.passing_polls > 0 {
            self.passing_polls -= 1;
            if self.passing_polls == 0 {
                self.has_passed = true;
                disk.heal();
            }
        }
        if let Some(Slowness { polls, .. }) = &mut self.slow {
            *polls = polls.saturating_sub(1);
            if *polls == 0 {
                self.slow = None;
                self.held.drain(..).for_each(|io| disk.submit(io));
            }
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.held.len() + self.claimed.len()
    }
}
