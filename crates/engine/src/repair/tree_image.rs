//! Which pages of a tree are intact: every one is read, whatever is wrong with those above it.
//!
//! A damaged inner page still has most of its pointers. None of them can be believed, but each can
//! be tried: a page that passes its checksum, has the right name and the tag that the pointer says
//! is the one. A pointer that leads to nothing of the kind, or is zero, means that what is below it
//! is lost, since nobody can say that there was nothing. Nothing is tried of a page that is another
//! one: a device that lost a write, or did it elsewhere, leaves an earlier version in its place, or
//! a page of another volume, whose children are whole and wrong.
//!
//! Versions of a volume share pages, and so do both roots: what was found intact once is neither
//! read nor kept again. So time and memory go with the pages that there are, and with the inner
//! pages of each version. Memory: about 60 bytes a leaf.
//!
//! What is below a page is read together, and so are the leaves below many inner pages, so that a
//! survey takes what the device gives and not its latency for each page.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use format::page::Page;
use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, PageId, TreeId, TreeRoot, VolumeId, Zone};

use crate::open::batches::SMALL_TABLES_BLOCKS;
use crate::repair::damage_reads::DamageReads;

/// Blocks of the tables, as a set.
#[derive(Clone, Default)]
pub(crate) struct Blocks(Vec<u64>);

impl Blocks {
    pub(crate) fn new(blocks: u64) -> Self {
        Self(vec![0; blocks.div_ceil(64) as usize])
    }

    pub(crate) fn insert(&mut self, block: u64) {
        if let Some(word) = self.0.get_mut((block / 64) as usize) {
            *word |= 1 << (block % 64);
        }
    }

    pub(crate) fn contains(&self, block: u64) -> bool {
        self.0.get((block / 64) as usize).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// How many they are.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }
}

/// Leaves of which nobody knows what they hold.
struct LostLeaves {
    leaves: Range<u64>,
    /// The block of the damaged page at or above them: trees that share it have lost the same.
    block: u64,
}

/// The leaves below one inner page of level 1.
type Stem = BTreeMap<u64, BlockPtr>;

/// Leaves of a tree, by the inner pages of level 1 that they are below.
#[derive(Default)]
pub(crate) struct Leaves(BTreeMap<u64, Rc<Stem>>);

impl Leaves {
    pub(crate) fn get(&self, index: u64) -> Option<BlockPtr> {
        self.0.get(&(index / FANOUT as u64))?.get(&index).copied()
    }

    /// All of them, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, BlockPtr)> {
        self.0.values().flat_map(|stem| stem.iter().map(|(&index, &pointer)| (index, pointer)))
    }

    fn insert(&mut self, index: u64, pointer: BlockPtr) {
        let stem = self.0.entry(index / FANOUT as u64).or_default();
        Rc::make_mut(stem).insert(index, pointer);
    }
}

/// Pages that were found intact, whatever root and version led to them.
#[derive(Default)]
pub(crate) struct Intact {
    leaves: BTreeSet<(PageId, BlockPtr)>,
    /// Inner pages of level 1 below which all is intact.
    stems: BTreeMap<(PageId, BlockPtr), Rc<Stem>>,
}

impl Intact {
    fn has(&self, id: PageId, pointer: BlockPtr) -> bool {
        let found = (shared_id(id), pointer);
        self.leaves.contains(&found) || self.stems.contains_key(&found)
    }
}

/// What a page is for all versions that may share it ([`PageId::stands_for`]).
fn shared_id(id: PageId) -> PageId {
    let tree = if id.tree.is_map() { TreeId::volume(VolumeId(0)) } else { id.tree };
    PageId { tree, ..id }
}

/// The pages of a tree.
#[derive(Default)]
pub(crate) struct TreeImage {
    /// Intact leaves.
    pub(crate) leaves: Leaves,
    /// Intact inner pages, by level and index.
    pub(crate) inner: BTreeMap<(u8, u64), BlockPtr>,
    /// In ascending ranges.
    lost: Vec<LostLeaves>,
    pub(crate) damaged: Vec<PageId>,
}

impl TreeImage {
    /// The block of the damaged page with which leaf `index` was lost; none where it was not.
    pub(crate) fn lost_with(&self, index: u64) -> Option<u64> {
        let after = self.lost.partition_point(|lost| lost.leaves.start <= index);
        let lost = self.lost.get(after.checked_sub(1)?)?;
        lost.leaves.contains(&index).then_some(lost.block)
    }

    /// Every leaf of which nobody knows what it holds, in ascending order.
    pub(crate) fn lost(&self) -> impl Iterator<Item = u64> {
        self.lost.iter().flat_map(|lost| lost.leaves.clone())
    }

    pub(crate) fn lost_leaves(&self) -> u64 {
        self.lost.iter().map(|lost| lost.leaves.end - lost.leaves.start).sum()
    }

    /// How many leaves are lost whose index is below `end`, and that `stand_in` does not know.
    pub(crate) fn lost_leaves_before(&self, end: u64, stand_in: Option<&TreeImage>) -> u64 {
        let lost = self.lost.iter().map(|lost| lost.leaves.start..lost.leaves.end.min(end));
        let lost = lost.filter(|leaves| !leaves.is_empty());
        match stand_in {
            Some(other) => lost.map(|leaves| other.lost_leaves_of(&leaves)).sum(),
            None => lost.map(|leaves| leaves.end - leaves.start).sum(),
        }
    }

    /// How many of these, which are some, are lost.
    fn lost_leaves_of(&self, leaves: &Range<u64>) -> u64 {
        let first = self.lost.partition_point(|lost| lost.leaves.end <= leaves.start);
        let met = self.lost[first..].iter().map(|lost| &lost.leaves);
        met.take_while(|lost| lost.start < leaves.end)
            .map(|lost| lost.end.min(leaves.end) - lost.start.max(leaves.start))
            .sum()
    }

    fn settle(&mut self) {
        self.lost.sort_by_key(|lost| lost.leaves.start);
        self.lost.dedup_by(|next, last| {
            let goes_on = next.block == last.block && last.leaves.end >= next.leaves.start;
            if goes_on {
                last.leaves.end = last.leaves.end.max(next.leaves.end);
            }
            goes_on
        });
    }
}

/// A page that is the one that was meant, or what is left of it.
type ReadPage = Result<Page, Option<Box<Page>>>;

/// Reads a page and checks that it is the one; an error has what is left of it.
pub(crate) fn read_page(
    reads: &mut DamageReads,
    tables_blocks: u64,
    id: PageId,
    pointer: BlockPtr,
) -> ReadPage {
    if pointer.block() >= tables_blocks {
        return Err(None);
    }
    page_in(&reads.block(Zone::Tables, pointer.block()), id, pointer)
}

/// The same of many, read together.
pub(crate) fn read_pages(
    reads: &mut DamageReads,
    tables_blocks: u64,
    pages: &[(PageId, BlockPtr)],
) -> Vec<ReadPage> {
    let is_there = |(_, pointer): &&(PageId, BlockPtr)| pointer.block() < tables_blocks;
    let blocks = pages.iter().filter(is_there).map(|(_, pointer)| pointer.block()).collect();
    let ahead = reads.blocks_ahead(Zone::Tables, blocks);
    let read = |&(id, pointer): &(PageId, BlockPtr)| match ahead.get(pointer.block()) {
        Some(bytes) => page_in(bytes, id, pointer),
        // One that does not come with the others is asked for alone.
        None => read_page(reads, tables_blocks, id, pointer),
    };
    pages.iter().map(read).collect()
}

fn page_in(bytes: &[u8], id: PageId, pointer: BlockPtr) -> ReadPage {
    let page = Page::from_bytes(bytes).map_err(|_| None)?;
    match page.check(id, pointer.tag()) {
        Ok(()) => Ok(page),
        Err(_) => Err(Some(page).filter(|page| page.is_left_of(pointer.tag())).map(Box::new)),
    }
}

/// A page that a pointer leads to, if it has been read already with what that says.
struct Met {
    id: PageId,
    pointer: BlockPtr,
    read: Option<ReadPage>,
}

/// Leaves that are read together: those below one inner page and below the next ones, 16 MiB.
const LEAVES_AHEAD: usize = 4096;

/// Walks a tree. `leaves_end` bounds what may be lost; what is `intact` needs no reading.
pub(crate) struct TreeWalk<'a> {
    pub(crate) reads: &'a mut DamageReads,
    pub(crate) tables_blocks: u64,
    pub(crate) blocks: &'a mut Blocks,
    pub(crate) intact: &'a mut Intact,
    pub(crate) leaves_end: u64,
    /// Leaves that were read with those below an inner page before.
    pub(crate) ahead: BTreeMap<(PageId, BlockPtr), ReadPage>,
}

impl TreeWalk<'_> {
    pub(crate) fn walk(&mut self, tree: TreeId, root: TreeRoot) -> TreeImage {
        let mut image = TreeImage::default();
        let mut stack = Vec::new();
        if !root.pointer.is_none() {
            let id = PageId { tree, level: root.depth, index: 0 };
            stack.push(Met { id, pointer: root.pointer, read: None });
        }
        while let Some(met) = stack.pop() {
            self.visit(met, &mut image, &mut stack);
        }
        image.settle();
        image
    }

    fn visit(&mut self, met: Met, image: &mut TreeImage, stack: &mut Vec<Met>) {
        let Met { id, pointer, read } = met;
        if self.take_intact(id, pointer, image) {
            return;
        }
        let alone = || read_page(self.reads, self.tables_blocks, id, pointer);
        let page = match read.unwrap_or_else(alone) {
            Ok(page) => page,
            Err(remains) => {
                // What is left of it may be all that leads to what is below.
                self.blocks.insert(pointer.block());
                image.damaged.push(id);
                let below = Below { id, block: pointer.block() };
                return self.salvage(below, remains.as_deref(), image, stack);
            }
        };
        self.blocks.insert(pointer.block());
        if id.level == 0 {
            image.leaves.insert(id.index, pointer);
            self.intact.leaves.insert((shared_id(id), pointer));
            return;
        }
        image.inner.insert((id.level, id.index), pointer);
        if id.level > 1 {
            return stack.extend(self.children(id, &page));
        }
        self.read_leaves_ahead(id, &page, stack);
        let damaged = image.damaged.len();
        for leaf in self.children(id, &page) {
            self.visit(leaf, image, stack);
        }
        let stem = image.leaves.0.get(&id.index).filter(|_| image.damaged.len() == damaged);
        let intact = stem.map(|stem| ((shared_id(id), pointer), Rc::clone(stem)));
        self.intact.stems.extend(intact);
    }

    /// Reads what is below an inner page of level 1, unless that was done, together with what is
    /// below those that are next on the stack.
    fn read_leaves_ahead(&mut self, id: PageId, page: &Page, stack: &[Met]) {
        let of = |id: PageId, page: &Page| -> Vec<(PageId, BlockPtr)> {
            let all = (0..FANOUT).filter_map(|slot| child_of(id, page, slot));
            all.filter(|(id, pointer)| !pointer.is_none() && !self.intact.has(*id, *pointer))
                .collect()
        };
        let mut leaves = of(id, page);
        if self.tables_blocks < SMALL_TABLES_BLOCKS
            || leaves.first().is_none_or(|first| self.ahead.contains_key(first))
        {
            return;
        }
        let next = stack.iter().rev().take_while(|met| met.id.level == 1);
        for met in next.filter(|met| !self.intact.has(met.id, met.pointer)) {
            let Some(Ok(page)) = &met.read else { break };
            if leaves.len() + FANOUT > LEAVES_AHEAD {
                break;
            }
            leaves.extend(of(met.id, page));
        }
        let read = read_pages(self.reads, self.tables_blocks, &leaves);
        self.ahead = leaves.into_iter().zip(read).collect();
    }

    /// What is below an inner page, read together but for what is known to be intact.
    fn children(&mut self, id: PageId, page: &Page) -> Vec<Met> {
        let all = (0..FANOUT).filter_map(|slot| child_of(id, page, slot));
        let mut children: Vec<Met> = all
            .filter(|(_, pointer)| !pointer.is_none())
            .map(|(id, pointer)| Met { id, pointer, read: None })
            .collect();
        let is_unread = |met: &&mut Met| !self.intact.has(met.id, met.pointer);
        let mut unread: Vec<&mut Met> = children.iter_mut().filter(is_unread).collect();
        unread.retain_mut(|met| {
            met.read = self.ahead.remove(&(met.id, met.pointer));
            met.read.is_none()
        });
        let pages: Vec<(PageId, BlockPtr)> =
            unread.iter().map(|met| (met.id, met.pointer)).collect();
        let read = read_pages(self.reads, self.tables_blocks, &pages);
        for (met, page) in unread.into_iter().zip(read) {
            met.read = Some(page);
        }
        children
    }

    /// Takes over what was found intact before; false if it was not.
    fn take_intact(&mut self, id: PageId, pointer: BlockPtr, image: &mut TreeImage) -> bool {
        let found = (shared_id(id), pointer);
        match id.level {
            0 if self.intact.leaves.contains(&found) => image.leaves.insert(id.index, pointer),
            1 => {
                let Some(stem) = self.intact.stems.get(&found) else { return false };
                stem.values().for_each(|leaf| self.blocks.insert(leaf.block()));
                image.leaves.0.insert(id.index, Rc::clone(stem));
                image.inner.insert((id.level, id.index), pointer);
            }
            _ => return false,
        }
        self.blocks.insert(pointer.block());
        true
    }

    /// Finds what is still to be found below a damaged page.
    fn salvage(
        &mut self,
        below: Below,
        remains: Option<&Page>,
        image: &mut TreeImage,
        stack: &mut Vec<Met>,
    ) {
        let (id, leaves_end) = (below.id, self.leaves_end);
        let Some(remains) = remains.filter(|_| id.level > 0) else {
            return lose(below, leaves_end, image);
        };
        for slot in 0..FANOUT {
            let Some((child, pointer)) = child_of(id, remains, slot) else { return };
            if first_leaf(child).is_none_or(|first| first >= leaves_end) {
                return;
            }
            let sound = !pointer.is_none()
                && read_page(self.reads, self.tables_blocks, child, pointer).is_ok();
            if sound {
                stack.push(Met { id: child, pointer, read: None });
            } else {
                lose(Below { id: child, ..below }, leaves_end, image);
            }
        }
    }
}

fn child_of(id: PageId, page: &Page, slot: usize) -> Option<(PageId, BlockPtr)> {
    let index = id.index.checked_mul(FANOUT as u64)?.checked_add(slot as u64)?;
    let child = PageId { tree: id.tree, level: id.level.checked_sub(1)?, index };
    Some((child, pointer_page::get(page, slot)))
}

fn first_leaf(id: PageId) -> Option<u64> {
    (0..id.level).try_fold(id.index, |index, _| index.checked_mul(FANOUT as u64))
}

/// What is at or below `id` and may be lost with the damaged page in `block`.
#[derive(Copy, Clone)]
struct Below {
    id: PageId,
    block: u64,
}

fn lose(Below { id, block }: Below, leaves_end: u64, image: &mut TreeImage) {
    let Some(start) = first_leaf(id) else { return };
    let next = PageId { index: id.index + 1, ..id };
    let end = first_leaf(next).unwrap_or(u64::MAX).min(leaves_end);
    if start < end {
        image.lost.push(LostLeaves { leaves: start..end, block });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(lost: &[Range<u64>]) -> TreeImage {
        let lost = lost.iter().map(|leaves| LostLeaves { leaves: leaves.clone(), block: 7 });
        TreeImage { lost: lost.collect(), ..TreeImage::default() }
    }

    #[test]
    fn what_another_image_knows_is_not_lost_nor_what_lies_behind_the_end() {
        let lost = image(&[0..4, 10..20]);
        assert_eq!(lost.lost_leaves_before(u64::MAX, None), 14);
        assert_eq!(lost.lost_leaves_before(12, None), 6);
        let other = image(&[1..2, 3..15, 19..30]);
        assert_eq!(lost.lost_leaves_before(u64::MAX, Some(&other)), 8);
        // As of a volume that was cut shorter since.
        assert_eq!(lost.lost_leaves_before(8, Some(&other)), 2);
        assert_eq!(lost.lost_leaves_before(3, Some(&other)), 1);
    }
}
