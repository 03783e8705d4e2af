//! A disk that is only read: what its owner writes stays in memory, as in an overlay file system.
//!
//! ```text
//! write, sync ──> memory (lost when this is dropped)
//! read ──> the disk below, and what memory has of it laid over
//! ```
//!
//! An engine that opens a store applies its journal, and writes while it does so. On a medium that
//! nobody may write to, the writes go here: reads see them, as every disk promises, and the disk
//! below never gets one. The memory is bounded. A write beyond the bound fails for want of room
//! ([`ErrorClass::NoSpace`]), with a sentence that says what the bound is.
//!
//! It keeps every promise of a disk but those of durability.

use format::units::{BLOCK_BYTES, Zone};
use hashbrown::HashMap;

use crate::buffer::AlignedBuf;
use crate::doorbell::Doorbell;
use crate::error::{Cause, ErrorClass, IoError, Verb};
use crate::io::{Completion, Disk, Io, IoKind};

type Block = [u8; BLOCK_BYTES];

/// A disk over another one that it never writes to.
///
/// ```
/// use disk::{AlignedBuf, Disk, Doorbell, Io, IoKind, MemoryDisk, OverlayDisk};
/// use format::units::Zone;
///
/// let doorbell = Doorbell::new()?;
/// let below = MemoryDisk::new(&[(Zone::Tables, 1 << 20)], 1);
/// below.set_doorbell(&doorbell);
/// let mut disk = OverlayDisk::new(Box::new(below.clone()), 64 << 20, &doorbell);
/// let buf = AlignedBuf::new_zeroed(4096).into();
/// let kind = IoKind::Write { buf, durable: true };
/// disk.submit(Io { zone: Zone::Tables, offset_bytes: 0, kind, tag: 1 });
/// let mut done = Vec::new();
/// disk.wait(&mut done);
/// assert!(done[0].result.is_ok());
/// # Ok::<(), disk::OpenError>(())
/// ```
pub struct OverlayDisk {
    below: Box<dyn Disk>,
    /// By zone and number of the block in it.
    written: HashMap<(Zone, u64), Box<Block>>,
    memory_bytes_max: u64,
    doorbell: Doorbell,
    /// Reads that the disk below has, by the tag that it knows them by.
    reading: HashMap<u64, Reading>,
    next_tag: u64,
    /// What has ended here and has not been handed out.
    ended: Vec<Completion>,
    /// Empty but within a poll.
    arrived: Vec<Completion>,
}

/// A read, as its owner knows it.
struct Reading {
    tag: u64,
    offset_bytes: u64,
}

impl OverlayDisk {
    /// Keeps at most `memory_bytes_max` of what is written over `below`. `doorbell` is the one that
    /// `below` rings.
    #[must_use]
    pub fn new(below: Box<dyn Disk>, memory_bytes_max: u64, doorbell: &Doorbell) -> Self {
        Self {
            below,
            written: HashMap::new(),
            memory_bytes_max,
            doorbell: doorbell.clone(),
            reading: HashMap::new(),
            next_tag: 0,
            ended: Vec::new(),
            arrived: Vec::new(),
        }
    }

    fn write(&mut self, zone: Zone, offset_bytes: u64, bytes: &[u8]) -> Result<(), IoError> {
        let first = offset_bytes / BLOCK_BYTES as u64;
        let blocks = bytes.as_chunks::<BLOCK_BYTES>().0;
        let numbers = first..first + blocks.len() as u64;
        let new = numbers.clone().filter(|&number| !self.written.contains_key(&(zone, number)));
        let held_bytes = (self.written.len() + new.count()) as u64 * BLOCK_BYTES as u64;
        if held_bytes > self.memory_bytes_max {
            let sentence = format!(
                "a store that is opened read-only keeps what its journal changes in memory, and \
                 that is more than the {} MiB there are for it",
                self.memory_bytes_max >> 20,
            );
            let cause = Cause::new(ErrorClass::NoSpace, &sentence);
            return Err(IoError::Failed { verb: Verb::Write, zone, offset_bytes, cause });
        }
        for (number, block) in numbers.zip(blocks) {
            match self.written.get_mut(&(zone, number)) {
                Some(held) => **held = *block,
                None => drop(self.written.insert((zone, number), Box::new(*block))),
            }
        }
        Ok(())
    }

    fn lay_over(&self, zone: Zone, offset_bytes: u64, buf: &mut AlignedBuf) {
        let first = offset_bytes / BLOCK_BYTES as u64;
        for (number, block) in (first..).zip(buf.as_chunks_mut::<BLOCK_BYTES>().0) {
            if let Some(held) = self.written.get(&(zone, number)) {
                *block = **held;
            }
        }
    }

    fn end(&mut self, io: Io, result: Result<(), IoError>) {
        let (tag, zone) = (io.tag, io.zone);
        let failed = result.is_err().then(|| Box::new(io));
        self.ended.push(Completion { tag, zone, result, buf: None, failed });
        self.doorbell.ring();
    }

    /// Hands out what has ended here and below.
    fn hand_out(&mut self, done: &mut Vec<Completion>) {
        for mut completion in std::mem::take(&mut self.arrived) {
            let Some(Reading { tag, offset_bytes }) = self.reading.remove(&completion.tag) else {
                unreachable!("the disk below completed an operation that it was not given");
            };
            completion.tag = tag;
            if let Some(failed) = &mut completion.failed {
                failed.tag = tag;
            }
            if let Some(buf) = &mut completion.buf {
                self.lay_over(completion.zone, offset_bytes, buf);
            }
            done.push(completion);
        }
        done.append(&mut self.ended);
    }
}

impl Disk for OverlayDisk {
    fn submit(&mut self, io: Io) {
        if let IoKind::Read { .. } = io.kind {
            let reading = Reading { tag: io.tag, offset_bytes: io.offset_bytes };
            self.reading.insert(self.next_tag, reading);
            self.below.submit(Io { tag: self.next_tag, ..io });
            self.next_tag += 1;
            return;
        }
        let checked = io.check(self.size_bytes(io.zone));
        let result = checked.and_then(|()| match &io.kind {
            IoKind::Write { buf, .. } => self.write(io.zone, io.offset_bytes, buf),
            IoKind::Sync | IoKind::Read { .. } => Ok(()),
        });
        self.end(io, result);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.below.poll(&mut self.arrived);
        self.hand_out(done);
    }

    fn has_ended(&mut self) -> bool {
        !self.ended.is_empty() || self.below.has_ended()
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        if self.ended.is_empty() {
            self.below.wait(&mut self.arrived);
        }
        self.hand_out(done);
    }

    fn in_flight(&self) -> usize {
        self.reading.len() + self.ended.len()
    }

    fn degradation(&self) -> Option<&str> {
        self.below.degradation()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.below.size_bytes(zone)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::*;
    use crate::memory::MemoryDisk;

    const ZONE_BLOCKS: u64 = 16;

    fn run(disk: &mut dyn Disk, zone: Zone, offset_bytes: u64, kind: IoKind) -> Completion {
        disk.submit(Io { zone, offset_bytes, kind, tag: 7 });
        let mut done = Vec::new();
        disk.wait(&mut done);
        assert_eq!((done.len(), done[0].tag, disk.in_flight()), (1, 7, 0));
        done.remove(0)
    }

    fn write(disk: &mut dyn Disk, block: u64, blocks: usize, with: u8) -> Completion {
        let mut buf = AlignedBuf::new_zeroed(blocks * BLOCK_BYTES);
        buf.fill(with);
        let kind = IoKind::Write { buf: buf.into(), durable: false };
        run(disk, Zone::Tables, block * BLOCK_BYTES as u64, kind)
    }

    fn read_all(disk: &mut dyn Disk) -> Vec<u8> {
        let buf = AlignedBuf::new_zeroed(ZONE_BLOCKS as usize * BLOCK_BYTES);
        let done = run(disk, Zone::Tables, 0, IoKind::Read { buf });
        done.buf.unwrap().to_vec()
    }

    fn both() -> (MemoryDisk, OverlayDisk) {
        let doorbell = Doorbell::new().unwrap();
        let mut below = MemoryDisk::new(&[(Zone::Tables, ZONE_BLOCKS * BLOCK_BYTES as u64)], 5);
        below.set_doorbell(&doorbell);
        write(&mut below, 0, ZONE_BLOCKS as usize, 1);
        let over = OverlayDisk::new(Box::new(below.clone()), 8 * BLOCK_BYTES as u64, &doorbell);
        (below, over)
    }

    proptest! {
        #[test]
        fn reads_see_writes_and_the_disk_below_never_does(
            writes in proptest::collection::vec((0..ZONE_BLOCKS, 1_usize..4, 2_u8..), 1..20),
        ) {
            let (mut below, mut over) = both();
            let mut model = read_all(&mut below);
            for (block, blocks, with) in writes {
                let done = write(&mut over, block, blocks, with);
                let Some(held) = model.get_mut(block as usize * BLOCK_BYTES..)
                    .and_then(|rest| rest.get_mut(..blocks * BLOCK_BYTES))
                else {
                    assert!(matches!(done.result, Err(IoError::OutOfRange { .. })));
                    continue;
                };
                match done.result {
                    Ok(()) => held.fill(with),
                    Err(error) => {
                        assert_eq!(error.class(), ErrorClass::NoSpace);
                        assert!(done.failed.is_some() && over.written.len() + blocks > 8);
                    }
                }
                assert!(read_all(&mut over) == model);
            }
            assert!(read_all(&mut below).iter().all(|&byte| byte == 1));
        }
    }

    #[test]
    fn what_is_refused_for_want_of_memory_says_how_much_there_is() {
        let (_, mut over) = both();
        let error = write(&mut over, 0, 9, 2).result.unwrap_err();
        assert!(error.to_string().contains("more than the 0 MiB"), "{error}");
        assert!(write(&mut over, 0, 8, 2).result.is_ok());
        assert!(run(&mut over, Zone::Tables, 0, IoKind::Sync).result.is_ok());
    }
}
