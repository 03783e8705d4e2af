//! The device behind the handles: media, what is in flight, and how operations land.

use std::collections::VecDeque;

use format::units::Zone;

use super::faults::{Fault, Strike};
use super::image::Image;
use crate::buffer::{AlignedBuf, SharedBuf};
use crate::doorbell::Doorbell;
use crate::io::{Completion, Io, IoKind};
use crate::splitmix::SplitMix;

/// What a memory disk has been asked to do since it was made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounters {
    /// Reads submitted.
    pub reads: u64,
    /// Writes submitted.
    pub writes: u64,
    /// Syncs submitted.
    pub syncs: u64,
    /// Bytes of the reads.
    pub bytes_read: u64,
    /// Bytes of the writes.
    pub bytes_written: u64,
}

/// A write that landed and that no sync has covered yet.
#[derive(Clone)]
pub(super) struct Unsynced {
    /// Its place in the order of landing on this medium, from 1.
    pub(super) number: u64,
    pub(super) offset_bytes: u64,
    pub(super) bytes: SharedBuf,
    /// Whether it is durable all the same. It keeps its place among the others: what landed before
    /// it is not seen again where both wrote.
    pub(super) durable: bool,
}

/// One zone.
#[derive(Clone)]
pub(super) struct Medium {
    pub(super) zone: Zone,
    pub(super) size_bytes: u64,
    /// What reads see: everything that landed.
    pub(super) current: Image,
    /// What a power loss cannot take.
    pub(super) durable: Image,
    /// In the order of landing; `durable` and all of these make `current`, or would have if no sync
    /// had failed.
    pub(super) unsynced: VecDeque<Unsynced>,
    /// Writes that have landed.
    pub(super) landed: u64,
}

/// An operation that was submitted and has not landed.
pub(super) struct Pending {
    pub(super) io: Io,
    /// Writes of its zone that had landed when it was submitted: what a sync makes durable.
    landed_before: u64,
}

pub(super) struct Device {
    pub(super) media: Vec<Medium>,
    pub(super) in_flight: Vec<Pending>,
    pub(super) faults: Vec<Fault>,
    pub(super) counters: MemoryCounters,
    /// Writes until the power goes.
    pub(super) writes_left: Option<u64>,
    pub(super) crashed: bool,
    pub(super) doorbell: Option<Doorbell>,
    prng: SplitMix,
}

impl Device {
    pub(super) fn new(zones: &[(Zone, u64)], seed: u64) -> Self {
        let media = zones.iter().map(|&(zone, size_bytes)| Medium::new(zone, size_bytes));
        Self::with_media(media.collect(), SplitMix::new(seed))
    }

    pub(super) fn with_media(media: Vec<Medium>, prng: SplitMix) -> Self {
        Self {
            media,
            in_flight: Vec::new(),
            faults: Vec::new(),
            counters: MemoryCounters::default(),
            writes_left: None,
            crashed: false,
            doorbell: None,
            prng,
        }
    }

    pub(super) fn medium(&self, zone: Zone) -> Option<&Medium> {
        self.media.iter().find(|medium| medium.zone == zone)
    }

    pub(super) fn medium_mut(&mut self, zone: Zone) -> Option<&mut Medium> {
        self.media.iter_mut().find(|medium| medium.zone == zone)
    }

    /// Gives zones these lengths, and makes those that there are not. None becomes shorter.
    pub(super) fn lengthen(&mut self, zones: &[(Zone, u64)]) {
        for &(zone, size_bytes) in zones {
            match self.medium_mut(zone) {
                Some(medium) => medium.size_bytes = medium.size_bytes.max(size_bytes),
                None => self.media.push(Medium::new(zone, size_bytes)),
            }
        }
    }

    pub(super) fn submit(&mut self, io: Io) {
        if self.crashed {
            return;
        }
        self.count(&io);
        let landed_before = self.medium(io.zone).map_or(0, |medium| medium.landed);
        self.in_flight.push(Pending { io, landed_before });
        self.ring_if_pending();
    }

    /// Lands a seeded number of operations, at least `at_least` if so many are in flight.
    pub(super) fn land_some(&mut self, at_least: usize, done: &mut Vec<Completion>) {
        if self.crashed || self.in_flight.is_empty() {
            return;
        }
        let at_least = at_least.min(self.in_flight.len());
        let count = at_least + self.prng.below(self.in_flight.len() - at_least + 1);
        for _ in 0..count {
            let chosen = self.prng.below(self.in_flight.len());
            let pending = self.in_flight.swap_remove(chosen);
            done.push(self.land(pending));
        }
        self.ring_if_pending();
    }

    fn count(&mut self, io: &Io) {
        match &io.kind {
            IoKind::Read { buf } => {
                self.counters.reads += 1;
                self.counters.bytes_read += buf.len() as u64;
            }
            IoKind::Sync => self.counters.syncs += 1,
            IoKind::Write { buf, .. } => {
                self.counters.writes += 1;
                self.counters.bytes_written += buf.len() as u64;
                match &mut self.writes_left {
                    Some(0) => self.crashed = true,
                    Some(left) => *left -= 1,
                    None => {}
                }
            }
        }
    }

    /// Nobody else will say that there is something to poll.
    fn ring_if_pending(&self) {
        if let Some(doorbell) = &self.doorbell
            && !self.in_flight.is_empty()
        {
            doorbell.ring();
        }
    }

    fn land(&mut self, pending: Pending) -> Completion {
        let Pending { mut io, landed_before } = pending;
        let size_bytes = self.medium(io.zone).map_or(0, |medium| medium.size_bytes);
        if let Err(error) = io.check(size_bytes) {
            return io.complete(Err(error));
        }
        let struck = self.faults.iter().find_map(|fault| fault.strikes(&io));
        if let Some(strike @ Strike::Refused(_)) = struck {
            return strike.complete(io);
        }
        let torn = struck.is_some().then(|| SplitMix::new(self.prng.next()));
        self.faults.retain(|fault| struck.is_some() || !fault.ends_with(&io));
        if let Some(medium) = self.medium_mut(io.zone) {
            match (&mut io.kind, torn) {
                (IoKind::Read { buf }, None) => medium.current.read(io.offset_bytes, buf),
                (IoKind::Read { .. }, Some(_)) => {}
                (IoKind::Write { buf, durable }, None) => {
                    medium.land_write(io.offset_bytes, buf.clone(), *durable);
                }
                (IoKind::Write { buf, .. }, Some(mut prng)) => {
                    medium.land_torn(io.offset_bytes, buf, &mut prng);
                }
                (IoKind::Sync, None) => medium.sync(landed_before),
                (IoKind::Sync, Some(_)) => medium.lose_sync(landed_before),
            }
        }
        match struck {
            Some(strike) => strike.complete(io),
            None => io.complete(Ok(())),
        }
    }
}

impl Medium {
    fn new(zone: Zone, size_bytes: u64) -> Self {
        let (current, durable) = (Image::default(), Image::default());
        Self { zone, size_bytes, current, durable, unsynced: VecDeque::new(), landed: 0 }
    }

    pub(super) fn land_write(&mut self, offset_bytes: u64, bytes: SharedBuf, durable: bool) {
        self.landed += 1;
        self.current.write(offset_bytes, &bytes);
        self.unsynced.push_back(Unsynced { number: self.landed, offset_bytes, bytes, durable });
    }

    /// What is kept of writes that are not durable has this byte too.
    pub(super) fn corrupt_unsynced(&mut self, offset_bytes: u64, byte: u8) {
        for write in &mut self.unsynced {
            let at = offset_bytes.checked_sub(write.offset_bytes).map(|at| at as usize);
            if let Some(at) = at.filter(|&at| at < write.bytes.len()) {
                let mut bytes = AlignedBuf::padded(&write.bytes);
                bytes[at] = byte;
                let length_bytes = write.bytes.len();
                write.bytes = SharedBuf::from(bytes).slice(0..length_bytes);
            }
        }
    }

    fn sync(&mut self, landed_before: u64) {
        while let Some(write) = self.unsynced.pop_front_if(|write| write.number <= landed_before) {
            self.durable.write(write.offset_bytes, &write.bytes);
        }
    }

    fn lose_sync(&mut self, landed_before: u64) {
        self.unsynced.retain(|write| write.number > landed_before || write.durable);
    }
}
