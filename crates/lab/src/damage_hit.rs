//! One hit: where it falls, what it does to the bytes, and what they meant.

use disk::{AlignedBuf, Completion, Disk, Io, IoError, IoKind, MemoryDisk};
use engine::{Structure, Zone};

use crate::damage_store::Sample;
use crate::dice::Dice;

const BLOCK_BYTES: u64 = 4096;

/// What happens to the bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// Bits of them are flipped.
    Flip,
    /// They are zeros.
    Zero,
    /// The file ends there.
    Truncate,
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
    seed: u64,
}

/// What the damaged bytes meant.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing: no byte changed, or none that belongs to a structure.
    None,
    /// A structure that something durable proves.
    Proven,
    /// Only what the last sync before a crash wrote.
    Unproven,
}

impl Hit {
    /// A hit at random: on a structure of a kind, at its start, its end or inside, or anywhere.
    pub(crate) fn choose(sample: &Sample, dice: &mut Dice) -> Self {
        let mut kinds: Vec<&str> =
            sample.structures.iter().map(|structure| &structure.kind[..]).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let seed = dice.roll();
        let blow = match dice.below(20) {
            0 => Blow::Truncate,
            1..8 => Blow::Zero,
            _ => Blow::Flip,
        };
        if dice.once_in(10) {
            return Self::anywhere(sample, dice, blow, seed);
        }
        let kind = kinds[dice.below(kinds.len() as u64) as usize];
        let of_kind: Vec<&Structure> =
            sample.structures.iter().filter(|structure| structure.kind == kind).collect();
        let aim = of_kind[dice.below(of_kind.len() as u64) as usize];
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
        Self { blow, zone: aim.zone, offset_bytes, length_bytes, aim: kind.to_owned(), seed }
    }

    fn anywhere(sample: &Sample, dice: &mut Dice, blow: Blow, seed: u64) -> Self {
        let (zone, size_bytes) = sample.zones[dice.below(sample.zones.len() as u64) as usize];
        let offset_bytes = dice.below(size_bytes);
        let length_bytes = (1 + dice.below(64 << 10)).min(size_bytes - offset_bytes);
        Self { blow, zone, offset_bytes, length_bytes, aim: "anywhere".to_owned(), seed }
    }

    /// Bytes that are damaged.
    fn range(&self, sample: &Sample) -> std::ops::Range<u64> {
        let end = match self.blow {
            Blow::Truncate => zone_bytes(sample, self.zone),
            _ => self.offset_bytes + self.length_bytes,
        };
        self.offset_bytes..end
    }

    /// What the bytes meant that are not what they were.
    pub(crate) fn meaning(&self, sample: &Sample) -> Meaning {
        match (self.shortens() || self.touches(sample, true), self.touches(sample, false)) {
            (true, _) => Meaning::Proven,
            (false, true) => Meaning::Unproven,
            (false, false) => Meaning::None,
        }
    }

    /// Whether a byte changes of what nothing proves.
    pub(crate) fn touches_unproven(&self, sample: &Sample) -> bool {
        self.touches(sample, false)
    }

    fn touches(&self, sample: &Sample, proven: bool) -> bool {
        let range = self.range(sample);
        let wanted =
            |structure: &&Structure| structure.zone == self.zone && structure.proven == proven;
        sample.structures.iter().filter(wanted).any(|structure| {
            let start = structure.offset_bytes.max(range.start);
            let end = (structure.offset_bytes + structure.length_bytes).min(range.end);
            start < end && self.changes(sample, start, end)
        })
    }

    fn shortens(&self) -> bool {
        self.blow == Blow::Truncate
    }

    fn changes(&self, sample: &Sample, start: u64, end: u64) -> bool {
        let before = sample.disk.peek(self.zone, start, (end - start) as usize);
        match self.blow {
            Blow::Flip => true,
            _ => before.iter().any(|&byte| byte != 0),
        }
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
        }
    }

    /// The disk as the store sees it: a truncated file is short until somebody makes it longer.
    pub(crate) fn view(&self, disk: &MemoryDisk) -> Box<dyn Disk> {
        if !self.shortens() {
            return Box::new(disk.clone());
        }
        let size_bytes = self.offset_bytes / BLOCK_BYTES * BLOCK_BYTES;
        Box::new(ShortDisk { disk: disk.clone(), zone: self.zone, size_bytes, ended: Vec::new() })
    }
}

fn zone_bytes(sample: &Sample, zone: Zone) -> u64 {
    let found = sample.zones.iter().find(|(of, _)| *of == zone);
    found.map_or(0, |(_, size_bytes)| *size_bytes)
}

/// Whole blocks by writes, the rest byte by byte.
fn zero(disk: &MemoryDisk, zone: Zone, range: std::ops::Range<u64>) {
    let first = range.start.next_multiple_of(BLOCK_BYTES).min(range.end);
    let last = (range.end / BLOCK_BYTES * BLOCK_BYTES).max(first);
    for at in (range.start..first).chain(last..range.end) {
        disk.corrupt(zone, at, |byte| *byte = 0);
    }
    let mut disk = disk.clone();
    let mut done = Vec::new();
    let piece_bytes = 1 << 20;
    for at in (first..last).step_by(piece_bytes) {
        let buf = AlignedBuf::new_zeroed((last - at).min(piece_bytes as u64) as usize);
        let kind = IoKind::Write { buf: buf.into(), durable: false };
        disk.submit(Io { zone, offset_bytes: at, kind, tag: 0 });
    }
    while disk.in_flight() > 0 {
        disk.wait(&mut done);
    }
}

/// A disk one zone of which ends early.
struct ShortDisk {
    disk: MemoryDisk,
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
        let buf = match io.kind {
            IoKind::Read { buf } => Some(buf),
            _ => None,
        };
        self.ended.push(Completion { tag: io.tag, zone, result, buf });
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
        if zone == self.zone { self.size_bytes } else { self.disk.size_bytes(zone) }
    }
}
