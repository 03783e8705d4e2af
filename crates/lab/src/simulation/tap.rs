//! The disk as the engine of the lab sees it: a memory disk with somebody listening.
//!
//! Every operation submitted and every completion goes into a digest, by which two runs of one seed
//! are compared. And at each write the tap can look aside: what would be left if the power went,
//! or the process died, with this write in flight? Such a [`Point`] costs little, since copies of a
//! memory disk share what they have in common.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use disk::{Completion, Disk, Io, IoKind, MemoryDisk};
use format::superblock::ROOT_BLOCKS;
use format::units::{BLOCK_BYTES, Zone};

use crate::dice::{Digest, mixed};
use crate::script::End;
use crate::simulation::trouble::Mischief;

/// Which writes are looked at.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Nothing,
    /// Each.
    Every,
    /// One of so many.
    OneIn(u64),
    /// One of all, each as likely as the others.
    One,
}

/// What a crash at one write would leave.
pub(crate) struct Point {
    /// Which write of this opening, from 1.
    pub(crate) write: u64,
    pub(crate) crash: End,
    /// Effects that were known to be durable at that moment.
    pub(crate) flushed: usize,
    pub(crate) disk: MemoryDisk,
}

/// What the tap has heard.
pub(crate) struct Heard {
    pub(crate) digest: Digest,
    pub(crate) writes: u64,
    pub(crate) points: Vec<Point>,
    /// Effects that were answered as durable; the inbox keeps it.
    pub(crate) flushed: usize,
    /// What goes wrong with the disk.
    pub(crate) mischief: Mischief,
    /// The newest root, and the slot that it was submitted to. None before the first one.
    root: Option<(u64, RootStage)>,
    watch: Watch,
    seed: u64,
}

/// How far a root is on its way, by the tags of its write and of a sync that came after that.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum RootStage {
    Writing(u64),
    Written,
    Syncing(u64),
    Durable,
}

impl RootStage {
    /// The superblock is synced. Others write there, too, and sync what they wrote.
    fn submitted_sync(self, tag: u64) -> Self {
        if self == Self::Written { Self::Syncing(tag) } else { self }
    }

    fn ended(self, tag: u64) -> Self {
        match self {
            Self::Writing(write) if write == tag => Self::Written,
            Self::Syncing(sync) if sync == tag => Self::Durable,
            stage => stage,
        }
    }
}

/// A handle to what a tap has heard.
#[derive(Clone)]
pub(crate) struct Ear(Arc<Mutex<Heard>>);

impl Ear {
    pub(crate) fn new(watch: Watch, seed: u64, flushed: usize) -> Self {
        Self(Arc::new(Mutex::new(Heard {
            digest: Digest::default(),
            writes: 0,
            points: Vec::new(),
            flushed,
            mischief: Mischief::default(),
            root: None,
            watch,
            seed,
        })))
    }

    pub(crate) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_points(&self) -> Vec<Point> {
        std::mem::take(&mut self.heard().points)
    }
}

/// A memory disk that is listened to.
pub(crate) struct Tap {
    disk: MemoryDisk,
    ear: Ear,
}

impl Tap {
    pub(crate) fn new(disk: MemoryDisk, ear: Ear) -> Self {
        Self { disk, ear }
    }
}

impl Disk for Tap {
    fn submit(&mut self, io: Io) {
        let mut heard = self.ear.heard();
        heard.listen(&io);
        let is_write = matches!(io.kind, IoKind::Write { .. });
        // A store that grows writes its geometry to the same zone.
        let in_slot = ROOT_BLOCKS.contains(&(io.offset_bytes / BLOCK_BYTES as u64));
        let is_root = is_write && io.zone == Zone::Superblock && in_slot;
        let root = is_root.then_some(io.offset_bytes);
        if let Some(slot) = root {
            heard.root = Some((slot, RootStage::Writing(io.tag)));
        }
        if io.zone == Zone::Superblock && matches!(io.kind, IoKind::Sync) {
            heard.root = heard.root.map(|(slot, stage)| (slot, stage.submitted_sync(io.tag)));
        }
        heard.mischief.submit(&mut self.disk, io);
        if is_write {
            heard.writes += 1;
            heard.look(&self.disk, root);
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        let before = done.len();
        let mut heard = self.ear.heard();
        heard.mischief.poll(&mut self.disk, done);
        self.disk.poll(done);
        heard.listen_to_ends(&done[before..]);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        let before = done.len();
        self.disk.wait(done);
        self.ear.heard().listen_to_ends(&done[before..]);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.ear.heard().mischief.in_flight()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}

impl Heard {
    fn listen(&mut self, io: &Io) {
        self.digest.add(mixed(zone_number(io.zone), io.offset_bytes));
        match &io.kind {
            IoKind::Read { buf } => self.digest.add(mixed(1, buf.len() as u64)),
            IoKind::Write { buf, .. } => self.digest.add_bytes(buf),
            IoKind::Sync => self.digest.add(3),
        }
    }

    fn listen_to_ends(&mut self, ends: &[Completion]) {
        for end in ends {
            if end.zone == Zone::Superblock && end.result.is_ok() {
                self.root = self.root.map(|(slot, stage)| (slot, stage.ended(end.tag)));
            }
            self.digest.add(mixed(end.tag, u64::from(end.result.is_ok())));
        }
    }

    /// A number that follows from what it was made with.
    pub(crate) fn number(&self) -> u64 {
        mixed(self.seed, 1 << 40) >> 32
    }

    /// Nothing more is looked at.
    pub(crate) fn stop(&mut self) {
        self.watch = Watch::Nothing;
    }

    /// The slot of the newest root, if that is durable: the older one stands for it.
    pub(crate) fn newest_slot(&self) -> Option<u64> {
        self.root.filter(|(_, stage)| *stage == RootStage::Durable).map(|(slot, _)| slot)
    }

    /// The root slot that is lost with a crash, if one is: the one that is being written, for a
    /// sector may come out torn after all; or, once the newest root is durable, either.
    fn lost_slot(&self, number: u64, root: Option<u64>) -> Option<u64> {
        let durable = self.newest_slot().is_some();
        match root {
            Some(slot) => number.is_multiple_of(2).then_some(slot),
            None if durable && number.is_multiple_of(8) => Some(4096 << (number >> 3 & 1)),
            None => None,
        }
    }

    /// Looks aside, if this write is to be looked at.
    fn look(&mut self, disk: &MemoryDisk, root: Option<u64>) {
        let number = mixed(self.seed, self.writes);
        match self.watch {
            Watch::Nothing => return,
            Watch::Every => {}
            Watch::OneIn(of) if (number >> 32).is_multiple_of(of.max(1)) => {}
            Watch::OneIn(_) => return,
            Watch::One if (number >> 32).is_multiple_of(self.writes) => self.points.clear(),
            Watch::One => return,
        }
        let crash = End::of_number(number);
        if let Some(left) = leave(disk, crash) {
            if let Some(slot) = self.lost_slot(number >> 16, root) {
                lose_slot(&left, slot);
            }
            self.points.push(Point {
                write: self.writes,
                crash,
                flushed: self.flushed,
                disk: left,
            });
        }
    }
}

/// The disk that a crash would leave; None for a close, which is none.
pub(crate) fn leave(disk: &MemoryDisk, crash: End) -> Option<MemoryDisk> {
    match crash {
        End::Power(loss, seed) => Some(disk.left_by_power_loss(seed, loss)),
        End::Kill(seed) => Some(disk.left_by_kill(seed)),
        End::Close | End::CloseNow => None,
    }
}

/// A root slot comes out damaged; one that is damaged stays so.
pub(crate) fn lose_slot(disk: &MemoryDisk, slot: u64) {
    (16..24).for_each(|at| disk.corrupt(Zone::Superblock, slot + at, |byte| *byte = 0xff));
}

fn zone_number(zone: Zone) -> u64 {
    match zone {
        Zone::Superblock => 0,
        Zone::Journal => 1,
        Zone::Tables => 2,
        Zone::Data(number) => 3 + u64::from(number),
    }
}
