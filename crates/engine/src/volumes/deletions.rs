//! Versions that are to be given back, and which of them goes next.
//!
//! A version with several children waits until one is left. That may be for as long as they live,
//! and there may be thousands, of which every step of the engine asks whether one can go. That
//! changes only where a version gets a child or loses one, or another is deleted: until then, if
//! none could go, none is looked at.

use std::collections::VecDeque;

use format::units::VolumeId;
use tables::CatalogTable;

/// Versions to be given back.
#[derive(Default)]
pub(crate) struct Deletions {
    /// One that has begun stands first.
    ids: VecDeque<VolumeId>,
    /// None of them can go, if so many changes of parents and children have been made.
    none_goes_at: Option<u64>,
}

impl Deletions {
    /// This version goes after all others.
    pub(crate) fn add(&mut self, id: VolumeId) {
        self.ids.push_back(id);
        self.none_goes_at = None;
    }

    /// A piece of this version was given back: it goes on before any other begins.
    pub(crate) fn began(&mut self, id: VolumeId) {
        if self.ids.front() != Some(&id) {
            self.ended(id);
            self.ids.push_front(id);
            self.none_goes_at = None;
        }
    }

    /// This version is gone.
    pub(crate) fn ended(&mut self, id: VolumeId) {
        self.ids.retain(|&other| other != id);
    }

    /// The version to be given back next: one that has begun, else the first that has at most one
    /// child.
    pub(crate) fn next(&mut self, catalog: &CatalogTable) -> Option<VolumeId> {
        let has_begun =
            |id| catalog.get(id).is_some_and(|entry| entry.lineage.given_back_leaves > 0);
        if let Some(first) = self.ids.front().copied().filter(|&id| has_begun(id)) {
            return Some(first);
        }
        self.next_to_begin(catalog.lineage_changes(), |id| !is_held(catalog, id))
    }

    fn next_to_begin(
        &mut self,
        lineage_changes: u64,
        can_go: impl Fn(VolumeId) -> bool,
    ) -> Option<VolumeId> {
        if self.none_goes_at == Some(lineage_changes) {
            return None;
        }
        let found = self.ids.iter().copied().find(|&id| can_go(id));
        self.none_goes_at = if found.is_none() { Some(lineage_changes) } else { None };
        found
    }

    pub(crate) fn count(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Those that wait for children to go.
    pub(crate) fn held(&self, catalog: &CatalogTable) -> u64 {
        self.ids.iter().filter(|&&id| is_held(catalog, id)).count() as u64
    }
}

fn is_held(catalog: &CatalogTable, id: VolumeId) -> bool {
    catalog.children_of(id).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const HELD: u32 = 2_000;

    #[test]
    fn what_is_held_is_not_looked_at_again_before_something_has_changed() {
        let mut deletions = Deletions::default();
        (0..HELD).for_each(|id| deletions.add(VolumeId(id)));
        let looks = Cell::new(0);
        let free = Cell::new(None);
        let can_go = |id| {
            looks.set(looks.get() + 1);
            free.get() == Some(id)
        };
        for _ in 0..100 {
            assert_eq!(deletions.next_to_begin(7, can_go), None);
        }
        assert_eq!(looks.get(), HELD);
        free.set(Some(VolumeId(HELD - 1)));
        for _ in 0..2 {
            assert_eq!(deletions.next_to_begin(8, can_go), free.get());
        }
        deletions.ended(VolumeId(HELD - 1));
        assert_eq!(deletions.next_to_begin(9, can_go), None);
        free.set(Some(VolumeId(HELD)));
        deletions.add(VolumeId(HELD));
        assert_eq!(deletions.next_to_begin(9, can_go), free.get());
    }
}
