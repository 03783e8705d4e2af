//! What an engine asks of the machine beside its disk.

use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use disk::{Completion, Disk, Io, IoKind, MemoryDisk};
use engine::{Notice, Zone};

use crate::stand::Wish;

const LACKING: &str = "there is no thread left";

/// A disk for which the kernel can make no thread any more, once its store has been opened.
struct Threadless {
    disk: MemoryDisk,
    opener: ThreadId,
    lacked: bool,
}

impl Disk for Threadless {
    fn submit(&mut self, io: Io) {
        let is_sync = matches!(io.kind, IoKind::Sync);
        self.lacked |= is_sync && thread::current().id() != self.opener;
        self.disk.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.disk.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.disk.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }

    fn degradation(&self) -> Option<&str> {
        self.lacked.then_some(LACKING)
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}

/// Clients take threads of their own: what is too few is known before the first of them comes, and
/// the thread that flushes need is there before them.
#[test]
fn a_core_that_begins_to_run_syncs_and_says_if_the_kernel_has_no_thread_for_it() {
    let disk = Wish::default().disk();
    let through = Threadless { disk: disk.clone(), opener: thread::current().id(), lacked: false };
    let (mut engine, client, ..) = Wish::default().load_through(&disk, Box::new(through)).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let observed = Arc::clone(&told);
    engine.observe(Box::new(move |notice| observed.lock().unwrap().push(notice.clone())));
    let core = thread::spawn(move || engine.run());
    client.close().unwrap();
    core.join().unwrap().unwrap();
    assert_eq!(
        told.lock().unwrap().first(),
        Some(&Notice::DiskDegraded { reason: LACKING.to_owned() })
    );
}
