//! Plain system calls on a few threads: for kernels and containers without io_uring.
//!
//! Slower for many small operations, the same in every promise. The threads share one queue; each
//! takes an operation, carries it to its end, and hands the completion over. Dropping the disk lets
//! them finish what was submitted.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{self, JoinHandle};

use format::units::Zone;
use rustix::fs::fdatasync;
use rustix::io::{Errno, pread, pwrite};

use crate::doorbell::Doorbell;
use crate::growth::{ForeignGrowth, ZoneGrowth};
use crate::io::{Completion, Disk, Io, IoKind};
use crate::operation::Operation;
use crate::zone_files::{ZoneFile, ZoneFiles};

/// Enough to keep a flash device busy with single-block operations.
const THREADS: usize = 8;

/// A store's files driven through `pread`, `pwrite` and `fdatasync`.
pub struct PsyncDisk {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Submitted and not yet handed back.
    in_flight: usize,
}

struct Shared {
    files: RwLock<ZoneFiles>,
    doorbell: Doorbell,
    jobs: Mutex<Jobs>,
    job_added: Condvar,
    finished: Mutex<Vec<Completion>>,
    one_finished: Condvar,
}

#[derive(Default)]
struct Jobs {
    queue: VecDeque<Operation>,
    closing: bool,
}

impl PsyncDisk {
    /// Starts the threads; completions ring `doorbell`.
    pub(crate) fn new(files: ZoneFiles, doorbell: &Doorbell) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            files: RwLock::new(files),
            doorbell: doorbell.clone(),
            jobs: Mutex::default(),
            job_added: Condvar::new(),
            finished: Mutex::default(),
            one_finished: Condvar::new(),
        });
        let mut disk = Self { shared, threads: Vec::new(), in_flight: 0 };
        for number in 0..THREADS {
            let shared = Arc::clone(&disk.shared);
            let name = format!("disk-{number}");
            disk.threads.push(thread::Builder::new().name(name).spawn(move || shared.work())?);
        }
        Ok(disk)
    }

    fn take(&mut self, mut finished: MutexGuard<'_, Vec<Completion>>, done: &mut Vec<Completion>) {
        self.in_flight -= finished.len();
        done.append(&mut finished);
    }
}

impl Disk for PsyncDisk {
    fn submit(&mut self, io: Io) {
        self.in_flight += 1;
        match io.check(self.size_bytes(io.zone)) {
            Ok(()) => {
                lock(&self.shared.jobs).queue.push_back(Operation::new(io, false));
                self.shared.job_added.notify_one();
            }
            Err(error) => self.shared.finish(io.complete(Err(error))),
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        let shared = Arc::clone(&self.shared);
        self.take(lock(&shared.finished), done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        let shared = Arc::clone(&self.shared);
        let mut finished = lock(&shared.finished);
        while finished.is_empty() && self.in_flight > 0 {
            finished = shared.one_finished.wait(finished).unwrap_or_else(PoisonError::into_inner);
        }
        self.take(finished, done);
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        self.shared.files.write().unwrap_or_else(PoisonError::into_inner).grow(growth)
    }

    fn release_data_zones(&mut self, data_zones: usize) {
        let mut files = self.shared.files.write().unwrap_or_else(PoisonError::into_inner);
        files.release_data_zones(data_zones);
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.shared.files().size_bytes(zone)
    }
}

impl Drop for PsyncDisk {
    fn drop(&mut self) {
        lock(&self.shared.jobs).closing = true;
        self.shared.job_added.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// A thread's life: until the disk is dropped and nothing is queued.
    fn work(&self) {
        while let Some(operation) = self.next_job() {
            let file = self.files().get(operation.zone()).cloned();
            self.finish(run(operation, file.as_ref()));
        }
    }

    fn files(&self) -> RwLockReadGuard<'_, ZoneFiles> {
        self.files.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_job(&self) -> Option<Operation> {
        let mut jobs = lock(&self.jobs);
        loop {
            if let Some(operation) = jobs.queue.pop_front() {
                return Some(operation);
            }
            if jobs.closing {
                return None;
            }
            jobs = self.job_added.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, completion: Completion) {
        lock(&self.finished).push(completion);
        self.one_finished.notify_one();
        self.doorbell.ring();
    }
}

/// Carries an operation to its end.
fn run(mut operation: Operation, file: Option<&ZoneFile>) -> Completion {
    loop {
        let answer = ask(&mut operation, file);
        if let Some(result) = operation.advance(answer) {
            return operation.complete(result);
        }
    }
}

/// One system call for what is left of the operation.
pub(crate) fn ask(operation: &mut Operation, file: Option<&ZoneFile>) -> Result<usize, Errno> {
    let file = &file.ok_or(Errno::BADF)?.file;
    let (done_bytes, offset_bytes) = (operation.done_bytes(), operation.offset_bytes());
    if operation.is_at_sync() {
        return fdatasync(file).map(|()| 0);
    }
    match &mut operation.io.kind {
        IoKind::Read { buf } => pread(file, &mut buf[done_bytes..], offset_bytes),
        IoKind::Write { buf, .. } => pwrite(file, &buf[done_bytes..], offset_bytes),
        IoKind::Sync => Ok(0),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
