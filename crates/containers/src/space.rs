//! Which containers are free, which are in use, and how much lives in them.
//!
//! A container that was freed is not free yet. A recovery checks the frames of every record that
//! it does not *know* to be durable, and cuts the journal before the first that is missing: were
//! the container written over by then, it would cut off what a flush promised. So it is
//! *quarantined* until the record that frees it is known to be durable, that is, until a later
//! record says so and is durable itself. From then on no recovery reads what was in it: whichever
//! root slot it begins at, it replays the moves and the freeing without a look at their frames.
//! Neither may it be written while a read of it is in flight, which would return bytes of its next
//! life: such reads *pin* it.
//!
//! Of a zone that its medium allocates as it fills, only a prefix has room of its own. A container
//! behind it that nothing needs is *withheld*: it is free as soon as the medium has given it
//! ([`Space::allocated_to`]). In a zone that is to be taken out nothing is opened: it is *closed*
//! ([`Space::close_zone`]).
//!
//! The figures are in memory only. The engine opens this with what its tables say, and keeps both
//! the same. Calls that are invalid (freeing what is free) change nothing: a container that were
//! listed as free twice would be written twice.

pub use crate::compaction::SealedUse;
use crate::emptiness::{Emptiness, worth};
use crate::free_list::FreeList;
use crate::promise::usable_bytes_per_container;
use crate::space::closed::Closed;
pub use crate::space::closed::ZoneUse;
use format::superblock::Geometry;
use format::units::{ContainerId, Zone};
use hashbrown::HashMap;
use mutants::mutant;
use std::collections::VecDeque;
use std::ops::Range;

/// What a container is used for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ContainerUse {
    /// May be allocated.
    Free,
    /// Takes new frames.
    Open {
        /// Bytes of frames whose chunks are referenced.
        live_bytes: u32,
    },
    /// Full.
    Sealed(SealedUse),
    /// Freed, but a recovery may still look at its frames.
    Quarantined {
        /// Free as soon as this record of the journal is known to be durable, and no read pins it.
        record: u64,
    },
}

/// All containers of a store; see the head of this file.
pub struct Space {
    geometry: Geometry,
    /// By container.
    uses: Vec<ContainerUse>,
    free: FreeList,
    /// Sealed containers that may be collected.
    emptiness: Emptiness,
    /// Sealed containers that are marked as damaged.
    damaged: u64,
    /// In the order of the records that freed them.
    quarantine: VecDeque<u32>,
    /// Quarantined containers, the ones that only a pin still holds included.
    quarantined: u64,
    /// Records up to this one are known to be durable.
    known_durable: u64,
    /// Reads in flight, by container; no entry is none.
    pins: HashMap<u32, u32>,
    /// Containers at the start of each zone that the medium has given.
    given: Vec<u32>,
    /// Containers that nothing needs, and that the medium has not given.
    withheld: u64,
    /// Most of them that the medium is expected to give.
    expected: u64,
    /// Zones in which nothing is opened.
    closed: Closed,
}

impl Space {
    /// The containers of a store, `uses` in the order of their numbers; those it does not reach are
    /// free. Quarantined ones stay until their records are known to be durable.
    #[must_use]
    pub fn new(geometry: &Geometry, uses: impl IntoIterator<Item = ContainerUse>) -> Self {
        Self::with_allocated(geometry, &[], uses)
    }

    /// The same of a store whose data zones have room of their own up to these offsets; those that
    /// are not listed have all of it.
    #[must_use]
    pub fn with_allocated(
        geometry: &Geometry,
        allocated_bytes: &[u64],
        uses: impl IntoIterator<Item = ContainerUse>,
    ) -> Self {
        let count = geometry.containers_total() as u32;
        let rest = std::iter::repeat(ContainerUse::Free);
        let mut space = Self {
            geometry: geometry.clone(),
            uses: uses.into_iter().chain(rest).take(count as usize).collect(),
            free: FreeList::new(geometry.data.len()),
            emptiness: Emptiness::new(usable_bytes_per_container(geometry.chunk_bytes)),
            damaged: 0,
            quarantine: VecDeque::new(),
            quarantined: 0,
            known_durable: 0,
            pins: HashMap::new(),
            given: allocated_bytes
                .iter()
                .map(|&bytes| allocation::whole_containers(bytes))
                .collect(),
            withheld: 0,
            expected: u64::MAX,
            closed: Closed::new(geometry.data.len()),
        };
        space.given.resize(geometry.data.len(), u32::MAX);
        (0..count).for_each(|container| space.list(container));
        let record = |container: &u32| match space.uses[*container as usize] {
            ContainerUse::Quarantined { record } => record,
            _ => 0,
        };
        space.quarantine.make_contiguous().sort_by_key(record);
        space
    }

    /// The store has grown at its end, to `geometry`: what is new is free.
    pub fn grow(&mut self, geometry: &Geometry) {
        let (before, after) = (self.uses.len(), geometry.containers_total() as usize);
        self.geometry = geometry.clone();
        self.uses.resize(after, ContainerUse::Free);
        self.free.grow(geometry.data.len());
        self.given.resize(geometry.data.len(), u32::MAX);
        self.closed.grow(geometry.data.len());
        (before..after).for_each(|container| self.list(container as u32));
    }

    /// What a container is used for; None when the store has no such container.
    #[must_use]
    pub fn container_use(&self, id: ContainerId) -> Option<ContainerUse> {
        self.uses.get(id.0 as usize).copied()
    }

    /// Takes a free container and opens it; None when there is none.
    pub fn allocate(&mut self) -> Option<ContainerId> {
        let container = self.free.take()?;
        self.uses[container as usize] = ContainerUse::Open { live_bytes: 0 };
        Some(ContainerId(container))
    }

    /// The open container `id` is full: it may be collected from now on.
    pub fn seal(&mut self, id: ContainerId, sequence: u32, used_bytes: u32) {
        let Some(ContainerUse::Open { live_bytes }) = self.uses.get(id.0 as usize).copied() else {
            return debug_assert!(false, "sealed a container that is not open");
        };
        let sealed = SealedUse { live_bytes, used_bytes, sequence, damaged: false };
        self.uses[id.0 as usize] = ContainerUse::Sealed(sealed);
        self.list(id.0);
    }

    /// `added_bytes` of frames in a container became referenced and `removed_bytes` no longer are.
    pub fn change_live(&mut self, id: ContainerId, added_bytes: u32, removed_bytes: u32) {
        let change = |live: u32| live.saturating_add(added_bytes).saturating_sub(removed_bytes);
        match self.uses.get_mut(id.0 as usize) {
            Some(ContainerUse::Open { live_bytes }) => *live_bytes = change(*live_bytes),
            Some(ContainerUse::Sealed(sealed)) => {
                let before = *sealed;
                sealed.live_bytes = change(before.live_bytes);
                if !sealed.damaged {
                    self.emptiness.change(id.0, &before, sealed);
                }
            }
            _ => debug_assert!(false, "live bytes in a container that holds nothing"),
        }
    }

    /// A frame of the sealed container cannot be read: what is left in it stays where it is.
    pub fn mark_damaged(&mut self, id: ContainerId) {
        if let Some(ContainerUse::Sealed(sealed)) = self.uses.get_mut(id.0 as usize)
            && !sealed.damaged
        {
            sealed.damaged = true;
            self.damaged += 1;
            self.emptiness.remove(id.0, sealed);
        }
    }

    /// Every frame of the sealed container can be read again: it may be collected.
    pub fn mark_sound(&mut self, id: ContainerId) {
        if let Some(ContainerUse::Sealed(sealed)) = self.uses.get_mut(id.0 as usize)
            && sealed.damaged
        {
            sealed.damaged = false;
            self.damaged -= 1;
            self.emptiness.insert(id.0, sealed);
        }
    }

    /// Whether any container is marked as damaged.
    #[must_use]
    pub fn has_damaged(&self) -> bool {
        self.damaged > 0
    }

    /// Whether this container is marked as damaged.
    #[must_use]
    pub fn is_damaged(&self, id: ContainerId) -> bool {
        let sealed = self.uses.get(id.0 as usize);
        matches!(sealed, Some(ContainerUse::Sealed(sealed)) if sealed.damaged)
    }

    /// The oldest sealed container in which nothing lives, if it was opened before `opened_before`.
    #[must_use]
    pub fn dead(&self, opened_before: u32) -> Option<ContainerId> {
        let oldest = self.emptiness.oldest_dead()?;
        match self.uses.get(oldest as usize)? {
            ContainerUse::Sealed(sealed) if sealed.sequence < opened_before => {
                Some(ContainerId(oldest))
            }
            _ => None,
        }
    }

    /// The sealed container that is worth most to be collected when the next to be opened has this
    /// sequence number, of those that were opened before `opened_before`, are not damaged, are
    /// worth it at all ([`crate::compaction`]) and of which `may_be` says nothing else.
    #[must_use]
    pub fn victim(
        &self,
        next_sequence: u32,
        opened_before: u32,
        may_be: impl Fn(ContainerId, &SealedUse) -> bool,
    ) -> Option<ContainerId> {
        let worth_of = |container: u32| match self.uses.get(container as usize)? {
            ContainerUse::Sealed(sealed) if sealed.sequence < opened_before => {
                let age = next_sequence.wrapping_sub(sealed.sequence);
                may_be(ContainerId(container), sealed).then(|| worth(sealed, age))
            }
            _ => None,
        };
        let oldest = self.emptiness.oldest_of_classes();
        let worths = oldest.filter_map(|container| Some((container, worth_of(container)?)));
        let best = worths.max_by(|(_, one), (_, other)| one.total_cmp(other));
        best.map(|(container, _)| ContainerId(container))
    }

    /// The sealed container, not damaged, that was opened first of those with these sequence
    /// numbers.
    #[must_use]
    pub fn oldest_in(&self, sequences: Range<u32>) -> Option<ContainerId> {
        self.emptiness.oldest_in(sequences).map(ContainerId)
    }

    /// Nothing in the container is needed any more, says this record of the journal; it comes back
    /// after its quarantine. Records of later calls have no lower numbers.
    pub fn free(&mut self, id: ContainerId, record: u64) {
        match self.uses.get(id.0 as usize) {
            Some(ContainerUse::Sealed(sealed)) if !sealed.damaged => {
                self.emptiness.remove(id.0, sealed);
            }
            Some(ContainerUse::Sealed(_)) => self.damaged -= 1,
            Some(ContainerUse::Open { .. }) => {}
            _ => return debug_assert!(false, "freed a container that is not in use"),
        }
        self.uses[id.0 as usize] = match mutant!(ReusesContainerAtOnce) {
            true => ContainerUse::Free,
            false => ContainerUse::Quarantined { record },
        };
        self.list(id.0);
    }

    /// Records up to this one are durable, and whatever a crash leaves of the journal says so.
    pub fn known_durable(&mut self, record: u64) {
        self.known_durable = self.known_durable.max(record);
        while let Some(&container) = self.quarantine.front() {
            if !self.quarantine_over(container) {
                break;
            }
            self.quarantine.pop_front();
            self.release(container);
        }
    }

    /// A read of the container begins: it is not written again before [`Space::unpin`].
    pub fn pin(&mut self, id: ContainerId) {
        *self.pins.entry(id.0).or_insert(0) += 1;
    }

    /// A read that was announced by [`Space::pin`] is over.
    pub fn unpin(&mut self, id: ContainerId) {
        let Some(reads) = self.pins.get_mut(&id.0) else {
            return debug_assert!(false, "unpinned a container that was not pinned");
        };
        *reads -= 1;
        if *reads == 0 {
            self.pins.remove(&id.0);
            if self.quarantine_over(id.0) {
                self.release(id.0);
            }
        }
    }

    /// Containers that can be allocated now.
    #[must_use]
    pub fn free_containers(&self) -> u64 {
        self.free.count()
    }

    /// Containers that become free when more records are known to be durable, or reads end.
    #[must_use]
    pub fn quarantined_containers(&self) -> u64 {
        self.quarantined
    }

    /// Containers that are free, or will be without anything being moved: from quarantine, or
    /// because the medium gives them.
    #[must_use]
    pub fn coming_containers(&self) -> u64 {
        self.free_containers() + self.quarantined_containers() + self.expected_containers()
    }

    /// The record that has to be known to be durable for the next container to become free.
    #[must_use]
    pub fn awaited_record(&self) -> Option<u64> {
        let container = *self.quarantine.front()?;
        match self.uses.get(container as usize)? {
            ContainerUse::Quarantined { record } => Some(*record),
            _ => None,
        }
    }

    /// Bytes of `worst_case_bytes` for which there are free containers, the open one not counted.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free.count() * usable_bytes_per_container(self.geometry.chunk_bytes)
    }

    /// Bytes of containers that collection would give back, were it to take all that is worth it.
    #[must_use]
    pub fn collectable_bytes(&self) -> u64 {
        self.emptiness.gives_back_bytes()
    }

    /// Enters a container where containers of its use are kept.
    fn list(&mut self, container: u32) {
        match self.uses[container as usize] {
            ContainerUse::Free if self.is_unlisted(container) => self.count_unlisted(container),
            ContainerUse::Free => {
                let (zone, place) = self.place_of(container);
                if place < self.given[zone] {
                    self.free.add(zone, container);
                } else {
                    self.withheld += 1;
                }
            }
            ContainerUse::Sealed(sealed) if !sealed.damaged => {
                self.emptiness.insert(container, &sealed);
            }
            ContainerUse::Sealed(_) => self.damaged += 1,
            ContainerUse::Open { .. } => {}
            ContainerUse::Quarantined { .. } => {
                self.quarantine.push_back(container);
                self.quarantined += 1;
            }
        }
    }

    /// Its record is known to be durable; a pin may still hold it.
    fn quarantine_over(&self, container: u32) -> bool {
        matches!(
            self.uses.get(container as usize),
            Some(ContainerUse::Quarantined { record }) if *record <= self.known_durable
        )
    }

    /// Frees a container whose quarantine is over, unless a read pins it: then the last read does.
    fn release(&mut self, container: u32) {
        if self.pins.contains_key(&container) {
            return;
        }
        self.uses[container as usize] = ContainerUse::Free;
        self.quarantined -= 1;
        self.list(container);
    }

    /// The data zone of a container, and how many containers of it lie in front.
    fn place_of(&self, container: u32) -> (usize, u32) {
        match self.geometry.container_zone(ContainerId(container)) {
            Some((Zone::Data(zone), offset_bytes)) => {
                (usize::from(zone), allocation::whole_containers(offset_bytes))
            }
            _ => unreachable!("every container is in a data zone"),
        }
    }
}

mod allocation;
mod closed;
#[cfg(test)]
mod tests;
mod zones;
