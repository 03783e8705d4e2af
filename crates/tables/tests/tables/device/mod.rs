//! A disk for the page store: blocks in memory, writes that land when the test says so, and two
//! roots that must stay readable in full whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use format::page::Page;
use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, PageId, TreeId, TreeRoot};
use tables::{
    HashPbn, NextLeaf, OutOfBlocks, PageError, PageRead, PageStore, PageStoreOptions, PageWrite,
    PinSet, ReachWalker,
};

/// What a want returns.
pub(crate) type Here = Result<bool, PageError>;

/// Trees of a root with their roots.
pub(crate) type Trees = BTreeMap<TreeId, TreeRoot>;

/// A checkpoint with what the model held at its freeze.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint<M> {
    pub(crate) trees: Trees,
    pub(crate) model: M,
}

/// The disk and the two root slots on it.
pub(crate) struct Device<M> {
    pub(crate) blocks: BTreeMap<u64, Vec<u8>>,
    pub(crate) in_flight: Vec<PageWrite>,
    /// Durable roots, the newer last; at most two.
    pub(crate) roots: Vec<Checkpoint<M>>,
    /// Blocks that the durable roots name.
    named: BTreeSet<u64>,
    pub(crate) pages_written: u64,
    pub(crate) pages_read: u64,
}

impl<M: Clone> Device<M> {
    /// A disk of an empty store.
    pub(crate) fn new(model: M) -> Self {
        let empty = Checkpoint { trees: Trees::new(), model };
        Self {
            blocks: BTreeMap::new(),
            in_flight: Vec::new(),
            roots: vec![empty],
            named: BTreeSet::new(),
            pages_written: 0,
            pages_read: 0,
        }
    }

    /// Starts writes; none may touch what a durable root names, or what is being written.
    pub(crate) fn submit(&mut self, writes: Vec<PageWrite>) {
        assert!(writes.is_sorted_by_key(|write| write.block), "writes are in order of blocks");
        for write in writes {
            assert_ne!(write.block, 0, "block 0 is never used");
            assert!(!self.named.contains(&write.block), "block {} is named by a root", write.block);
            let twice = self.in_flight.iter().any(|other| other.block == write.block);
            assert!(!twice, "block {} is written twice at once", write.block);
            self.in_flight.push(write);
        }
    }

    /// Lets write number `at` land; its block.
    pub(crate) fn land(&mut self, at: usize) -> u64 {
        let write = self.in_flight.swap_remove(at);
        assert!(!self.named.contains(&write.block), "block {} is named by a root", write.block);
        self.blocks.insert(write.block, write.page.as_bytes().to_vec());
        self.pages_written += 1;
        write.block
    }

    /// Lets all writes land and tells the store.
    pub(crate) fn land_all(&mut self, store: &mut PageStore) {
        while !self.in_flight.is_empty() {
            let block = self.land(self.in_flight.len() / 2);
            store.write_done(&[block]);
        }
    }

    pub(crate) fn read(&mut self, read: &PageRead) -> Vec<u8> {
        let block = read.pointer.block();
        let racing = self.in_flight.iter().any(|write| write.block == block);
        assert!(!racing, "block {block} is read while it is written");
        self.pages_read += 1;
        self.blocks.get(&block).cloned().unwrap_or_else(|| vec![0; 4096])
    }

    /// Reads pages and hands them to the store.
    pub(crate) fn serve(
        &mut self,
        store: &mut PageStore,
        reads: &mut Vec<PageRead>,
    ) -> Result<(), PageError> {
        for read in std::mem::take(reads) {
            let bytes = self.read(&read);
            store.page_arrived(read, Ok(&bytes))?;
        }
        Ok(())
    }

    /// Repeats `want` until all is resident, while the cache shrinks as hard as it can in between.
    pub(crate) fn wait_for(
        &mut self,
        store: &mut PageStore,
        mut want: impl FnMut(&mut PageStore, &mut PinSet, &mut Vec<PageRead>) -> Here,
    ) -> PinSet {
        let mut held = PinSet::default();
        for _ in 0..1000 {
            let mut pins = PinSet::default();
            let mut reads = Vec::new();
            let here = want(store, &mut pins, &mut reads).unwrap();
            store.release_pins(std::mem::replace(&mut held, pins));
            if here {
                assert!(reads.is_empty());
                store.shrink();
                return held;
            }
            store.shrink();
            assert!(!reads.is_empty(), "nothing is on its way, nothing is asked for");
            self.serve(store, &mut reads).unwrap();
        }
        panic!("a want is never satisfied");
    }

    /// Writes all pages and the root; the two newest roots stay readable.
    pub(crate) fn checkpoint(
        &mut self,
        store: &mut PageStore,
        checkpoint: Checkpoint<M>,
        verify: impl Fn(&Leaves, &M),
    ) {
        self.land_all(store);
        self.add_root(checkpoint);
        store.checkpoint_durable();
        self.verify(verify);
    }

    /// The root is on disk, whether or not the store has learned it.
    pub(crate) fn add_root(&mut self, checkpoint: Checkpoint<M>) {
        assert!(self.in_flight.is_empty());
        self.roots.push(checkpoint);
        if self.roots.len() > 2 {
            self.roots.remove(0);
        }
        self.note_named();
    }

    /// The newer root slot is lost.
    pub(crate) fn lose_root(&mut self) {
        self.roots.pop();
        self.note_named();
    }

    fn note_named(&mut self) {
        self.named = self.roots.iter().flat_map(|root| self.walk(&root.trees).1).collect();
    }

    /// Reads both roots in full and compares them with what the model held.
    pub(crate) fn verify(&self, verify: impl Fn(&Leaves, &M)) {
        for root in &self.roots {
            verify(&self.walk(&root.trees).0, &root.model);
        }
    }

    /// All leaves that the trees hold, and all blocks that they name.
    pub(crate) fn walk(&self, trees: &Trees) -> (Leaves, BTreeSet<u64>) {
        let mut leaves = Leaves::new();
        let mut blocks = BTreeSet::new();
        for (&tree, root) in trees {
            let id = PageId { tree, level: root.depth, index: 0 };
            self.walk_page(id, root.pointer, &mut leaves, &mut blocks);
        }
        (leaves, blocks)
    }

    fn walk_page(
        &self,
        id: PageId,
        pointer: BlockPtr,
        leaves: &mut Leaves,
        blocks: &mut BTreeSet<u64>,
    ) {
        if pointer.is_none() {
            return;
        }
        let is_new = blocks.insert(pointer.block());
        assert!(is_new || id.tree.is_map(), "two pages share block {}", pointer.block());
        let bytes = self.blocks.get(&pointer.block()).expect("a block that was written");
        let page = Page::from_bytes(bytes).unwrap();
        page.check(id, pointer.tag()).unwrap();
        if id.level == 0 {
            leaves.insert((id.tree, id.index), page);
            return;
        }
        assert!(pointer_page::used(&page) > 0, "{id} is empty");
        for slot in 0..FANOUT {
            let index = id.index * FANOUT as u64 + slot as u64;
            let child = PageId { level: id.level - 1, index, ..id };
            self.walk_page(child, pointer_page::get(&page, slot), leaves, blocks);
        }
    }

    /// The store as it opens: from the newest root, with the older one kept readable.
    pub(crate) fn open(&mut self, options: PageStoreOptions) -> PageStore {
        let mut walker = ReachWalker::new(options.tables_blocks);
        for (number, root) in self.roots.clone().iter().rev().enumerate() {
            if number == 1 {
                walker.begin_older();
            }
            for (&tree, &root) in &root.trees {
                walker.add_tree(tree, root).unwrap();
            }
            loop {
                let reads = walker.next_reads(3);
                if reads.is_empty() {
                    break;
                }
                for read in reads {
                    let bytes = self.read(&read);
                    walker.feed(&read, &bytes).unwrap();
                }
            }
        }
        assert_eq!(walker.shared_blocks(), 0);
        let reached = walker.reached_blocks();
        let mut store = PageStore::new(options);
        store.adopt_reach(walker);
        let newest = self.roots.last().expect("a root");
        for (&tree, &root) in &newest.trees {
            store.add_tree(tree, root);
        }
        let used = self.walk(&newest.trees).1.len() as u64;
        assert_eq!(store.used_blocks(), used);
        assert_eq!(reached, used + store.quarantined_blocks());
        store
    }
}

/// Leaves by tree and index.
pub(crate) type Leaves = BTreeMap<(TreeId, u64), Page>;

/// Freezes all trees: submits the writes and returns the roots.
pub(crate) fn freeze<M: Clone>(
    store: &mut PageStore,
    device: &mut Device<M>,
    generation: u64,
    trees: &[TreeId],
) -> Result<Trees, OutOfBlocks> {
    let mut writes = store.freeze_trees(generation)?;
    writes.extend(store.freeze_catalog(generation)?);
    writes.sort_by_key(|write| write.block);
    device.submit(writes);
    assert_eq!(store.dirty_pages(), 0);
    Ok(trees.iter().map(|&tree| (tree, store.tree_root(tree))).collect())
}

/// Loads a table as opening does; shared by the tests of all tables.
pub(crate) fn load_hash<M: Clone>(
    hash: &mut HashPbn,
    store: &mut PageStore,
    device: &mut Device<M>,
) {
    for leaf in hash.filter_leaves() {
        let tree = TreeId::HASH_FILTER;
        let pins = device.wait_for(store, |store, pins, reads| store.want(pins, tree, leaf, reads));
        hash.load_filter(store, leaf);
        store.release_pins(pins);
    }
    let mut from = 0;
    loop {
        let mut reads = Vec::new();
        let leaf = match store.next_leaf(TreeId::YOUNG, from, &mut reads).unwrap() {
            NextLeaf::End => break,
            NextLeaf::Missing => {
                device.serve(store, &mut reads).unwrap();
                continue;
            }
            NextLeaf::Found(leaf) => leaf,
        };
        let pins = device
            .wait_for(store, |store, pins, reads| store.want(pins, TreeId::YOUNG, leaf, reads));
        hash.load_young(leaf, store.page(TreeId::YOUNG, leaf).unwrap());
        store.release_pins(pins);
        from = leaf + 1;
    }
    hash.end_load();
}

/// What the table has to do in the background, at most so many steps of it.
pub(crate) fn work_on_hash<M: Clone>(
    hash: &mut HashPbn,
    store: &mut PageStore,
    device: &mut Device<M>,
    steps: usize,
) {
    for _ in 0..steps {
        if !hash.work_is_due() {
            return;
        }
        let pins =
            device.wait_for(store, |store, pins, reads| hash.want_work(store, pins, reads, 1000));
        hash.work(store);
        store.release_pins(pins);
        store.shrink();
    }
}
