//! A disk whose owner dies at every write, aside: what would each moment have left?

use std::sync::{Arc, Mutex};

use disk::{Completion, Disk, Doorbell, Io, IoKind, Loss, MemoryDisk};
use engine::Zone;

use super::{Hand, Wish};

/// A memory disk that keeps what a power loss at each write and sync would leave.
pub(crate) struct Looker {
    disk: MemoryDisk,
    left: Left,
}

/// What the power losses left so far.
pub(crate) type Left = Arc<Mutex<Vec<MemoryDisk>>>;

impl Looker {
    pub(crate) fn new(disk: MemoryDisk) -> (Self, Left) {
        let left = Left::default();
        (Self { disk, left: Arc::clone(&left) }, left)
    }

    /// A store that is looked at from its opening on.
    pub(crate) fn open(wish: &Wish, disk: MemoryDisk) -> (Hand, Left) {
        let (looker, left) = Self::new(disk.clone());
        let doorbell = Doorbell::new().unwrap();
        let opened = engine::open(Box::new(looker), doorbell, &wish.options);
        let (engine, client, _) = opened.unwrap();
        (Hand::of(disk, engine, client), left)
    }
}

impl Disk for Looker {
    fn submit(&mut self, io: Io) {
        let changes = !matches!(io.kind, IoKind::Read { .. });
        self.disk.submit(io);
        if changes {
            let mut left = self.left.lock().unwrap();
            let seed = left.len() as u64;
            for loss in [[Loss::Mixed, Loss::All], [Loss::Mixed, Loss::None]][left.len() / 2 % 2] {
                left.push(self.disk.left_by_power_loss(seed, loss));
            }
        }
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

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}
