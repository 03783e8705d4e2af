//! Allocation ahead of use: a medium that gives room for a zone step by step, on a thread.
//!
//! A sparse file takes little of its host, but the host may be full when the file wants more. So
//! room is promised to clients only where the host has *allocated* it, which it does while nobody
//! waits: the owner of the disk says how far a zone is to be allocated, a thread asks the medium
//! for it slice by slice, and each slice that has come counts at once.
//!
//! ```text
//! settled --(allocate)--> under way --(all slices came)--> settled
//!                            |  ^
//!                (refused)   v  |(allocate: tried again)
//!                          refused
//! ```
//!
//! Invariants:
//! - What counts as allocated is a prefix of the zone, and it never becomes shorter: nothing here
//!   punches holes.
//! - The medium has said yes to all of that prefix since the zone was opened. What an earlier run
//!   has allocated costs next to nothing to be allocated again, so nothing on disk says how far it
//!   had come, and a crash between allocation and use is harmless.
//! - One slice is asked for at a time. A file system may hold up what is read and written in a file
//!   while it allocates, so slices are short ([`SLICE_BYTES`]).
//!
//! A refusal is an answer like any other. The parts that are tried become smaller, down to one
//! container, so that all the room there is can be used; then the zone counts as refused until a
//! later attempt succeeds.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use format::units::CONTAINER_BYTES;

use crate::doorbell::Doorbell;

/// Steps are a part of the zone: small beside what it will be, so that little is taken that nobody
/// uses.
const STEPS_PER_ZONE: u64 = 64;
/// A step that fast clients do not use up while the next one is asked for.
const STEP_BYTES_MIN: u64 = 64 << 20;
const STEP_BYTES_MAX: u64 = 4 << 30;
/// Asked for at once.
const SLICE_BYTES: u64 = 256 << 20;
const UNIT_BYTES: u64 = CONTAINER_BYTES as u64;

/// How far ahead of use a data zone of `zone_bytes` is allocated: 1/64 of it, 64 MiB to 4 GiB,
/// whole containers, and no more than the zone has.
///
/// ```
/// assert_eq!(disk::allocation_step_bytes(40 << 30), 640 << 20);
/// assert_eq!(disk::allocation_step_bytes(1 << 30), 64 << 20);
/// assert_eq!(disk::allocation_step_bytes(16 << 20), 16 << 20);
/// ```
#[must_use]
pub fn allocation_step_bytes(zone_bytes: u64) -> u64 {
    let step_bytes = (zone_bytes / STEPS_PER_ZONE).next_multiple_of(UNIT_BYTES);
    step_bytes.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX).min(zone_bytes)
}

/// What a zone lives on, as far as room is concerned. All of it may take its time: it is called on
/// the thread of [`AllocationAhead`].
pub trait Medium: Send {
    /// Gives this stretch of the zone room of its own. What has it already costs next to nothing.
    ///
    /// # Errors
    /// The medium refuses; a part of the stretch may have got room.
    fn allocate(&self, stretch: Range<u64>) -> io::Result<()>;

    /// What the medium has free.
    ///
    /// # Errors
    /// It cannot be asked.
    fn free_bytes(&self) -> io::Result<u64>;

    /// What the zone takes of the medium now.
    ///
    /// # Errors
    /// It cannot be asked.
    fn taken_bytes(&self) -> io::Result<u64>;

    /// Tells media apart: zones whose media have the same number share what is free.
    fn number(&self) -> u64;
}

/// A data zone that is allocated as it fills.
pub struct SparseZone {
    /// Its number among the data zones.
    pub number: u16,
    /// What the medium has given of it, from its start on.
    pub allocated_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
    /// What it lives on.
    pub medium: Box<dyn Medium>,
}

/// How far the allocation of a zone has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneAllocation {
    /// Its number among the data zones.
    pub number: u16,
    /// Bytes from the start of the zone on that the medium has given room for.
    pub allocated_bytes: u64,
    /// Whether more was asked for and the answer is still to come.
    pub is_under_way: bool,
    /// Why the medium has refused the last attempt; None after one that succeeded.
    pub refusal: Option<String>,
}

/// Allocates zones ahead of their use, on a thread of its own; see the head of this file.
pub struct AllocationAhead {
    shared: Arc<Shared>,
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    /// Allocates the zone at this place in the list up to an offset.
    Allocate { at: usize, end_bytes: u64 },
    /// Looks at what the media have free.
    Look,
}

struct Shared {
    doorbell: Doorbell,
    zones: Mutex<Vec<Zone>>,
    /// Counts the changes of `zones` that the owner wants to hear of.
    changes: AtomicU64,
}

struct Zone {
    allocation: ZoneAllocation,
    length_bytes: u64,
    medium_number: u64,
    /// When it was last looked at.
    free_bytes: u64,
    taken_bytes: u64,
}

impl AllocationAhead {
    /// Starts the thread; what it gets done rings `doorbell`.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(zones: Vec<SparseZone>, doorbell: &Doorbell) -> io::Result<Self> {
        let mut states = Vec::new();
        let mut media = Vec::new();
        for SparseZone { number, allocated_bytes, length_bytes, medium } in zones {
            let allocation =
                ZoneAllocation { number, allocated_bytes, is_under_way: false, refusal: None };
            let mut zone = Zone {
                allocation,
                length_bytes,
                medium_number: medium.number(),
                free_bytes: u64::MAX,
                taken_bytes: allocated_bytes,
            };
            zone.seen(&Look::at(&*medium));
            states.push(zone);
            media.push(medium);
        }
        let shared = Arc::new(Shared {
            doorbell: doorbell.clone(),
            zones: Mutex::new(states),
            changes: AtomicU64::new(1),
        });
        let (orders, received) = channel();
        let at_work = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("disk-ahead".to_owned())
            .spawn(move || at_work.work(&media, &received))?;
        Ok(Self { shared, orders: Some(orders), thread: Some(thread) })
    }

    /// How far all zones have come, if that has changed since `seen` was last given here; a new
    /// `seen` is 0.
    pub fn changed(&self, seen: &mut u64) -> Option<Vec<ZoneAllocation>> {
        let changes = self.shared.changes.load(Ordering::Acquire);
        (std::mem::replace(seen, changes) != changes).then(|| {
            let zones = self.shared.lock();
            zones.iter().map(|zone| zone.allocation.clone()).collect()
        })
    }

    /// Bytes from the start of a data zone on that have room of their own; None of a zone that is
    /// not allocated here.
    #[must_use]
    pub fn allocated_bytes(&self, number: u16) -> Option<u64> {
        let zones = self.shared.lock();
        let zone = zones.iter().find(|zone| zone.allocation.number == number)?;
        Some(zone.allocation.allocated_bytes)
    }

    /// Asks for room up to `end_bytes` of a data zone; returns at once. Nothing is asked for while
    /// an earlier answer of that zone is still to come.
    pub fn allocate(&self, number: u16, end_bytes: u64) {
        let mut zones = self.shared.lock();
        let found = zones.iter_mut().zip(0..).find(|(zone, _)| zone.allocation.number == number);
        let Some((zone, at)) = found else { return };
        if zone.allocation.is_under_way || end_bytes <= zone.allocation.allocated_bytes {
            return;
        }
        zone.allocation.is_under_way = true;
        drop(zones);
        self.order(Order::Allocate { at, end_bytes });
    }

    /// Has the media looked at, on the thread.
    pub fn look(&self) {
        self.order(Order::Look);
    }

    /// What the media had free when last looked at, as far as the zones can still use it.
    #[must_use]
    pub fn obtainable_bytes(&self) -> u64 {
        let zones = self.shared.lock();
        let mut by_medium: Vec<(u64, u64, u64)> = Vec::new();
        for zone in zones.iter().filter(|zone| zone.allocation.refusal.is_none()) {
            let left_bytes = zone.length_bytes.saturating_sub(zone.allocation.allocated_bytes);
            match by_medium.iter_mut().find(|(number, ..)| *number == zone.medium_number) {
                Some((_, left, _)) => *left += left_bytes,
                None => by_medium.push((zone.medium_number, left_bytes, zone.free_bytes)),
            }
        }
        by_medium.iter().map(|(_, left_bytes, free_bytes)| left_bytes.min(free_bytes)).sum()
    }

    /// What a data zone took of its medium when it was last looked at; None of a zone that is not
    /// allocated here.
    #[must_use]
    pub fn taken_bytes(&self, number: u16) -> Option<u64> {
        let zones = self.shared.lock();
        let zone = zones.iter().find(|zone| zone.allocation.number == number)?;
        Some(zone.taken_bytes.max(zone.allocation.allocated_bytes))
    }

    /// A data zone has another length now.
    pub(crate) fn set_length(&self, number: u16, length_bytes: u64) {
        let mut zones = self.shared.lock();
        if let Some(zone) = zones.iter_mut().find(|zone| zone.allocation.number == number) {
            zone.length_bytes = length_bytes;
        }
    }

    /// The data zones that are allocated here.
    pub(crate) fn numbers(&self) -> Vec<u16> {
        self.shared.lock().iter().map(|zone| zone.allocation.number).collect()
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A thread that has panicked answers nothing more; what is allocated stays.
            let _ = orders.send(order);
        }
    }
}

impl Drop for AllocationAhead {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a medium says of its room; what cannot be asked is None.
struct Look {
    free_bytes: Option<u64>,
    taken_bytes: Option<u64>,
}

impl Look {
    fn at(medium: &dyn Medium) -> Self {
        Self { free_bytes: medium.free_bytes().ok(), taken_bytes: medium.taken_bytes().ok() }
    }
}

impl Zone {
    fn allocated_bytes(&self) -> u64 {
        self.allocation.allocated_bytes
    }

    /// What could not be asked stays as it was.
    fn seen(&mut self, look: &Look) {
        self.free_bytes = look.free_bytes.unwrap_or(self.free_bytes);
        self.taken_bytes = look.taken_bytes.unwrap_or(self.taken_bytes);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Zone>> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, media: &[Box<dyn Medium>], orders: &Receiver<Order>) {
        for order in orders {
            match order {
                Order::Allocate { at, end_bytes } => {
                    if let Some(medium) = media.get(at) {
                        let outcome = self.allocate(at, &**medium, end_bytes);
                        self.settle(at, &**medium, outcome);
                    }
                }
                Order::Look => {
                    for (at, medium) in media.iter().enumerate() {
                        let look = Look::at(&**medium);
                        self.change(at, |zone| zone.seen(&look));
                    }
                }
            }
        }
    }

    /// Asks for one slice after the other, of a refused one for smaller and smaller parts.
    fn allocate(&self, at: usize, medium: &dyn Medium, end_bytes: u64) -> io::Result<()> {
        let mut part_bytes = SLICE_BYTES;
        loop {
            let start_bytes = self.lock().get(at).map_or(end_bytes, Zone::allocated_bytes);
            if start_bytes >= end_bytes {
                return Ok(());
            }
            let stretch = start_bytes..end_bytes.min(start_bytes + part_bytes);
            match medium.allocate(stretch.clone()) {
                Ok(()) => {
                    self.change(at, |zone| zone.allocation.allocated_bytes = stretch.end);
                    self.announce();
                }
                Err(error) if is_no_space(&error) && part_bytes > UNIT_BYTES => {
                    part_bytes = (part_bytes / 2).max(UNIT_BYTES);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn settle(&self, at: usize, medium: &dyn Medium, outcome: io::Result<()>) {
        // Asked without the lock, which the owner's thread takes as well.
        let look = Look::at(medium);
        self.change(at, |zone| {
            zone.allocation.is_under_way = false;
            zone.allocation.refusal = outcome.err().map(|error| error.to_string());
            zone.seen(&look);
        });
        self.announce();
    }

    fn change(&self, at: usize, change: impl FnOnce(&mut Zone)) {
        if let Some(zone) = self.lock().get_mut(at) {
            change(zone);
        }
    }

    fn announce(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.doorbell.ring();
    }
}

/// Whether it is for want of room that a medium refuses.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

#[cfg(test)]
mod tests;
