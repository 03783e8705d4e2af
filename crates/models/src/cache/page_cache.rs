//! The cache of the page store, without the pages: which of them are in memory, which of those are
//! dirty, and what was read and written for it.

use super::policies::PolicyKind;
use super::policy::{Moved, Policy};
use super::sharing::Sharing;
use super::tree::{TREES, Tree, TreeSizes};

/// What the pages of a tree cost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) reads: u64,
    pub(super) writes: u64,
}

pub(super) struct Cache {
    policy: Box<dyn Policy>,
    moved: Moved,
    dirty: Vec<bool>,
    first_pages: [u32; TREES],
    traffic: [Traffic; TREES],
}

impl Cache {
    pub(super) fn new(
        policy: PolicyKind,
        sharing: Sharing,
        capacity: usize,
        sizes: TreeSizes,
    ) -> Self {
        let policy = sharing.build(policy, capacity, &sizes);
        let mut pages = 0;
        let first_pages = sizes.map(|size| {
            pages += size;
            (pages - size) as u32
        });
        let pages = pages as usize;
        Self {
            policy,
            moved: Moved::default(),
            dirty: vec![false; pages],
            first_pages,
            traffic: [Traffic::default(); TREES],
        }
    }

    /// Wants a page that the disk has. True when it was in memory.
    pub(super) fn want(&mut self, tree: Tree, index: u64) -> bool {
        let hit = self.touch(tree, index);
        self.traffic[tree as usize].reads += u64::from(!hit);
        hit
    }

    /// Wants a page and changes it. True when it was in memory.
    pub(super) fn change(&mut self, tree: Tree, index: u64) -> bool {
        let hit = self.want(tree, index);
        self.set_dirty(tree, index);
        hit
    }

    /// A page that did not exist.
    pub(super) fn make(&mut self, tree: Tree, index: u64) {
        self.touch(tree, index);
        self.set_dirty(tree, index);
    }

    /// A page comes into memory that was not read for it, and is on the disk.
    pub(super) fn place_clean(&mut self, tree: Tree, index: u64) {
        self.touch(tree, index);
    }

    /// The page exists no more.
    pub(super) fn discard(&mut self, tree: Tree, index: u64) {
        let page = self.page(tree, index);
        self.policy.remove(page);
        self.dirty[page as usize] = false;
    }

    pub(super) fn holds(&self, tree: Tree, index: u64) -> bool {
        self.policy.holds(self.page(tree, index))
    }

    /// Pages that go past the cache.
    pub(super) fn stream(&mut self, tree: Tree, reads: u64, writes: u64) {
        let traffic = &mut self.traffic[tree as usize];
        traffic.reads += reads;
        traffic.writes += writes;
    }

    pub(super) fn traffic(&self, tree: Tree) -> Traffic {
        self.traffic[tree as usize]
    }

    /// Pages that are in memory only, to be written some time.
    pub(super) fn dirty_pages(&self, tree: Tree) -> u64 {
        let first = self.first_pages[tree as usize] as usize;
        let next = self.first_pages.get(tree as usize + 1);
        let end = next.map_or(self.dirty.len(), |&next| next as usize);
        self.dirty[first..end].iter().filter(|&&dirty| dirty).count() as u64
    }

    fn page(&self, tree: Tree, index: u64) -> u32 {
        self.first_pages[tree as usize] + index as u32
    }

    fn touch(&mut self, tree: Tree, index: u64) -> bool {
        let hit = self.policy.touch(self.page(tree, index), &mut self.moved);
        if !hit {
            self.settle();
        }
        hit
    }

    /// A page that left at once is written at once.
    fn set_dirty(&mut self, tree: Tree, index: u64) {
        let page = self.page(tree, index);
        if !self.policy.holds(page) {
            self.traffic[tree as usize].writes += 1;
            return;
        }
        self.dirty[page as usize] = true;
        self.policy.changed(page, &mut self.moved);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(page) = self.moved.left.pop().or_else(|| self.moved.cleaned.pop()) {
            if std::mem::take(&mut self.dirty[page as usize]) {
                let tree = self.first_pages.partition_point(|&first| first <= page) - 1;
                self.traffic[tree].writes += 1;
            }
        }
    }
}
