//! One io_uring for all zones of a store.
//!
//! The life of an operation:
//!
//! ```text
//! submit -> queue (ours, without bound) -> ring (the kernel's, at most DEPTH) -> reap -> done
//!             ^------- the rest of a short transfer, "not now" ---------|
//! ```
//!
//! An operation sits in one slot of `slots` from submission to completion, and its slot's number is
//! what the kernel knows it by. The slot owns the buffer: it is given back, and the slot vacated,
//! only after the kernel has said that it is done with it. That is the whole safety argument, and
//! why dropping the disk waits for everything in flight.
//!
//! At most [`DEPTH`] operations are in the ring. Its completion queue is twice as long, so that it
//! can never overflow.
//!
//! Where the kernel can make no thread of its own for an operation (a limit of processes), it comes
//! back cancelled, never begun. The owner then carries it out by a plain system call: that is slow,
//! and as right; asking the ring again would come to the same, each time after some 50 ms.
//!
//! `io_uring_enter` says nothing about single operations. An opening proves that it may be called;
//! a later error is answered by trying again, and when it does not pass the ring is lost
//! ([`crate::entering`]): what the kernel has not taken, and all that comes, is then carried out
//! here, by plain system calls.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::time::Duration;

use format::units::Zone;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, Probe, opcode, squeue};
use rustix::io::{Errno, ReadWriteFlags};

use crate::doorbell::Doorbell;
use crate::entering::{Entered, Entering};
use crate::growth::{ForeignGrowth, ZoneGrowth};
use crate::io::{Completion, Disk, Io, IoKind};
use crate::operation::Operation;
use crate::psync::ask;
use crate::zone_files::ZoneFiles;

/// Operations that the kernel works on at once.
const DEPTH: u32 = 256;
/// So many submissions are pushed without waiting for the next poll.
const PUSH_AT: usize = 32;
/// The largest part of one operation that is asked for at once; the length is a `u32` in the ring.
const PART_BYTES_MAX: usize = 1 << 30;
/// What a write is asked with that is to be durable.
const WRITE_THROUGH: i32 = ReadWriteFlags::DSYNC.bits() as i32;
/// What an operator is told whose kernel can make no threads for the ring.
const THREADS_LACKING: &str = "the kernel could make no thread for io_uring, and while it cannot \
    each flush takes some 50 ms: raise the limit of processes (`ulimit -u`, or TasksMax and \
    pids.max of the service) and start again";
/// What an operator is told whose kernel lets nobody enter the ring any more.
const RING_REFUSED: &str = "the kernel refuses io_uring_enter, which it allowed before, so each \
    read and write is waited for: allow that system call (a filter of the service or container) \
    and start again";
/// How often an opening asks the kernel to take a request that does nothing.
const PROOFS_MAX: usize = 10;
/// Pause before the kernel is asked again when it could not take or wait.
const NOT_NOW: Duration = Duration::from_millis(1);

/// A store's files driven through io_uring.
pub struct UringDisk {
    ring: IoUring,
    files: ZoneFiles,
    slots: Slots,
    /// Operations in the ring, submitted or about to be.
    in_ring: usize,
    entering: Entering,
    /// Rung by the kernel at completions, and by us when the kernel is to be asked again.
    doorbell: Doorbell,
}

impl UringDisk {
    /// Makes the ring; its completions ring `doorbell`.
    pub(crate) fn new(files: ZoneFiles, doorbell: &Doorbell) -> Result<Self, RingError> {
        let ring = match build_ring() {
            Ok(ring) => ring,
            Err(source) => return Err(RingError { source, files }),
        };
        if let Err(source) = ring.submitter().register_eventfd(doorbell.as_raw_fd()) {
            return Err(RingError { source, files });
        }
        let (slots, entering) = (Slots::default(), Entering::default());
        Ok(Self { ring, files, slots, in_ring: 0, entering, doorbell: doorbell.clone() })
    }

    /// Moves queued operations into the ring and tells the kernel, without waiting.
    fn push(&mut self) {
        while self.fill_ring() {
            if !matches!(self.enter(0), Ok(1..)) {
                // What the kernel did not take stays in the ring for the next call: see that there
                // is one, even if the owner is about to sleep.
                self.doorbell.ring();
                return;
            }
        }
    }

    /// Lets the kernel take what is in the ring and wait for `completions`.
    fn enter(&mut self, completions: usize) -> io::Result<usize> {
        if self.entering.is_lost() {
            self.carry_out_here();
            return Err(ErrorKind::Unsupported.into());
        }
        let answer = self.ring.submit_and_wait(completions);
        let untaken = self.ring.submission().len();
        match self.entering.entered(&answer, untaken) {
            Entered::Done => {}
            Entered::NotNow => std::thread::sleep(NOT_NOW),
            Entered::Lost => self.carry_out_here(),
        }
        answer
    }

    /// Carries out what the kernel never takes from a lost ring, and what is queued for it.
    fn carry_out_here(&mut self) {
        let never_taken = self.entering.never_taken();
        self.in_ring -= never_taken.len();
        self.slots.queue.extend(never_taken);
        while let Some(slot) = self.slots.queue.pop_front() {
            self.slots.carry_out(slot, &self.files);
        }
    }

    /// True when the ring holds something that the kernel has not taken and may still take.
    fn fill_ring(&mut self) -> bool {
        if self.entering.is_lost() {
            self.carry_out_here();
            return false;
        }
        let mut submission = self.ring.submission();
        while self.in_ring < DEPTH as usize {
            let Some(slot) = self.slots.queue.pop_front() else { break };
            let Some(entry) = self.slots.entry(slot, &self.files) else { continue };
            // SAFETY: the descriptor belongs to `self.files` and the buffer to the operation in
            // `slot`. Both outlive the request: the slot is vacated only by `reap`, after the
            // kernel completed it, and `drop` reaps all before either goes. Nobody else touches the
            // buffer meanwhile: a read's is owned by the slot alone, a write's is never changed.
            if unsafe { submission.push(&entry) }.is_err() {
                self.slots.queue.push_front(slot);
                break;
            }
            self.in_ring += 1;
            self.entering.pushed(slot);
        }
        !submission.is_empty()
    }

    /// Takes the kernel's answers; operations that it did in part go back to the queue.
    fn reap(&mut self) {
        if self.ring.submission().taskrun() {
            let _ = self.enter(0);
        }
        let Self { ring, files, slots, in_ring, .. } = self;
        for entry in ring.completion() {
            *in_ring -= 1;
            let answer = match usize::try_from(entry.result()) {
                Ok(bytes) => Ok(bytes),
                Err(_) => Err(Errno::from_raw_os_error(-entry.result())),
            };
            slots.answer(entry.user_data(), answer, files);
        }
    }

    /// Starts what is queued and waits until the kernel has completed something.
    fn wait_for_one(&mut self) {
        self.push();
        match self.entering.is_lost() {
            _ if self.in_ring == 0 => {}
            // What the kernel took earlier it completes when this thread sleeps, too.
            true => std::thread::sleep(NOT_NOW),
            false => drop(self.enter(1)),
        }
        self.reap();
    }
}

impl Disk for UringDisk {
    fn submit(&mut self, io: Io) {
        match io.check(self.files.size_bytes(io.zone)) {
            Ok(()) => {
                let durable_writes = self.files.durable_writes(io.zone);
                self.slots.admit(Operation::new(io, durable_writes));
            }
            Err(error) => self.slots.finished.push(io.complete(Err(error))),
        }
        if self.slots.queue.len() >= PUSH_AT {
            self.push();
        } else if self.slots.queue.len() + self.slots.finished.len() == 1 {
            // The first since the last poll: see that there is another, even if the owner sleeps.
            self.doorbell.ring();
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.reap();
        self.push();
        done.append(&mut self.slots.finished);
    }

    fn has_ended(&mut self) -> bool {
        !self.slots.finished.is_empty()
            || self.ring.submission().taskrun()
            || !self.ring.completion().is_empty()
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.reap();
        self.push();
        while self.slots.finished.is_empty() && self.in_flight() > 0 {
            self.wait_for_one();
        }
        // What was reaped may have left the rest of a short transfer in the queue.
        self.push();
        done.append(&mut self.slots.finished);
    }

    fn in_flight(&self) -> usize {
        self.slots.occupied() + self.slots.finished.len()
    }

    fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        self.files.grow(growth)
    }

    fn release_data_zones(&mut self, data_zones: usize) {
        self.files.release_data_zones(data_zones);
    }

    fn degradation(&self) -> Option<&str> {
        if self.entering.is_lost() {
            return Some(RING_REFUSED);
        }
        self.slots.lacked_threads.then_some(THREADS_LACKING)
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.files.size_bytes(zone)
    }
}

impl Drop for UringDisk {
    fn drop(&mut self) {
        while self.slots.occupied() > 0 {
            self.wait_for_one();
        }
    }
}

/// The ring could not be made; the files are given back for another way.
pub(crate) struct RingError {
    pub(crate) source: io::Error,
    pub(crate) files: ZoneFiles,
}

fn build_ring() -> io::Result<IoUring> {
    // Completions are worked off when this thread enters the kernel anyway or sleeps on the
    // doorbell, rather than by interrupting it; a flag in the ring tells a thread that does neither
    // that it should. Kernels before 5.19 do not know this.
    let mut ring = IoUring::builder()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .build(DEPTH)
        .or_else(|_| IoUring::builder().build(DEPTH))?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE];
    if !needed.iter().all(|&code| probe.is_supported(code)) {
        return Err(ErrorKind::Unsupported.into());
    }
    prove(&mut ring)?;
    Ok(ring)
}

/// That the kernel lets this process enter the ring: a filter may allow to make one alone.
fn prove(ring: &mut IoUring) -> io::Result<()> {
    // SAFETY: the request has neither a descriptor nor a buffer.
    let pushed = unsafe { ring.submission().push(&opcode::Nop::new().build()) };
    pushed.map_err(|_| ErrorKind::Unsupported)?;
    let mut tries = 0;
    while let Err(error) = ring.submit_and_wait(1) {
        tries += 1;
        if tries == PROOFS_MAX {
            return Err(error);
        }
        std::thread::sleep(NOT_NOW);
    }
    match ring.completion().next() {
        Some(_) => Ok(()),
        None => Err(ErrorKind::Unsupported.into()),
    }
}

/// Every operation from submission to completion.
#[derive(Default)]
struct Slots {
    operations: Vec<Option<Operation>>,
    vacant: Vec<usize>,
    /// Slots to be put into the ring.
    queue: VecDeque<usize>,
    /// What has completed and was not handed out yet.
    finished: Vec<Completion>,
    /// The kernel could make no thread for one of them.
    lacked_threads: bool,
}

impl Slots {
    fn occupied(&self) -> usize {
        self.operations.len() - self.vacant.len()
    }

    fn admit(&mut self, operation: Operation) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.operations.push(None);
            self.operations.len() - 1
        });
        if let Some(place) = self.operations.get_mut(slot) {
            *place = Some(operation);
            self.queue.push_back(slot);
        }
    }

    /// What the ring is told of the operation in `slot`: the part of it that is left.
    fn entry(&mut self, slot: usize, files: &ZoneFiles) -> Option<squeue::Entry> {
        let operation = self.operations.get_mut(slot)?.as_mut()?;
        let fd = Fd(files.raw_fd(operation.zone()));
        let (done_bytes, offset_bytes) = (operation.done_bytes(), operation.offset_bytes());
        let sync = || opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build();
        let (is_at_sync, writes_through) = (operation.is_at_sync(), operation.writes_through());
        let entry = match &mut operation.io.kind {
            _ if is_at_sync => sync(),
            IoKind::Read { buf } => {
                let rest = &mut buf[done_bytes..];
                opcode::Read::new(fd, rest.as_mut_ptr(), part(rest.len()))
                    .offset(offset_bytes)
                    .build()
            }
            IoKind::Write { buf, .. } => {
                let rest = &buf[done_bytes..];
                opcode::Write::new(fd, rest.as_ptr(), part(rest.len()))
                    .offset(offset_bytes)
                    .rw_flags(if writes_through { WRITE_THROUGH } else { 0 })
                    .build()
            }
            IoKind::Sync => sync(),
        };
        Some(entry.user_data(slot as u64))
    }

    fn answer(&mut self, user_data: u64, answer: Result<usize, Errno>, files: &ZoneFiles) {
        let slot = usize::try_from(user_data).unwrap_or(usize::MAX);
        if answer == Err(Errno::CANCELED) {
            self.lacked_threads = true;
            return self.carry_out(slot, files);
        }
        self.settle(slot, answer);
    }

    /// Carries the operation in `slot` on by a plain system call.
    fn carry_out(&mut self, slot: usize, files: &ZoneFiles) {
        let Some(Some(operation)) = self.operations.get_mut(slot) else { return };
        operation.sync_behind();
        let answer = ask(operation, files.get(operation.zone()));
        self.settle(slot, answer);
    }

    fn settle(&mut self, slot: usize, answer: Result<usize, Errno>) {
        let Some(place) = self.operations.get_mut(slot) else { return };
        let Some(operation) = place.as_mut() else { return };
        match operation.advance(answer) {
            None => self.queue.push_back(slot),
            Some(result) => {
                self.finished.extend(place.take().map(|operation| operation.complete(result)));
                self.vacant.push(slot);
            }
        }
    }
}

fn part(length_bytes: usize) -> u32 {
    length_bytes.min(PART_BYTES_MAX) as u32
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};

    use super::*;
    use crate::buffer::AlignedBuf;
    use crate::zone_files::ZoneFile;

    /// Where the flags of a write are in what the kernel is told.
    const RW_FLAGS_AT: usize = 28;

    fn rw_flags(durable: bool, durable_writes: bool) -> i32 {
        let zero = ZoneFile::new(File::open("/dev/zero").unwrap(), 1 << 20);
        let files = ZoneFiles::new(vec![zero; 4]).unwrap();
        let buf = AlignedBuf::new_zeroed(4096).into();
        let kind = IoKind::Write { buf, durable };
        let io = Io { zone: Zone::Journal, offset_bytes: 0, kind, tag: 0 };
        let mut slots = Slots::default();
        slots.admit(Operation::new(io, durable_writes));
        let entry = slots.entry(0, &files).unwrap();
        // SAFETY: an entry is the kernel's `struct io_uring_sqe`, 64 bytes of plain numbers.
        let bytes = unsafe { std::mem::transmute::<squeue::Entry, [u8; 64]>(entry) };
        i32::from_ne_bytes(bytes[RW_FLAGS_AT..][..4].try_into().unwrap())
    }

    #[test]
    fn a_device_that_obeys_is_asked_to_write_durably_what_is_to_be() {
        assert_ne!(WRITE_THROUGH, 0);
        assert_eq!(rw_flags(true, true), WRITE_THROUGH);
        let plain = [(true, false), (false, true), (false, false)];
        assert_eq!(plain.map(|(durable, obeys)| rw_flags(durable, obeys)), [0; 3]);
    }

    fn files_over(file: &File) -> ZoneFiles {
        let zone = || ZoneFile::new(file.try_clone().unwrap(), 8192);
        ZoneFiles::new((0..4).map(|_| zone()).collect()).unwrap()
    }

    #[test]
    fn what_a_lost_ring_holds_and_all_that_comes_is_done_here() {
        let path = std::env::temp_dir().join(format!("tamis-lost-ring-{}", std::process::id()));
        fs::write(&path, [7; 8192]).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let Ok(mut disk) = UringDisk::new(files_over(&file), &Doorbell::new().unwrap()) else {
            return;
        };
        let write = |byte, offset_bytes| {
            let mut buf = AlignedBuf::new_zeroed(4096);
            buf.fill(byte);
            let kind = IoKind::Write { buf: buf.into(), durable: true };
            Io { zone: Zone::Journal, offset_bytes, kind, tag: offset_bytes }
        };
        disk.submit(write(8, 0));
        assert!(disk.fill_ring(), "it lies in the ring and the kernel has not taken it");
        disk.entering.lose();
        disk.submit(write(9, 4096));
        let mut done = Vec::new();
        disk.poll(&mut done);
        assert_eq!(done.len(), 2);
        assert!(done.iter().all(|it| it.result.is_ok()) && disk.in_flight() == 0);
        assert_eq!(fs::read(&path).unwrap(), [[8; 4096], [9; 4096]].concat());
        assert_eq!(disk.degradation(), Some(RING_REFUSED));
        drop(disk);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_the_kernel_has_no_thread_for_is_done_here() {
        let path = std::env::temp_dir().join(format!("tamis-uring-{}", std::process::id()));
        fs::write(&path, [7; 8192]).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let (files, mut slots) = (files_over(&file), Slots::default());
        let mut carry_out = |kind, durable_writes| {
            let io = Io { zone: Zone::Journal, offset_bytes: 4096, kind, tag: 1 };
            slots.admit(Operation::new(io, durable_writes));
            for _ in 0..2 {
                while let Some(slot) = slots.queue.pop_front() {
                    slots.answer(slot as u64, Err(Errno::CANCELED), &files);
                }
            }
            slots.finished.pop().unwrap()
        };
        assert_eq!(carry_out(IoKind::Sync, false).result, Ok(()));
        for (byte, durable_writes) in [(8, true), (9, false)] {
            let mut buf = AlignedBuf::new_zeroed(4096);
            buf.fill(byte);
            let write = IoKind::Write { buf: buf.into(), durable: true };
            assert_eq!(carry_out(write, durable_writes).result, Ok(()));
            assert_eq!(fs::read(&path).unwrap()[4096..], [byte; 4096]);
        }
        let read = carry_out(IoKind::Read { buf: AlignedBuf::new_zeroed(4096) }, false);
        assert_eq!(read.result, Ok(()));
        assert!(slots.lacked_threads);
        assert_eq!((slots.occupied(), slots.queue.len()), (0, 0));
        fs::remove_file(&path).unwrap();
    }
}
