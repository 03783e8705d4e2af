//! Slots of many leaves at once.
//!
//! To find a leaf and what it says waits for memory three times, for the map of the frames, the
//! frame and the page, if no near cache holds them. For one leaf nothing else can be done
//! meanwhile. For many, all places are read first, then all frames, then all slots, and the
//! processor waits for a dozen of them at a time (measurements/030).

use std::hint::black_box;

use format::page::Page;
use format::units::TreeId;

use super::page_store::PageStore;
use super::path::leaf_id;
use super::slot::Slot;

impl PageStore {
    /// Shows `see` the page and slot of each of these leaves that is resident, in their order.
    /// Nothing is pinned, and nothing counts as wanted.
    pub(crate) fn see_slots(
        &mut self,
        slots: impl Iterator<Item = (TreeId, u64, usize)>,
        mut see: impl FnMut(&Page, usize),
    ) {
        let mut found: Vec<(Slot, usize)> = std::mem::take(&mut self.seen);
        found.clear();
        let (mut last, mut last_place) = (None, None);
        for (tree, leaf, slot) in slots {
            let id = leaf_id(tree, leaf);
            if last != Some(id) {
                (last, last_place) = (Some(id), self.frames.place_of(id));
            }
            found.extend(last_place.map(|place| (place, slot)));
        }
        black_box(found.iter().fold(0, |near, &(at, _)| near ^ self.frames.get(at).block));
        found.iter().for_each(|&(at, slot)| see(self.page_at(at), slot));
        self.seen = found;
    }
}

#[cfg(test)]
mod tests {
    use format::map_page::SLOTS;
    use format::units::{Lba, Pbn, TreeId, TreeRoot, VolumeId};

    use crate::{PageStore, PageStoreOptions, lba_pbn};

    #[test]
    fn what_is_resident_is_seen_in_its_order_and_the_rest_left_out() {
        let mut store = PageStore::new(PageStoreOptions { cache_pages: 64, tables_blocks: 64 });
        let (tree, other) = (TreeId::volume(VolumeId(1)), TreeId::volume(VolumeId(2)));
        [tree, other].iter().for_each(|&tree| store.add_tree(tree, TreeRoot::default()));
        let far = 3 * SLOTS as u64;
        for (tree, lba, pbn) in [(tree, 3, 7), (tree, 4, 8), (tree, far, 9), (other, 4, 10)] {
            lba_pbn::set(&mut store, tree, Lba(lba), Pbn(pbn));
        }
        let mut named = vec![Pbn(1)];
        let lbas = [(tree, far), (other, 4), (tree, 4), (tree, 5), (other, far), (tree, 3)];
        lba_pbn::see_all(
            &mut store,
            lbas.map(|(tree, lba)| (tree, Lba(lba))).into_iter(),
            &mut named,
        );
        assert_eq!(named, [1, 9, 10, 8, 7].map(Pbn));
    }
}
