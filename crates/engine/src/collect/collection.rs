//! The container being collected, and how fast.
//!
//! Collection is paid for by what clients store: for each of their bytes it may look at so many of
//! its victims'. How many follows from the containers that are still free, by a hyperbola: one
//! when there are just few enough for it to begin, and beyond all bounds where it must hurry. So it
//! settles by itself where what it frees equals what clients take, whatever share of its victims
//! lives, and clients see its load grow, not begin.

use std::collections::VecDeque;
use std::sync::Arc;

use containers::{SLICE_BYTES, SLICE_ENTRIES};
use disk::AlignedBuf;
use format::directory::DirectoryEntry;
use format::units::{CONTAINER_BYTES, Compression, ContainerId};
use reduce::ChunkBuf;
use tables::PinSet;

use crate::collect::step::{CollectPosition, CollectRequest, CollectStep};
use crate::door::done::Done;
use crate::placement::VictimRoom;

/// Share of all containers that stay free while clients write, and its bounds: enough for what
/// they have on its way, no more, since all that is kept free is taken from what dies by itself.
const RESERVE_SHARE: u64 = 256;
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
    pub(crate) sequence: u32,
    pub(crate) known: Known,
    /// So much is read at a time.
    pub(crate) piece_bytes: usize,
    /// What has been read of it so far, and how much that is.
    filling: Option<AlignedBuf>,
    pub(crate) filled_bytes: usize,
    pub(crate) entries: Vec<DirectoryEntry>,
    pub(crate) cursor: usize,
    pub(crate) damaged: bool,
    /// What lives in it is known to be sound, or there is room to move it in vain.
    pub(crate) verified: bool,
    /// That room.
    pub(crate) at_risk_bytes: u64,
    /// Its directory is damaged: the entries are made from what frames are there.
    pub(crate) scanned: bool,
    /// And there is more than these frames, nobody knows what.
    pub(crate) hides_frames: bool,
    /// Who asked for it, if somebody did.
    pub(crate) order: Option<Order>,
    pub(crate) renewed: Renewed,
    /// Frames that lived, and what they take now.
    pub(crate) moved_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// What has been read of a victim.
pub(crate) enum Known {
    Nothing,
    /// Its directory: enough while nothing in it lives.
    Directory,
    All(Arc<AlignedBuf>),
}

impl Known {
    /// The container, if all of it has been read.
    pub(crate) fn image(&self) -> Option<Arc<AlignedBuf>> {
        match self {
            Self::All(image) => Some(Arc::clone(image)),
            Self::Nothing | Self::Directory => None,
        }
    }

    /// Its bytes; empty if not all have been read.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::All(image) => image,
            Self::Nothing | Self::Directory => &[],
        }
    }
}

/// A step that somebody asked for.
pub(crate) struct Order {
    pub(crate) position: CollectPosition,
    pub(crate) recompress: Option<Compression>,
    /// The data zone that is to be emptied, if that is what it is for.
    pub(crate) zone: Option<u16>,
    pub(crate) done: Done<CollectStep>,
}

/// The frames of the next slice, made anew.
#[derive(Default)]
pub(crate) enum Renewed {
    #[default]
    No,
    /// By a worker.
    Asked,
    /// One after the other, and where each ends; one without a length stays as it is.
    Here { bytes: ChunkBuf, ends: Vec<u32> },
}

/// The container being collected, and those that somebody asks for.
#[derive(Default)]
pub(crate) struct Collection {
    pub(crate) victim: Option<Victim>,
    pub(crate) pace: Pace,
    pub(crate) orders: VecDeque<(CollectRequest, Done<CollectStep>)>,
    /// Data zones of which a container is to be collected.
    pub(crate) evacuations: VecDeque<(u16, Done<CollectStep>)>,
    /// Pages that say what becomes of the next slice.
    pub(crate) pins: PinSet,
}

impl Order {
    /// A step by which this data zone becomes emptier.
    pub(crate) fn of_zone(zone: u16, done: Done<CollectStep>) -> Self {
        let position = CollectPosition { from_sequence: 0, until_sequence: 0 };
        Self { position, recompress: None, zone: Some(zone), done }
    }
}

impl Victim {
    /// A container that is to be read.
    pub(crate) fn new(
        id: ContainerId,
        sequence: u32,
        order: Option<Order>,
        piece_bytes: usize,
    ) -> Self {
        Self {
            id,
            sequence,
            known: Known::Nothing,
            piece_bytes,
            filling: None,
            filled_bytes: 0,
            entries: Vec::new(),
            cursor: 0,
            damaged: false,
            verified: false,
            at_risk_bytes: 0,
            scanned: false,
            hides_frames: false,
            order,
            renewed: Renewed::No,
            moved_bytes: 0,
            written_bytes: 0,
        }
    }

    /// What its frames are to be compressed anew with, if that was asked for.
    pub(crate) fn recompresses(&self) -> Option<Compression> {
        self.order.as_ref()?.recompress
    }

    /// Takes the next piece; all of the container, if that was the last.
    pub(crate) fn take_piece(&mut self, piece: AlignedBuf) -> Option<AlignedBuf> {
        let whole_bytes = CONTAINER_BYTES as usize;
        if piece.len() == whole_bytes {
            return Some(piece);
        }
        let filling = self.filling.get_or_insert_with(|| AlignedBuf::new_stale(whole_bytes));
        let end = self.filled_bytes + piece.len();
        if let Some(room) = filling.get_mut(self.filled_bytes..end) {
            room.copy_from_slice(&piece);
        }
        self.filled_bytes = end;
        if end >= whole_bytes { self.filling.take() } else { None }
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

impl Renewed {
    /// The new frame of an entry of the slice, if it has one.
    pub(crate) fn frame(&self, at: usize) -> Option<&[u8]> {
        let Self::Here { bytes, ends } = self else { return None };
        let start = if at == 0 { 0 } else { *ends.get(at - 1)? as usize };
        let frame = bytes.bytes().get(start..*ends.get(at)? as usize)?;
        Some(frame).filter(|frame| !frame.is_empty())
    }
}

impl Collection {
    /// The victim, and the room that it may still take in vain, if something in it is damaged.
    pub(crate) fn victim_room(&self) -> Option<VictimRoom> {
        self.victim.as_ref().map(|victim| VictimRoom {
            id: victim.id,
            at_risk_bytes: victim.at_risk_bytes.saturating_sub(victim.written_bytes),
        })
    }

    /// Whether a data zone is being emptied: a step of that waits for its container.
    pub(crate) fn evacuates(&self) -> bool {
        !self.evacuations.is_empty()
    }
}
