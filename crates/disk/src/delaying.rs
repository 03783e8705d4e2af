//! A disk with the latency of another one: for tests and measurements of what works on far storage.
//!
//! Every operation is given to the disk below at once, and its completion is held back until the
//! delay has passed since it was submitted, or until the disk below has completed it, whichever is
//! later. Any number of operations wait side by side, as at an object store: what takes one round
//! trip takes the delay once, however many operations it has.
//!
//! It keeps every promise of the disk below: a completion that comes later promises no more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use format::units::Zone;
use hashbrown::HashMap;

use crate::ahead::AllocationAhead;
use crate::alarm::Alarm;
use crate::doorbell::Doorbell;
use crate::due::Due;
use crate::growth::{ForeignGrowth, ZoneGrowth};
use crate::io::{Completion, Disk, Io};

/// A disk whose operations complete a fixed time after they were submitted, at the earliest.
///
/// ```
/// use disk::{AlignedBuf, DelayingDisk, Disk, Doorbell, Io, IoKind, MemoryDisk};
/// use format::units::Zone;
///
/// let doorbell = Doorbell::new()?;
/// let memory = MemoryDisk::new(&[(Zone::Tables, 1 << 20)], 1);
/// memory.set_doorbell(&doorbell);
/// let mut disk = DelayingDisk::new(Box::new(memory), 30, &doorbell);
/// for tag in 0..100 {
///     let kind = IoKind::Read { buf: AlignedBuf::new_zeroed(4096) };
///     disk.submit(Io { zone: Zone::Tables, offset_bytes: tag * 4096, kind, tag });
/// }
/// let mut done = Vec::new();
/// while disk.in_flight() > 0 {
///     disk.wait(&mut done); // 30 ms for all hundred together
/// }
/// assert_eq!(done.len(), 100);
/// # Ok::<(), disk::OpenError>(())
/// ```
pub struct DelayingDisk {
    below: Box<dyn Disk>,
    delay: Duration,
    /// Operations that the disk below has, by the tag that it knows them by.
    submitted: HashMap<u64, Submitted>,
    next_tag: u64,
    /// What the disk below has completed and this one has not.
    held: BinaryHeap<Reverse<Due<Completion>>>,
    alarm: Alarm,
    /// Empty but within a poll.
    arrived: Vec<Completion>,
}

struct Submitted {
    tag: u64,
    due: Instant,
}

impl DelayingDisk {
    /// Delays the operations of `below` by `delay_ms` each. `doorbell` is the one that `below`
    /// rings.
    #[must_use]
    pub fn new(below: Box<dyn Disk>, delay_ms: u64, doorbell: &Doorbell) -> Self {
        Self {
            below,
            delay: Duration::from_millis(delay_ms),
            submitted: HashMap::new(),
            next_tag: 0,
            held: BinaryHeap::new(),
            alarm: Alarm::new(doorbell),
            arrived: Vec::new(),
        }
    }

    /// Takes what the disk below has completed, and hands out what is due.
    fn move_on(&mut self, done: &mut Vec<Completion>) {
        for completion in self.arrived.drain(..) {
            let Some(submitted) = self.submitted.remove(&completion.tag) else {
                unreachable!("the disk below completed an operation that it was not given");
            };
            let mut completion = Completion { tag: submitted.tag, ..completion };
            if let Some(failed) = &mut completion.failed {
                failed.tag = submitted.tag;
            }
            self.held.push(Reverse(Due { due: submitted.due, item: completion }));
        }
        let now = Instant::now();
        while let Some(Reverse(first)) = self.held.peek() {
            if first.due > now {
                return self.alarm.ring_at(first.due);
            }
            done.extend(self.held.pop().map(|Reverse(held)| held.item));
        }
    }
}

impl Disk for DelayingDisk {
    fn submit(&mut self, io: Io) {
        let due = Instant::now() + self.delay;
        self.submitted.insert(self.next_tag, Submitted { tag: io.tag, due });
        self.below.submit(Io { tag: self.next_tag, ..io });
        self.next_tag += 1;
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.below.poll(&mut self.arrived);
        self.move_on(done);
    }

    fn has_ended(&mut self) -> bool {
        self.below.has_ended()
            || self.held.peek().is_some_and(|Reverse(first)| first.due <= Instant::now())
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        let before = done.len();
        self.poll(done);
        while done.len() == before && self.in_flight() > 0 {
            match self.held.peek() {
                None => self.below.wait(&mut self.arrived),
                Some(Reverse(first)) => {
                    std::thread::sleep(first.due.saturating_duration_since(Instant::now()));
                    self.below.poll(&mut self.arrived);
                }
            }
            self.move_on(done);
        }
    }

    fn in_flight(&self) -> usize {
        self.submitted.len() + self.held.len()
    }

    fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        self.below.grow(growth)
    }

    fn release_data_zones(&mut self, data_zones: usize) {
        self.below.release_data_zones(data_zones);
    }

    fn degradation(&self) -> Option<&str> {
        self.below.degradation()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.below.size_bytes(zone)
    }

    fn allocation_ahead(&self) -> Option<&AllocationAhead> {
        self.below.allocation_ahead()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::AlignedBuf;
    use crate::io::IoKind;
    use crate::memory::MemoryDisk;

    const DELAY_MS: u64 = 20;

    fn reads(disk: &mut DelayingDisk, count: u64) {
        for tag in 0..count {
            let kind = IoKind::Read { buf: AlignedBuf::new_zeroed(4096) };
            disk.submit(Io { zone: Zone::Tables, offset_bytes: tag * 4096, kind, tag });
        }
    }

    fn delaying(doorbell: &Doorbell, delay_ms: u64) -> DelayingDisk {
        let memory = MemoryDisk::new(&[(Zone::Tables, 1 << 20)], 3);
        memory.set_doorbell(doorbell);
        DelayingDisk::new(Box::new(memory), delay_ms, doorbell)
    }

    #[test]
    fn nothing_completes_before_its_delay_and_all_of_it_side_by_side() {
        let doorbell = Doorbell::new().unwrap();
        let mut disk = delaying(&doorbell, DELAY_MS);
        let begun = Instant::now();
        reads(&mut disk, 200);
        let mut done = Vec::new();
        while disk.in_flight() > 0 {
            assert!(doorbell.wait(Some(60_000)), "an operation that is due did not ring");
            disk.poll(&mut done);
            assert!(done.is_empty() || begun.elapsed() >= disk.delay);
        }
        assert_eq!(done.len(), 200);
    }

    #[test]
    fn with_an_hour_of_delay_nothing_is_due_however_often_one_polls() {
        let doorbell = Doorbell::new().unwrap();
        let mut disk = delaying(&doorbell, 3_600_000);
        reads(&mut disk, 5);
        let mut done = Vec::new();
        (0..100).for_each(|_| disk.poll(&mut done));
        assert!(done.is_empty() && !disk.has_ended());
        assert_eq!((disk.in_flight(), disk.held.len()), (5, 5));
    }
}
