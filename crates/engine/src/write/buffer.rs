//! The write buffer: what is acknowledged and not yet in the tables.
//!
//! Work enters the *open group* in the order of the intake queue. Groups are closed, go through
//! the stages of [`Stage`] and are applied strictly in order; each becomes one journal record, so
//! after a crash it is there whole or not at all. A write absorbs an earlier write to the same
//! chunk only inside the open group: absorbing across groups would reorder writes and break the
//! prefix promise.
//!
//! A group holds one kind of [`Work`]. Large unmaps and changes of volumes are groups of their own,
//! because a slot of an open group has no order against its other slots; small unmaps are slots
//! that hold zeros.
//!
//! What a read must see of it, the newest buffered event of a chunk, is found in
//! [`crate::write::newest`].

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use format::record::Change;
use format::units::{Lba, Pbn, VolumeId};
use hashbrown::HashSet;
use hashbrown::hash_map::Entry;
use mutants::mutant;
use reduce::{ChunkBuf, FrameEnd};

use crate::copy_range::copied_range::CopiedRange;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::VolumeInfo;
use crate::door::volume::{QuotaShare, VolumeShared};
use crate::duplicates::candidates::{Candidate, Compared};
use crate::options::FRAMES_BYTES_MAX;
use crate::place_hash::PlaceMap;
use crate::write::offloaded::Offloaded;
use crate::write::partial::{Ack, ChunkPart, Partial};
use crate::write::slot::{GROUP_BYTES, Plan, Slot, SlotData, SlotPlace, group_slots};
use crate::write::written::Written;

/// Lists of slots that are kept for later groups.
const SPENT_MAX: usize = 64;

/// Groups beyond which an unmap is answered when it is applied. It takes no memory of payloads, so
/// that nothing else holds back who sends them faster than they are applied; and every look at what
/// is buffered goes through those that are long.
const GROUPS_UNMAPPED_MAX: usize = 64;

/// Groups whose frames are in memory beside their chunks: enough that the workers always have work,
/// and a bound of memory. As many may have payloads beside them that were made ahead.
pub(crate) const GROUPS_LOOKED_UP_MAX: usize = FRAMES_BYTES_MAX / GROUP_BYTES;
const _: () = assert!(GROUPS_LOOKED_UP_MAX > 1);

/// How far a group has come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Takes writes.
    Open,
    /// Closed; partly written chunks may still wait for the rest of their bytes.
    Filling,
    /// Workers fingerprint its chunks.
    Fingerprinting,
    /// Waits for its turn and its buckets, and until its chunks are compared with what those name.
    LookingUp,
    /// Workers compress its unique chunks.
    Compressing,
    /// Waits for its turn, its pages and room in the journal.
    Applying,
}

/// What a group does.
pub(crate) enum Work {
    /// Writes chunks.
    Slots(Vec<Slot>),
    /// Unmaps a range of chunks; `first` moves on as pieces of it are applied.
    Unmap { volume: Arc<VolumeShared>, first: u64, end: u64 },
    /// Maps chunks that another version maps; the range moves on as pieces of it are applied.
    Copy(CopiedRange),
    /// Changes volumes or settings.
    Admin { changes: Vec<Change>, answer: Option<AdminAnswer> },
}

/// How an administrative change is answered once it is durable.
pub(crate) enum AdminAnswer {
    Done(Done<()>),
    /// With what the volume has become.
    Volume(Done<VolumeInfo>, VolumeId),
}

/// Frames that one compression job made.
pub(crate) struct Frames {
    pub(crate) bytes: Arc<ChunkBuf>,
    pub(crate) ends: Vec<FrameEnd>,
}

/// A unit of the prefix order.
pub(crate) struct Group {
    pub(crate) id: u64,
    pub(crate) stage: Stage,
    pub(crate) work: Work,
    /// Whether chunks may be among its slots that their writers asked not to be looked for.
    pub(crate) has_unindexed: bool,
    /// Worker jobs that are still out.
    pub(crate) jobs_out: usize,
    /// Slots that are still being compared.
    pub(crate) comparisons_out: usize,
    /// What each slot may be a duplicate of, where bytes are compared; else empty.
    pub(crate) compared: Vec<Option<Compared>>,
    /// What an accelerator has of it, until it is looked up.
    pub(crate) offloaded: Option<Box<Offloaded>>,
    /// Results of compression jobs, by job.
    pub(crate) frames: Vec<Option<Frames>>,
    /// Chunk counts of the writes whose reservation ends with this group.
    pub(crate) reservations: Vec<u64>,
    /// Shares of quotas that end with it.
    pub(crate) quotas: Vec<QuotaShare>,
    /// Requests that are answered when it is applied.
    pub(crate) answers: Vec<Arc<Ack>>,
}

impl Group {
    fn new(id: u64, work: Work) -> Self {
        Self {
            id,
            stage: Stage::Open,
            work,
            has_unindexed: false,
            jobs_out: 0,
            comparisons_out: 0,
            compared: Vec::new(),
            offloaded: None,
            frames: Vec::new(),
            reservations: Vec::new(),
            quotas: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// The slots of a group that writes.
    pub(crate) fn slots(&self) -> &[Slot] {
        match &self.work {
            Work::Slots(slots) => slots,
            _ => &[],
        }
    }

    /// The same, to be changed.
    pub(crate) fn slots_mut(&mut self) -> &mut [Slot] {
        match &mut self.work {
            Work::Slots(slots) => slots,
            _ => &mut [],
        }
    }

    /// What waits for it to be applied hears that it will not be.
    pub(crate) fn fail(&mut self, error: &RequestError) {
        if let Work::Admin { answer, .. } = &mut self.work
            && let Some(answer) = answer.take()
        {
            answer.fail(error.clone());
        }
        if let Work::Copy(range) = &mut self.work {
            // What it has not done it never does: nobody waits for it any more.
            range.chunks = 0;
        }
        self.slots().iter().for_each(|slot| slot.data.fail(error));
        self.answers.drain(..).for_each(|ack| ack.fail(error));
    }

    /// What a slot may be a duplicate of, where bytes are compared.
    pub(crate) fn compared(&self, slot: usize) -> Option<Compared> {
        self.compared.get(slot).copied().flatten()
    }
}

/// All groups that are not applied, and what they hold of each chunk.
pub(crate) struct WriteBuffer {
    pub(crate) groups: VecDeque<Group>,
    /// The newest slot of each chunk.
    pub(super) newest: PlaceMap<(VolumeId, Lba), SlotPlace>,
    /// Empty lists of slots that groups have left: memory that is new costs more than all else that
    /// is done to a slot.
    spent: Vec<Vec<Slot>>,
    next_group: u64,
    chunk_bytes: usize,
    /// Slots of a group, at most.
    pub(crate) group_slots: usize,
    /// Partly written slots, by group and place.
    pub(crate) unfilled: Vec<(u64, usize)>,
    /// Chunks that were written whole, and over what was written in the same group.
    pub(crate) absorbed: u64,
}

impl WriteBuffer {
    pub(crate) fn new(chunk_bytes: u32) -> Self {
        Self {
            groups: VecDeque::new(),
            newest: PlaceMap::default(),
            spent: Vec::new(),
            next_group: 1,
            chunk_bytes: chunk_bytes as usize,
            group_slots: group_slots(chunk_bytes as usize),
            unfilled: Vec::new(),
            absorbed: 0,
        }
    }

    /// The group of this number, if it is not applied yet.
    pub(crate) fn group(&self, id: u64) -> Option<&Group> {
        self.groups.get(self.at(id)?)
    }

    /// The same, to be changed.
    pub(crate) fn group_mut(&mut self, id: u64) -> Option<&mut Group> {
        let at = self.at(id)?;
        self.groups.get_mut(at)
    }

    /// Jobs of this number fingerprint a group's chunks.
    pub(crate) fn fingerprints_wanted(&mut self, id: u64, jobs_out: usize) {
        if let Some(group) = self.group_mut(id) {
            group.jobs_out = jobs_out;
            group.stage = if jobs_out == 0 { Stage::LookingUp } else { Stage::Fingerprinting };
        }
    }

    fn at(&self, id: u64) -> Option<usize> {
        let first = self.groups.front()?.id;
        usize::try_from(id.checked_sub(first)?).ok()
    }

    /// Number of the newest group that has been begun.
    pub(crate) fn newest_group(&self) -> u64 {
        self.next_group - 1
    }

    /// Number of the newest group that has been applied.
    pub(crate) fn applied_group(&self) -> u64 {
        self.groups.front().map_or(self.next_group, |group| group.id) - 1
    }

    /// Whether there is an open group.
    pub(crate) fn has_open(&self) -> bool {
        self.groups.back().is_some_and(|group| group.stage == Stage::Open)
    }

    /// Groups that are closed and not applied.
    pub(crate) fn closed_groups(&self) -> usize {
        self.groups.len() - usize::from(self.has_open())
    }

    /// Closes the open group, if there is one.
    pub(crate) fn close_open(&mut self) {
        if let Some(group) = self.groups.back_mut()
            && group.stage == Stage::Open
        {
            group.stage = Stage::Filling;
        }
    }

    fn begin(&mut self, work: Work) -> &mut Group {
        let id = self.next_group;
        self.next_group += 1;
        self.groups.push_back(Group::new(id, work));
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// Adds a group that is closed at once; returns its number.
    pub(crate) fn push_closed(&mut self, work: Work) -> u64 {
        self.close_open();
        let group = self.begin(work);
        group.stage = Stage::Filling;
        group.id
    }

    /// The reservation of a write of `chunks`, if it has any, ends with the newest group.
    pub(crate) fn reserve_with_newest(&mut self, chunks: u64) {
        if let Some(group) = self.groups.back_mut().filter(|_| chunks > 0) {
            group.reservations.push(chunks);
        }
    }

    /// A share of a quota ends with the newest group.
    pub(crate) fn hold_quota_with_newest(&mut self, share: Option<QuotaShare>) {
        if let Some(group) = self.groups.back_mut() {
            group.quotas.extend(share);
        }
    }

    /// Whether there are so many groups that who makes more is to wait for them.
    pub(crate) fn is_crowded(&self) -> bool {
        self.groups.len() > GROUPS_UNMAPPED_MAX
    }

    /// A request is answered when the newest group is applied.
    pub(crate) fn answer_with_newest(&mut self, ack: Arc<Ack>) {
        match self.groups.back_mut() {
            Some(group) => group.answers.push(ack),
            None => ack.part_done(),
        }
    }

    /// Whether anything of a volume is buffered.
    pub(crate) fn holds_any_of(&self, volume: VolumeId) -> bool {
        let slots = self.groups.iter().flat_map(Group::slots);
        self.unmaps(volume).next().is_some()
            || self.copies_to(volume).next().is_some()
            || slots.into_iter().any(|slot| slot.volume == volume)
    }

    /// Puts a whole chunk (or zeros) into the open group.
    pub(crate) fn put(&mut self, volume: VolumeId, lba: Lba, data: SlotData) {
        if !self.has_open() {
            let slots = self.spent.pop().unwrap_or_else(|| Vec::with_capacity(self.group_slots));
            self.begin(Work::Slots(slots));
        }
        let Some(Group { id, stage, work: Work::Slots(slots), .. }) = self.groups.back_mut() else {
            unreachable!("the group that is open has slots: others are closed at once");
        };
        let next = SlotPlace::new(*id, slots.len());
        match self.newest.entry((volume, lba)) {
            Entry::Occupied(newest) if newest.get().group() == *id => {
                let absorbing = slots.get_mut(newest.get().slot());
                if let Some(slot) = absorbing.filter(|_| !mutant!(KeepsOlderWrite)) {
                    slot.unindexed = false;
                    let earlier = std::mem::replace(&mut slot.data, data);
                    self.absorbed += u64::from(!matches!(earlier, SlotData::Zeros));
                    earlier.answer();
                }
                return;
            }
            Entry::Occupied(mut earlier) => *earlier.get_mut() = next,
            Entry::Vacant(vacant) => {
                vacant.insert(next);
            }
        }
        slots.push(Slot::new(volume, lba, data));
        if slots.len() == self.group_slots {
            *stage = Stage::Filling;
        }
    }

    /// What was put last of these chunks is not to be looked for. It is in groups that have not
    /// been fingerprinted.
    pub(crate) fn leave_unindexed(&mut self, volume: VolumeId, lbas: Range<u64>) {
        for lba in lbas {
            // A hint: where it reaches nothing, the chunk is looked for as any other.
            let Some(place) = self.newest.get(&(volume, Lba(lba))).copied() else { continue };
            let Some(group) = self.group_mut(place.group()) else { continue };
            group.has_unindexed = true;
            if let Some(slot) = group.slots_mut().get_mut(place.slot()) {
                slot.unindexed = true;
            }
        }
    }

    /// Puts some bytes of a chunk into the open group.
    pub(crate) fn put_part(&mut self, volume: VolumeId, lba: Lba, part: &ChunkPart<'_>) {
        let base = self.base_of(volume, lba);
        let chunk_bytes = self.chunk_bytes;
        if let Some(slot) = self.slot_in_open(volume, lba) {
            slot.unindexed = false;
            slot.data.lay_over(chunk_bytes, part);
        } else {
            let mut data = SlotData::Partial(Box::new(Partial {
                base,
                overlay: vec![0; chunk_bytes],
                written: Written::default(),
                credit: None,
                acks: Vec::new(),
            }));
            // Before it is put: the last slot of a group closes the group.
            data.lay_over(chunk_bytes, part);
            self.put(volume, lba, data);
        }
        let Some(place) = self.newest.get(&(volume, lba)) else {
            unreachable!("what was put last of a chunk is the newest of it");
        };
        let place = (place.group(), place.slot());
        if !self.unfilled.contains(&place) {
            self.unfilled.push(place);
        }
    }

    fn slot_in_open(&mut self, volume: VolumeId, lba: Lba) -> Option<&mut Slot> {
        let place = self.newest.get(&(volume, lba))?;
        let open = self.groups.back_mut()?;
        if open.stage != Stage::Open || open.id != place.group() {
            return None;
        }
        open.slots_mut().get_mut(place.slot())
    }

    /// A slot whose write failed changes nothing, and nobody sees it any more.
    pub(crate) fn void_slot(&mut self, id: u64, at: usize) {
        let Some(slot) = self.group_mut(id).and_then(|group| group.slots_mut().get_mut(at)) else {
            return;
        };
        slot.plan = Plan::Void;
        slot.data = SlotData::Zeros;
        let key = (slot.volume, slot.lba);
        no_longer_newest(&mut self.newest, key, SlotPlace::new(id, at));
    }

    /// Whether a slot still counts: its group is not applied and its write has not failed.
    pub(crate) fn is_buffered(&self, group: u64, slot: usize) -> bool {
        self.slot(group, slot).is_some_and(|slot| slot.plan != Plan::Void)
    }

    /// Removes the oldest group, which has been applied, and lets its slots go.
    pub(crate) fn pop_applied(&mut self) -> Option<Group> {
        let mut group = self.groups.pop_front()?;
        if let Work::Slots(slots) = &mut group.work {
            for (at, slot) in slots.drain(..).enumerate() {
                let key = (slot.volume, slot.lba);
                no_longer_newest(&mut self.newest, key, SlotPlace::new(group.id, at));
            }
            if self.spent.len() < SPENT_MAX {
                self.spent.push(std::mem::take(slots));
            }
        }
        Some(group)
    }

    /// Stored chunks that groups are about to retain, or are compared with: collection must not
    /// forget them.
    pub(crate) fn held(&self) -> HashSet<Pbn> {
        let planned = self.groups.iter().flat_map(|group| {
            group.slots().iter().enumerate().map(|(at, slot)| (slot.plan, group.compared(at)))
        });
        planned
            .filter_map(|planned| match planned {
                (Plan::Duplicate(pbn) | Plan::Heal { pbn, .. }, _) => Some(pbn),
                (Plan::Undecided, Some(Compared { with: Candidate::Chunk(pbn), .. })) => Some(pbn),
                _ => None,
            })
            .collect()
    }

    /// The bytes of a filled slot: None for zeros.
    pub(crate) fn slot(&self, group: u64, slot: usize) -> Option<&Slot> {
        self.group(group)?.slots().get(slot)
    }
}

fn no_longer_newest(
    newest: &mut PlaceMap<(VolumeId, Lba), SlotPlace>,
    key: (VolumeId, Lba),
    place: SlotPlace,
) {
    if let Entry::Occupied(newest) = newest.entry(key)
        && *newest.get() == place
    {
        newest.remove();
    }
}

impl AdminAnswer {
    fn fail(self, error: RequestError) {
        match self {
            Self::Done(done) => done.fail(error),
            Self::Volume(done, _) => done.fail(error),
        }
    }
}
