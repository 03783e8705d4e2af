//! A disk that keeps reads, or writes, back for as long as a test likes, aside: what meets who
//! waits for them?

use std::sync::{Arc, Mutex};

use disk::{Completion, Disk, Io, IoKind, MemoryDisk};
use engine::{OpenVolume, Zone};

use super::{CHUNK, Hand, Opens, Wish, fresh};

/// Of so many leaves what a trim covers is cut off, and given back in the background.
const LEAVES_CUT_OFF: u64 = 40;
const LEAF_BYTES: u64 = 677 * CHUNK;

/// A memory disk whose reads and writes can be kept back.
pub(crate) struct Holder {
    disk: MemoryDisk,
    held: Held,
}

/// What is kept back.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<Mutex<HeldIos>>);

#[derive(Default)]
struct HeldIos {
    /// Zones of which no read ends.
    zones: Vec<Zone>,
    /// Zones of which no write ends, nor any sync.
    unwritten: Vec<Zone>,
    ios: Vec<Io>,
    /// What goes on with the next look.
    freed: Vec<Io>,
}

impl Held {
    /// From now on no read of this zone ends.
    pub(crate) fn hold(&self, zone: Zone) {
        self.0.lock().unwrap().zones.push(zone);
    }

    /// From now on no write and no sync of this zone ends, nor begins.
    pub(crate) fn hold_writes(&self, zone: Zone) {
        self.0.lock().unwrap().unwritten.push(zone);
    }

    /// What is kept back stays so, and nothing else.
    pub(crate) fn hold_no_more(&self) {
        let mut held = self.0.lock().unwrap();
        held.zones.clear();
        held.unwritten.clear();
    }

    /// What is kept back goes on, and what comes behind it is kept back.
    pub(crate) fn let_by(&self) {
        let mut held = self.0.lock().unwrap();
        let ios = std::mem::take(&mut held.ios);
        held.freed.extend(ios);
    }

    /// The same of one zone.
    pub(crate) fn let_by_of(&self, zone: Zone) {
        let mut held = self.0.lock().unwrap();
        let (freed, kept) = held.ios.drain(..).partition(|io| io.zone == zone);
        held.ios = kept;
        held.freed.extend::<Vec<Io>>(freed);
    }

    /// All goes on.
    pub(crate) fn let_go(&self) {
        self.hold_no_more();
        self.let_by();
    }

    /// Reads and writes that are kept back.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().ios.len()
    }

    /// Those of one zone.
    pub(crate) fn count_of(&self, zone: Zone) -> usize {
        self.0.lock().unwrap().ios.iter().filter(|io| io.zone == zone).count()
    }

    /// Bytes of all.
    pub(crate) fn length_bytes(&self) -> usize {
        let length_bytes = |io: &Io| match &io.kind {
            IoKind::Read { buf } => buf.len(),
            IoKind::Write { buf, .. } => buf.len(),
            IoKind::Sync => 0,
        };
        self.0.lock().unwrap().ios.iter().map(length_bytes).sum()
    }
}

impl Holder {
    /// A store whose reads and writes can be kept back.
    pub(crate) fn open(wish: &Wish, disk: MemoryDisk) -> (Hand, Held) {
        let held = Held::default();
        let holder = Self { disk: disk.clone(), held: held.clone() };
        let (engine, client, ..) = wish.load_through(&disk, Box::new(holder)).unwrap();
        (Hand::of(disk, engine, client), held)
    }
}

/// A store whose volume `v` had a chunk in each of its leaves and was trimmed: nothing of it is in
/// memory, and it is being given back, but no read of the tables ends.
pub(crate) fn giving_back(wish: &Wish) -> (Hand, Held, OpenVolume) {
    let mut hand = Hand::new(wish);
    let volume = hand.volume("v", LEAVES_CUT_OFF * LEAF_BYTES);
    for leaf in 0..LEAVES_CUT_OFF {
        hand.write(&volume, leaf * LEAF_BYTES, &fresh(leaf, CHUNK));
    }
    let (mut hand, held) = Holder::open(wish, hand.close());
    let volume = hand.beside(|client| client.volume("v").unwrap());
    hand.trim(&volume, 0, volume.size_bytes());
    assert!((0..1000).any(|_| hand.deletions() > 0));
    held.hold(Zone::Tables);
    (hand, held, volume)
}

impl Disk for Holder {
    fn submit(&mut self, io: Io) {
        let mut held = self.held.0.lock().unwrap();
        let is_read = matches!(io.kind, IoKind::Read { .. });
        let zones = if is_read { &held.zones } else { &held.unwritten };
        if zones.contains(&io.zone) {
            return held.ios.push(io);
        }
        self.disk.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.held.0.lock().unwrap().freed.drain(..).for_each(|io| self.disk.submit(io));
        self.disk.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.disk.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.held.count()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}
