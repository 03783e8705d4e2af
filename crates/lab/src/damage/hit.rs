//! One hit: where it falls, what it does to the bytes, and what they meant.
//!
//! A run of single hits flips, zeroes and cuts. Where two places are hit there are also blocks of
//! an older write, blocks that cannot be read, and two blocks that changed places.

use std::ops::Range;

use disk::{AlignedBuf, Completion, Disk, Fault, Io, IoError, IoKind, MemoryDisk, ZoneName};
use engine::{Structure, Zone};

use crate::damage::store::Sample;
use crate::dice::Dice;

const BLOCK_BYTES: u64 = 4096;
const BLOCK: usize = BLOCK_BYTES as usize;
/// Lengths of wide hits.
const WIDE_BYTES: [(&str, u64); 4] =
    [("4 KiB", 4 << 10), ("64 KiB", 64 << 10), ("256 KiB", 256 << 10), ("1 MiB", 1 << 20)];

/// What happens to the bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// Bits of them are flipped.
    Flip,
    /// They are zeros.
    Zero,
    /// The file ends there.
    Truncate,
    /// Its blocks are as they were at an earlier moment.
    Older,
    /// Its blocks fail their reads.
    Unreadable,
    /// Its block and another one have changed places.
    Swap,
    /// The whole file is as it was at an earlier moment.
    OlderZone,
}

/// Damage to a store.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) blow: Blow,
    pub(crate) zone: Zone,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    /// The structure aimed at.
    pub(crate) aim: String,
    /// The block with which it changed places.
    other_bytes: u64,
    seed: u64,
}

/// What the bytes meant that are not what they were.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// Structures that something durable proves.
    pub(crate) proven: bool,
    /// What the last sync before a crash wrote.
    pub(crate) unproven: bool,
}

impl Hit {
    /// A hit at random: on a structure of a kind, at its start, its end or inside, or anywhere.
    pub(crate) fn choose(sample: &Sample, dice: &mut Dice) -> Self {
        let mut kinds: Vec<&str> =
            sample.structures.iter().map(|structure| &structure.kind[..]).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let seed = dice.roll();
        let blow = match dice.below(24) {
            0 | 1 => Blow::Truncate,
            2..8 => Blow::Zero,
            8 | 9 => Blow::Older,
            10 | 11 => Blow::Swap,
            12 => Blow::OlderZone,
            _ => Blow::Flip,
        };
        if dice.once_in(10) {
            return Self::anywhere(sample, dice, blow, seed);
        }
        let kind = kinds[dice.below(kinds.len() as u64) as usize];
        let of_kind: Vec<&Structure> =
            sample.structures.iter().filter(|structure| structure.kind == kind).collect();
        let aim = of_kind[dice.below(of_kind.len() as u64) as usize];
        if matches!(blow, Blow::Older | Blow::Swap | Blow::OlderZone) {
            return Self::on(aim, &of_kind, blow, dice);
        }
        let (start, length) = (aim.offset_bytes, aim.length_bytes);
        let span = 1 + match dice.below(3) {
            0 => 0,
            1 => dice.below(64),
            _ => dice.below(length * 2),
        };
        let offset_bytes = match dice.below(4) {
            0 => start,
            1 => (start + length).saturating_sub(span),
            2 => start.saturating_sub(span / 2),
            _ => start + dice.below(length),
        };
        let size_bytes = zone_bytes(sample, aim.zone);
        let length_bytes = span.min(size_bytes - offset_bytes);
        let (zone, aim, other_bytes) = (aim.zone, kind.to_owned(), 0);
        Self { blow, zone, offset_bytes, length_bytes, aim, other_bytes, seed }
    }

    /// A contiguous hit of 4 KiB to 1 MiB on one file, in whole blocks: a run of bad sectors, or a
    /// write of somebody else's. One in four begins where the file does.
    pub(crate) fn wide(sample: &Sample, dice: &mut Dice) -> Self {
        let seed = dice.roll();
        let blow = if dice.once_in(2) { Blow::Zero } else { Blow::Flip };
        let (zone, size_bytes) = sample.zones[dice.below(sample.zones.len() as u64) as usize];
        let (class, length_bytes) = WIDE_BYTES[dice.below(WIDE_BYTES.len() as u64) as usize];
        let blocks = size_bytes / BLOCK_BYTES;
        let offset_bytes = if dice.once_in(4) { 0 } else { dice.below(blocks) * BLOCK_BYTES };
        let length_bytes = length_bytes.min(size_bytes - offset_bytes);
        let (aim, other_bytes) = (format!("{}, {class}", ZoneName(zone)), 0);
        Self { blow, zone, offset_bytes, length_bytes, aim, other_bytes, seed }
    }

    /// A hit on a structure, which damages it wherever that changes a byte; `like` has others of
    /// its kind.
    pub(crate) fn on(aim: &Structure, like: &[&Structure], blow: Blow, dice: &mut Dice) -> Self {
        let seed = dice.roll();
        let (start, length) = (aim.offset_bytes, aim.length_bytes);
        let in_file = |other: &&&Structure| other.zone == aim.zone && other.offset_bytes != start;
        let others: Vec<_> = like.iter().filter(in_file).collect();
        let (offset_bytes, length_bytes) = match blow {
            Blow::Flip => {
                let at = start + dice.below(length);
                (at, (1 + dice.below(64)).min(start + length - at))
            }
            Blow::Zero | Blow::Truncate if dice.once_in(2) => (start, length),
            Blow::Zero | Blow::Truncate => {
                let at = start + dice.below(length);
                (at, start + length - at)
            }
            Blow::Older | Blow::Unreadable | Blow::Swap | Blow::OlderZone => {
                ((start + dice.below(length)) / BLOCK_BYTES * BLOCK_BYTES, BLOCK_BYTES)
            }
        };
        let other_bytes = match others.is_empty() {
            true => offset_bytes,
            false => others[dice.below(others.len() as u64) as usize].offset_bytes,
        };
        let other_bytes = other_bytes / BLOCK_BYTES * BLOCK_BYTES;
        let (zone, aim) = (aim.zone, aim.kind.clone());
        Self { blow, zone, offset_bytes, length_bytes, aim, other_bytes, seed }
    }

    fn anywhere(sample: &Sample, dice: &mut Dice, blow: Blow, seed: u64) -> Self {
        let (zone, size_bytes) = sample.zones[dice.below(sample.zones.len() as u64) as usize];
        let offset_bytes = dice.below(size_bytes);
        let length_bytes = (1 + dice.below(64 << 10)).min(size_bytes - offset_bytes);
        let (aim, other_bytes) = ("anywhere".to_owned(), 0);
        Self { blow, zone, offset_bytes, length_bytes, aim, other_bytes, seed }
    }

    /// Bytes that are damaged.
    fn range(&self, sample: &Sample) -> Range<u64> {
        match self.blow {
            Blow::Truncate => self.offset_bytes..zone_bytes(sample, self.zone),
            Blow::OlderZone => 0..zone_bytes(sample, self.zone),
            _ => self.offset_bytes..self.offset_bytes + self.length_bytes,
        }
    }

    /// What was hit, if this is the store after it.
    pub(crate) fn touched(&self, sample: &Sample, disk: &MemoryDisk) -> Touched {
        let other = self.other_bytes..self.other_bytes + BLOCK_BYTES;
        let other = (self.blow == Blow::Swap).then_some(other);
        let ranges: Vec<Range<u64>> = std::iter::once(self.range(sample)).chain(other).collect();
        let differs = |structure: &Structure| {
            ranges.iter().any(|range| {
                let start = structure.offset_bytes.max(range.start);
                let end = (structure.offset_bytes + structure.length_bytes).min(range.end);
                let bytes = |of: &MemoryDisk| of.peek(self.zone, start, (end - start) as usize);
                start < end && bytes(disk) != bytes(&sample.disk)
            })
        };
        let any = |proven: bool| {
            let of_zone = sample.structures.iter().filter(|of| of.zone == self.zone);
            of_zone.filter(|of| of.proven == proven).any(differs)
        };
        Touched { proven: self.shortens() || any(true), unproven: any(false) }
    }

    /// Whether the slot of a root may hold one afterwards that was written long before.
    pub(crate) fn brings_a_root_back(&self) -> bool {
        self.zone == Zone::Superblock
            && matches!(self.blow, Blow::Older | Blow::Swap | Blow::OlderZone)
    }

    /// Where the journal's file ends now, if it was cut short.
    pub(crate) fn journal_from_bytes(&self) -> Option<u64> {
        (self.shortens() && self.zone == Zone::Journal).then_some(self.offset_bytes)
    }

    pub(crate) fn shortens(&self) -> bool {
        self.blow == Blow::Truncate
    }

    /// Damages a copy of the store.
    pub(crate) fn strike(&self, sample: &Sample, disk: &MemoryDisk) {
        let range = self.range(sample);
        match self.blow {
            Blow::Flip => {
                let mut dice = Dice::new(self.seed);
                for at in range {
                    let mask = 1_u8 << dice.below(8);
                    disk.corrupt(self.zone, at, |byte| *byte ^= mask);
                }
            }
            Blow::Zero | Blow::Truncate => zero(disk, self.zone, range),
            Blow::Older => {
                let moment = self.seed % sample.earlier.len() as u64;
                let bytes = sample.earlier[moment as usize].peek(self.zone, range.start, BLOCK);
                put(disk, self.zone, range.start, &bytes);
            }
            Blow::OlderZone => {
                let moment = self.seed % sample.earlier.len() as u64;
                let earlier = &sample.earlier[moment as usize];
                write(disk, self.zone, range, |at, length| earlier.peek(self.zone, at, length));
            }
            Blow::Unreadable => {
                let (zone, offset_bytes) = (self.zone, self.offset_bytes);
                disk.inject(Fault::ReadUntilWritten { zone, offset_bytes });
            }
            Blow::Swap => {
                let block = |at| disk.peek(self.zone, at, BLOCK);
                let (here, there) = (block(range.start), block(self.other_bytes));
                put(disk, self.zone, range.start, &there);
                put(disk, self.zone, self.other_bytes, &here);
            }
        }
    }

    /// Damages a copy of the store; gives the bytes that are not what they were, or cannot be read.
    pub(crate) fn strike_seen(
        &self,
        sample: &Sample,
        disk: &MemoryDisk,
    ) -> Vec<(Zone, Range<u64>)> {
        let range = self.range(sample);
        if self.shortens() || self.blow == Blow::Unreadable {
            self.strike(sample, disk);
            return vec![(self.zone, range)];
        }
        let other = self.other_bytes..self.other_bytes + BLOCK_BYTES;
        let ranges = std::iter::once(range).chain((self.blow == Blow::Swap).then_some(other));
        let see = |range: Range<u64>| {
            let bytes = disk.peek(self.zone, range.start, (range.end - range.start) as usize);
            (range, bytes)
        };
        let before: Vec<_> = ranges.map(see).collect();
        self.strike(sample, disk);
        let differing = before.into_iter().flat_map(|(range, before)| {
            let (range, after) = see(range);
            let differ = move |(at, pair): (u64, (u8, u8))| (pair.0 != pair.1).then_some(at);
            let mut found = (range.start..).zip(before.into_iter().zip(after)).filter_map(differ);
            let first = found.next();
            first.map(|first| (self.zone, first..found.last().unwrap_or(first) + 1))
        });
        differing.collect()
    }

    /// The disk as the store sees it: a truncated file is short until somebody makes it longer.
    pub(crate) fn view(&self, disk: &MemoryDisk) -> Box<dyn Disk> {
        self.shortened(Box::new(disk.clone()))
    }

    /// As [`Hit::view`], of a disk that another hit may have shortened.
    pub(crate) fn shortened(&self, disk: Box<dyn Disk>) -> Box<dyn Disk> {
        if !self.shortens() {
            return disk;
        }
        let size_bytes = self.offset_bytes / BLOCK_BYTES * BLOCK_BYTES;
        Box::new(ShortDisk { disk, zone: self.zone, size_bytes, ended: Vec::new() })
    }
}

fn zone_bytes(sample: &Sample, zone: Zone) -> u64 {
    let found = sample.zones.iter().find(|(of, _)| *of == zone);
    found.map_or(0, |(_, size_bytes)| *size_bytes)
}

fn put(disk: &MemoryDisk, zone: Zone, offset_bytes: u64, bytes: &[u8]) {
    for (at, &new) in (offset_bytes..).zip(bytes) {
        disk.corrupt(zone, at, |byte| *byte = new);
    }
}

/// Whole blocks by writes, the rest byte by byte.
fn zero(disk: &MemoryDisk, zone: Zone, range: Range<u64>) {
    let first = range.start.next_multiple_of(BLOCK_BYTES).min(range.end);
    let last = (range.end / BLOCK_BYTES * BLOCK_BYTES).max(first);
    for at in (range.start..first).chain(last..range.end) {
        disk.corrupt(zone, at, |byte| *byte = 0);
    }
    write(disk, zone, first..last, |_, length| vec![0; length]);
}

/// Writes whole blocks, durably.
fn write(
    disk: &MemoryDisk,
    zone: Zone,
    range: Range<u64>,
    bytes_at: impl Fn(u64, usize) -> Vec<u8>,
) {
    let mut disk = disk.clone();
    let mut done = Vec::new();
    let piece_bytes = 1 << 20;
    for at in range.clone().step_by(piece_bytes) {
        let length_bytes = (range.end - at).min(piece_bytes as u64) as usize;
        let buf = AlignedBuf::padded(&bytes_at(at, length_bytes));
        let kind = IoKind::Write { buf: buf.into(), durable: false };
        disk.submit(Io { zone, offset_bytes: at, kind, tag: 0 });
    }
    disk.submit(Io { zone, offset_bytes: 0, kind: IoKind::Sync, tag: 0 });
    while disk.in_flight() > 0 {
        disk.wait(&mut done);
    }
}

/// A disk one zone of which ends early.
struct ShortDisk {
    disk: Box<dyn Disk>,
    zone: Zone,
    size_bytes: u64,
    ended: Vec<Completion>,
}

impl Disk for ShortDisk {
    fn submit(&mut self, io: Io) {
        let length_bytes = match &io.kind {
            IoKind::Read { buf } => buf.len(),
            IoKind::Write { buf, .. } => buf.len(),
            IoKind::Sync => 0,
        };
        let (zone, offset_bytes, size_bytes) = (io.zone, io.offset_bytes, self.size_bytes);
        if zone != self.zone || offset_bytes + length_bytes as u64 <= size_bytes {
            return self.disk.submit(io);
        }
        let result = Err(IoError::OutOfRange { zone, offset_bytes, length_bytes, size_bytes });
        self.ended.push(io.complete(result));
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.ended);
        self.disk.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        if self.ended.is_empty() {
            return self.disk.wait(done);
        }
        self.poll(done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.ended.len()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        let size_bytes = self.disk.size_bytes(zone);
        if zone == self.zone { self.size_bytes.min(size_bytes) } else { size_bytes }
    }
}
