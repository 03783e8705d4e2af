//! Which containers are free, which are in use, and how much lives in them.
//!
//! A container that was freed is not free yet. The tables that say so are durable only with the
//! next checkpoint, and until the one after that the older root slot still holds tables that point
//! into it. So it is *quarantined* until two further checkpoints are durable. Neither may it be
//! written while a read of it is in flight, which would return bytes of its next life: such reads
//! *pin* it.
//!
//! The figures are in memory only. The engine opens this with what its tables say, and keeps both
//! the same. Calls that make no sense (freeing what is free) change nothing: a container that were
//! listed as free twice would be written twice.

use crate::emptiness::Emptiness;
use crate::free_list::FreeList;
use crate::promise::usable_bytes_per_container;
use format::superblock::Geometry;
use format::units::{ContainerId, Zone};
use hashbrown::HashMap;
use mutants::mutant;
use std::collections::VecDeque;

/// Durable checkpoints that have to follow a container's freeing before it is written again: one
/// for each root slot.
pub const QUARANTINE_CHECKPOINTS: u64 = 2;

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
    /// Freed, but a root slot may still point into it.
    Quarantined {
        /// Free as soon as this many more checkpoints are durable, and no read pins it.
        checkpoints: u64,
    },
}

/// The figures of a sealed container.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SealedUse {
    /// Bytes of frames whose chunks are referenced.
    pub live_bytes: u32,
    /// Bytes of all frames and padding.
    pub used_bytes: u32,
    /// Which life of the container this is; older ones are smaller.
    pub sequence: u32,
    /// A frame in it cannot be read, so it is never collected.
    pub damaged: bool,
}

/// All containers of a store; see the head of this file.
pub struct Space {
    geometry: Geometry,
    /// By container. The checkpoints of a quarantined one are counted from the opening of the
    /// store.
    uses: Vec<ContainerUse>,
    free: FreeList,
    /// Sealed containers that may be collected.
    emptiness: Emptiness,
    /// In the order in which their checkpoints come.
    quarantine: VecDeque<u32>,
    /// Quarantined containers, the ones that only a pin still holds included.
    quarantined: u64,
    /// Durable since the store was opened.
    checkpoints: u64,
    /// Reads in flight, by container; no entry is none.
    pins: HashMap<u32, u32>,
}

impl Space {
    /// The containers of a store, `uses` in the order of their numbers; those it does not reach are
    /// free.
    #[must_use]
    pub fn new(geometry: &Geometry, uses: impl IntoIterator<Item = ContainerUse>) -> Self {
        let count = geometry.containers_total() as u32;
        let uses = uses.into_iter().map(|container_use| match container_use {
            ContainerUse::Quarantined { checkpoints: 0 } => ContainerUse::Free,
            other => other,
        });
        let rest = std::iter::repeat(ContainerUse::Free);
        let mut space = Self {
            geometry: geometry.clone(),
            uses: uses.chain(rest).take(count as usize).collect(),
            free: FreeList::new(geometry.data.len()),
            emptiness: Emptiness::new(count as usize),
            quarantine: VecDeque::new(),
            quarantined: 0,
            checkpoints: 0,
            pins: HashMap::new(),
        };
        (0..count).for_each(|container| space.list(container));
        let checkpoints = |container: &u32| match space.uses[*container as usize] {
            ContainerUse::Quarantined { checkpoints } => checkpoints,
            _ => 0,
        };
        space.quarantine.make_contiguous().sort_by_key(checkpoints);
        space
    }

    /// The store has grown at its end, to `geometry`: what is new is free.
    pub fn grow(&mut self, geometry: &Geometry) {
        let (before, after) = (self.uses.len(), geometry.containers_total() as usize);
        self.geometry = geometry.clone();
        self.uses.resize(after, ContainerUse::Free);
        self.free.grow(geometry.data.len());
        self.emptiness.grow(after);
        (before..after).for_each(|container| self.list(container as u32));
    }

    /// What a container is used for; None when the store has no such container.
    #[must_use]
    pub fn container_use(&self, id: ContainerId) -> Option<ContainerUse> {
        let container_use = *self.uses.get(id.0 as usize)?;
        Some(match container_use {
            ContainerUse::Quarantined { checkpoints: until } => {
                ContainerUse::Quarantined { checkpoints: until.saturating_sub(self.checkpoints) }
            }
            other => other,
        })
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
                let before_bytes = sealed.live_bytes;
                sealed.live_bytes = change(before_bytes);
                if !sealed.damaged {
                    self.emptiness.change(id.0, before_bytes, sealed.live_bytes);
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
            self.emptiness.remove(id.0, sealed.live_bytes);
        }
    }

    /// Every frame of the sealed container can be read again: it may be collected.
    pub fn mark_sound(&mut self, id: ContainerId) {
        if let Some(ContainerUse::Sealed(sealed)) = self.uses.get_mut(id.0 as usize)
            && sealed.damaged
        {
            sealed.damaged = false;
            self.emptiness.insert(id.0, sealed.live_bytes);
        }
    }

    /// The sealed container with the least live bytes that is not damaged, of equals the oldest.
    #[must_use]
    pub fn victim(&self) -> Option<(ContainerId, SealedUse)> {
        let sealed = |container: &u32| match self.uses[*container as usize] {
            ContainerUse::Sealed(sealed) => Some((ContainerId(*container), sealed)),
            _ => None,
        };
        let candidates = self.emptiness.emptiest_class().iter().filter_map(sealed);
        candidates.min_by_key(|(id, sealed)| (sealed.live_bytes, sealed.sequence, id.0))
    }

    /// Nothing in the container is needed any more; it comes back after its quarantine.
    pub fn free(&mut self, id: ContainerId) {
        match self.uses.get(id.0 as usize) {
            Some(ContainerUse::Sealed(sealed)) if !sealed.damaged => {
                self.emptiness.remove(id.0, sealed.live_bytes);
            }
            Some(ContainerUse::Sealed(_) | ContainerUse::Open { .. }) => {}
            _ => return debug_assert!(false, "freed a container that is not in use"),
        }
        let until = self.checkpoints + QUARANTINE_CHECKPOINTS;
        self.uses[id.0 as usize] = match mutant!(ReusesContainerAtOnce) {
            true => ContainerUse::Free,
            false => ContainerUse::Quarantined { checkpoints: until },
        };
        self.list(id.0);
    }

    /// A checkpoint has become durable.
    pub fn checkpoint_durable(&mut self) {
        self.checkpoints += 1;
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

    /// Containers that become free with coming checkpoints.
    #[must_use]
    pub fn quarantined_containers(&self) -> u64 {
        self.quarantined
    }

    /// Bytes of `worst_case_bytes` for which there are free containers, the open one not counted.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free.count() * usable_bytes_per_container(self.geometry.chunk_bytes)
    }

    /// Enters a container where containers of its use are kept.
    fn list(&mut self, container: u32) {
        match self.uses[container as usize] {
            ContainerUse::Free => self.free.add(self.zone_of(container), container),
            ContainerUse::Sealed(sealed) if !sealed.damaged => {
                self.emptiness.insert(container, sealed.live_bytes);
            }
            ContainerUse::Sealed(_) | ContainerUse::Open { .. } => {}
            ContainerUse::Quarantined { .. } => {
                self.quarantine.push_back(container);
                self.quarantined += 1;
            }
        }
    }

    /// The checkpoints have passed; a pin may still hold it.
    fn quarantine_over(&self, container: u32) -> bool {
        matches!(
            self.uses.get(container as usize),
            Some(ContainerUse::Quarantined { checkpoints: until }) if *until <= self.checkpoints
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

    fn zone_of(&self, container: u32) -> usize {
        match self.geometry.container_zone(ContainerId(container)) {
            Some((Zone::Data(zone), _)) => usize::from(zone),
            _ => unreachable!("every container is in a data zone"),
        }
    }
}

#[cfg(test)]
mod tests;
