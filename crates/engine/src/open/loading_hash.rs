//! The Hash-PBN table when a store is opened: what it has in memory is loaded, and a table of
//! format 1 is taken over.

use format::bucket;
use format::pointer_page::FANOUT;
use format::units::{Fingerprint, Pbn, TreeId};
use tables::{NextLeaf, PageRead};

use crate::open::loading::Loading;
use crate::open::open_error::OpenError;
use crate::pages::wanted::Wanted;
use crate::state::State;

impl Loading {
    /// Loads filters and young entries. A filter that is damaged is done without.
    pub(crate) fn load_hash(&mut self) -> Result<(), OpenError> {
        for leaves in self.state.hash.filter_leaves().chunks(self.batches.leaves()) {
            let wanted = match self.want_leaves(TreeId::HASH_FILTER, leaves) {
                Ok(wanted) => vec![wanted],
                Err(_) => leaves
                    .iter()
                    .filter_map(|leaf| self.want_leaves(TreeId::HASH_FILTER, &[*leaf]).ok())
                    .collect(),
            };
            let State { hash, store, .. } = &mut self.state;
            leaves.iter().for_each(|&leaf| hash.load_filter(store, leaf));
            self.let_go(wanted)?;
        }
        let young = self.all_leaves(TreeId::YOUNG)?;
        self.state.hash.expect_young(young.len());
        for leaves in young.chunks(self.batches.leaves()) {
            let wanted = self.want_leaves(TreeId::YOUNG, leaves)?;
            let State { hash, store, .. } = &mut self.state;
            for &leaf in leaves {
                store.page(TreeId::YOUNG, leaf).map(|page| hash.load_young(leaf, page));
            }
            self.let_go(vec![wanted])?;
        }
        self.state.hash.end_load();
        Ok(())
    }

    /// Enters what a table of format 1 holds into today's, and empties it. Nothing of that counts
    /// before the next checkpoint does.
    pub(crate) fn take_over_linear_hash(&mut self) -> Result<(), OpenError> {
        for tree in [TreeId::LINEAR_HASH, TreeId::LINEAR_OVERFLOW] {
            loop {
                let leaves = self.next_leaves(tree, 0)?;
                if leaves.is_empty() {
                    break;
                }
                for leaf in leaves {
                    self.take_over_leaf(tree, leaf)?;
                }
            }
        }
        Ok(())
    }

    fn take_over_leaf(&mut self, tree: TreeId, leaf: u64) -> Result<(), OpenError> {
        let wanted = self.wait_for(|state, wanted| {
            let State { hash, store, .. } = state;
            let here = store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)?;
            let count = bucket::CAPACITY as u64;
            Ok(here & hash.want_insert(store, &mut wanted.pins, count, &mut wanted.reads)?)
        })?;
        let State { hash, store, .. } = &mut self.state;
        let page = store.page(tree, leaf);
        let entries: Vec<(Fingerprint, Pbn)> = page.into_iter().flat_map(bucket::entries).collect();
        for (fingerprint, pbn) in entries {
            hash.insert(store, &fingerprint, pbn);
        }
        store.remove_page(tree, leaf);
        self.let_go(vec![wanted])?;
        self.work_on_hash()
    }

    /// What the table has to do in the background is done at once, as far as there are blocks for
    /// it: no checkpoint brings any back yet. A store that may not be written keeps all of it
    /// young.
    pub(crate) fn work_on_hash(&mut self) -> Result<(), OpenError> {
        while self.may_write && self.state.hash.work_is_due() {
            let taken = self.kept_blocks + self.state.pages_to_freeze();
            let spare_blocks = self.state.store.free_blocks().saturating_sub(taken);
            if spare_blocks < self.state.hash.pages_per_step() {
                break;
            }
            let wanted =
                self.wait_for(|state, wanted| state.want_hash_work(spare_blocks, wanted))?;
            self.state.hash.work(&mut self.state.store);
            self.let_go(vec![wanted])?;
        }
        Ok(())
    }

    fn all_leaves(&mut self, tree: TreeId) -> Result<Vec<u64>, OpenError> {
        let mut all = Vec::new();
        loop {
            let next = self.next_leaves(tree, all.last().map_or(0, |last| last + 1))?;
            if next.is_empty() {
                return Ok(all);
            }
            all.extend(next);
        }
    }

    /// The next leaves of a tree that exist.
    fn next_leaves(&mut self, tree: TreeId, from: u64) -> Result<Vec<u64>, OpenError> {
        let (mut leaves, mut from) = (Vec::new(), from);
        while leaves.len() < self.batches.leaves() {
            let mut reads = Vec::new();
            match self.state.store.next_leaf(tree, from, &mut reads)? {
                NextLeaf::Found(leaf) => {
                    leaves.push(leaf);
                    from = leaf + 1;
                }
                NextLeaf::Missing => {
                    self.ask_for_stems(tree, from, &mut reads);
                    self.load_pages(reads)?;
                }
                NextLeaf::End => break,
            }
        }
        Ok(leaves)
    }

    /// Asks for the next inner pages as well, those that would be missing next: by leaves below
    /// them, which are needed too. What is damaged is met by what needs it.
    fn ask_for_stems(&mut self, tree: TreeId, from: u64, reads: &mut Vec<PageRead>) {
        let mut wanted = Wanted::default();
        for stem in 1..self.batches.stems() {
            let leaf = from.saturating_add(stem * FANOUT as u64);
            let Wanted { pins, reads, .. } = &mut wanted;
            if self.state.store.want(pins, tree, leaf, reads).is_err() {
                break;
            }
        }
        reads.append(&mut wanted.reads);
        self.state.store.release_pins(wanted.pins);
    }

    fn want_leaves(&mut self, tree: TreeId, leaves: &[u64]) -> Result<Wanted, OpenError> {
        self.wait_for(|state, wanted| {
            let mut here = true;
            for &leaf in leaves {
                here &= state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)?;
            }
            Ok(here)
        })
    }

    fn let_go(&mut self, wanted: Vec<Wanted>) -> Result<(), OpenError> {
        for wanted in wanted {
            self.state.store.release_pins(wanted.pins);
        }
        self.keep_cache_in_bounds()
    }
}
