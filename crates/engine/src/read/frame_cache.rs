//! Frames in memory, by the name of their chunk: what was read or compared is not read again.
//!
//! ```text
//! absent --expect--> coming --arrive--> small queue --had again--> main queue --not had--> absent
//!                      |                    '--not had--> absent, a ghost --arrive--> main queue
//!                      '--settle: forgotten or placed anew--> absent
//! ```
//!
//! What was verified elsewhere arrives by `keep`, whether it is expected or not.
//!
//! The name is the PBN, so one frame serves every address of every volume that shares the chunk,
//! and collection may move it. Frames are kept as they are stored, compressed: twice as many fit as
//! of plain chunks, and the caller expands them on its own thread (decisions/023).
//!
//! Invariant: **a frame that is held is a sound frame of the chunk that its PBN names now**, and
//! has the check that the PBN-PBA table repeats. A PBN changes what it means by `Forget` only, and
//! its frame by `Move` only, and every record passes through [`FrameCache::settle`]. A frame on its
//! way from the device may have been read before such a change: it is held only if nothing has
//! happened to its PBN since it was expected, which its ticket says. What lets it arrive has
//! verified it. Damage that comes to the disk later is therefore seen by scrub, not by who reads.
//!
//! Replacement is S3-FIFO, by bytes: the small queue has a tenth of them, so what is read once,
//! like a backup, pushes out nothing that is read again. A hit sets a mark and moves nothing.
//! Each frame is counted as the allocator rounds it, with its entries in map, queues and ghosts, so
//! that the bound is one of memory.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use format::frame;
use format::record::Change;
use format::units::{Pba, Pbn};
use hashbrown::HashMap;
use mutants::mutant;
use tables::Queues;

/// What map, queues and ghosts cost for each frame, when their tables have just doubled.
const ENTRY_COST_BYTES: u64 = 160;

/// The counts in front of a shared frame. The rest of what shares it, and where doors find it, is
/// left out of the bound beforehand ([`crate::options`]).
const SHARED_HEADER_BYTES: usize = 16;

/// Being had more often than this between two looks of eviction counts no more.
const WANTED_MAX: u8 = 3;

/// Entries that eviction looks at for one frame; then the next one goes, whatever wants it.
const STEPS_MAX: usize = 64;

/// Says that a frame was expected before it came.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// A frame that a reader may hold on to.
#[derive(Debug)]
pub(crate) struct HeldFrame {
    bytes: Box<[u8]>,
    /// How often it was had, up to a few: eviction counts it down. Doors count, too, so it may be
    /// off by one.
    wanted: AtomicU8,
}

impl HeldFrame {
    pub(crate) fn new(frame: &[u8]) -> Arc<Self> {
        Arc::new(Self { bytes: Box::from(frame), wanted: AtomicU8::new(0) })
    }

    /// It was had once more.
    pub(crate) fn mark_wanted(&self) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        if wanted < WANTED_MAX {
            self.wanted.store(wanted + 1, Ordering::Relaxed);
        }
    }

    /// Whether it was had since it was last unmarked so often; once less from now on.
    fn take_mark(&self) -> bool {
        let wanted = self.wanted.load(Ordering::Relaxed);
        self.wanted.store(wanted.saturating_sub(1), Ordering::Relaxed);
        wanted > 0
    }

    /// Whether it was had; forgotten by this.
    fn take_all_marks(&self) -> bool {
        self.wanted.swap(0, Ordering::Relaxed) > 0
    }
}

impl Deref for HeldFrame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

struct Held {
    frame: Arc<HeldFrame>,
    serial: u32,
    in_main: bool,
}

/// A frame in a queue, if the one that is held has this serial.
type Entry = (Pbn, u32);

/// The frames in memory.
pub(crate) struct FrameCache {
    held: HashMap<Pbn, Held>,
    /// Frames that are being read, and by whom; not those whose PBN has changed since, nor those
    /// that are held already: what came would be counted twice.
    coming: HashMap<Pbn, Ticket>,
    queues: Queues<Entry, Pbn>,
    /// What all frames cost, and those of the small queue.
    bytes: u64,
    small_bytes: u64,
    bytes_max: u64,
    /// Of `bytes_max`, what others have for now.
    lent_bytes: u64,
    ticket_next: u64,
    serial_next: u32,
}

impl FrameCache {
    /// A cache that takes no more memory than `bytes_max`; 0: none.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            held: HashMap::new(),
            coming: HashMap::new(),
            queues: Queues::default(),
            bytes: 0,
            small_bytes: 0,
            bytes_max,
            lent_bytes: 0,
            ticket_next: 0,
            serial_next: 0,
        }
    }

    /// The frame of a chunk, if it is held.
    pub(crate) fn get(&self, pbn: Pbn) -> Option<Arc<HeldFrame>> {
        let held = self.held.get(&pbn)?;
        held.frame.mark_wanted();
        Some(Arc::clone(&held.frame))
    }

    /// A ticket for the frames of one read.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.ticket_next += 1;
        Ticket(self.ticket_next)
    }

    /// Whether the frame of a chunk is held.
    pub(crate) fn contains(&self, pbn: Pbn) -> bool {
        self.held.contains_key(&pbn)
    }

    /// Holds a frame that was verified just now, by what the tables say now. None: there is no room
    /// for it.
    pub(crate) fn keep(&mut self, pbn: Pbn, frame: &[u8]) -> Option<Arc<HeldFrame>> {
        match self.held.get(&pbn) {
            Some(held) => Some(Arc::clone(&held.frame)),
            None => self.hold(pbn, frame),
        }
    }

    /// The frame that the PBN-PBA table names for this chunk is about to be read. Where it is
    /// expected already, the first that asked lets it in.
    pub(crate) fn expect(&mut self, pbn: Pbn, ticket: Ticket) {
        if self.bytes_max > 0 && !self.held.contains_key(&pbn) {
            self.coming.entry(pbn).or_insert(ticket);
        }
    }

    /// What was expected has come: the frame, if it is the one that was meant, or none. What is
    /// held from now on.
    pub(crate) fn arrive(
        &mut self,
        pbn: Pbn,
        ticket: Ticket,
        frame: Option<&[u8]>,
    ) -> Option<Arc<HeldFrame>> {
        if !self.is_expected(pbn, ticket) {
            return None;
        }
        self.coming.remove(&pbn);
        frame.and_then(|frame| self.hold(pbn, frame))
    }

    /// Whether a frame that comes for this ticket is let in: else nobody need verify it.
    pub(crate) fn is_expected(&self, pbn: Pbn, ticket: Ticket) -> bool {
        self.coming.get(&pbn) == Some(&ticket)
    }

    /// A change has been applied: what it makes untrue leaves.
    pub(crate) fn settle(&mut self, change: &Change) {
        match change {
            Change::Forget { pbn, .. } if !mutant!(KeepsForgottenFrame) => self.forget(*pbn),
            Change::Move { pbn, to, .. } => {
                self.coming.remove(pbn);
                if self.held.get(pbn).is_some_and(|held| !is_at(&held.frame, *to)) {
                    self.forget(*pbn);
                }
            }
            _ => {}
        }
    }

    /// Memory that it takes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory that it takes at most.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Others have so much of its memory: what is held already stays, and what comes makes room.
    pub(crate) fn lend(&mut self, bytes: u64) {
        self.lent_bytes = bytes;
    }

    /// Lets so many bytes of frames go, those that were wanted least.
    pub(crate) fn give_up(&mut self, bytes: u64) {
        self.shrink_to(self.bytes.saturating_sub(bytes));
    }

    /// Frames that are held.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    fn forget(&mut self, pbn: Pbn) {
        self.coming.remove(&pbn);
        self.let_go(pbn);
    }

    fn hold(&mut self, pbn: Pbn, frame: &[u8]) -> Option<Arc<HeldFrame>> {
        let cost_bytes = cost_bytes(frame.len());
        let bytes_max = self.bytes_max.saturating_sub(self.lent_bytes);
        if cost_bytes > bytes_max {
            return None;
        }
        self.coming.remove(&pbn);
        self.shrink_to(bytes_max - cost_bytes);
        let in_main = self.queues.ghosts.take(pbn);
        let serial = self.serial_next;
        self.serial_next = serial.wrapping_add(1);
        let frame = HeldFrame::new(frame);
        self.held.insert(pbn, Held { frame: Arc::clone(&frame), serial, in_main });
        self.bytes += cost_bytes;
        self.small_bytes += if in_main { 0 } else { cost_bytes };
        self.queues.push(in_main, (pbn, serial));
        if self.queues.are_stale(self.held.len()) {
            let held = &self.held;
            self.queues
                .retain(|(pbn, serial)| held.get(pbn).is_some_and(|held| held.serial == *serial));
        }
        Some(frame)
    }

    fn shrink_to(&mut self, bytes_max: u64) {
        let mut steps = 0;
        while self.bytes > bytes_max {
            steps += 1;
            let is_patient = steps <= STEPS_MAX;
            if self.small_bytes > bytes_max / 10 || self.queues.main.is_empty() {
                let Some(entry) = self.queues.small.pop_front() else { return };
                self.pass_small(entry, is_patient);
            } else if let Some(entry) = self.queues.main.pop_front() {
                self.pass_main(entry, is_patient);
            }
        }
    }

    fn pass_small(&mut self, entry: Entry, is_patient: bool) {
        let (pbn, _) = entry;
        let Some(held) = self.held_by(entry) else { return };
        if is_patient && held.frame.take_all_marks() {
            held.in_main = true;
            self.small_bytes -= cost_bytes(held.frame.len());
            return self.queues.push(true, entry);
        }
        self.let_go(pbn);
        let ghosts_max = self.held.len().max(1);
        self.queues.ghosts.add(pbn, ghosts_max);
    }

    fn pass_main(&mut self, entry: Entry, is_patient: bool) {
        let Some(held) = self.held_by(entry) else { return };
        if is_patient && held.frame.take_mark() {
            return self.queues.push(true, entry);
        }
        self.let_go(entry.0);
    }

    /// What an entry of a queue is of, if it is still held.
    fn held_by(&mut self, (pbn, serial): Entry) -> Option<&mut Held> {
        self.held.get_mut(&pbn).filter(|held| held.serial == serial)
    }

    fn let_go(&mut self, pbn: Pbn) {
        let Some(held) = self.held.remove(&pbn) else { return };
        let cost_bytes = cost_bytes(held.frame.len());
        self.bytes -= cost_bytes;
        self.small_bytes -= if held.in_main { 0 } else { cost_bytes };
    }
}

/// Whether these are the bytes that the tables mean by a place.
fn is_at(frame: &[u8], pba: Pba) -> bool {
    frame.len() == pba.length_bytes as usize && pba.check.allows(frame::check_of(frame))
}

/// What a frame takes of the memory: allocators have four sizes in each doubling.
fn cost_bytes(length_bytes: usize) -> u64 {
    let length_bytes = length_bytes + SHARED_HEADER_BYTES;
    let step_bytes = (length_bytes.next_power_of_two() / 8).max(16);
    length_bytes.next_multiple_of(step_bytes) as u64 + ENTRY_COST_BYTES
}

#[cfg(test)]
mod tests;
