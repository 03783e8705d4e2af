//! The shape of a tree follows its leaves: it grows with the first that does not fit, and what is
//! empty goes with the last.

use format::pointer_page;
use format::units::{BlockPtr, PageId, TreeId, TreeRoot};

use super::frames::Frame;
use super::page_memory::PageMemory;
use super::page_store::PageStore;
use super::path::{Path, UNWRITTEN, ancestor, child_slot, depth_for, first_used, fits, leaf_id};
use super::slot::Slot;

impl PageStore {
    /// Makes an absent leaf and the inner pages that it lacks.
    pub(super) fn make(&mut self, leaf: PageId) -> Slot {
        self.grow_to(leaf);
        let Path::Absent { mut above } = self.path_to(leaf) else {
            unreachable!("{leaf} is changed without having been wanted")
        };
        if let Some(above) = above {
            self.own(above);
        }
        let depth = self.tree_root(leaf.tree).depth;
        let missing = above.map_or(depth + 1, |slot| self.frames.get(slot).id.level);
        let mut made = None;
        for level in (0..missing).rev() {
            let id = ancestor(leaf, level);
            let slot = self.insert_empty(id, above);
            self.frames.mark_dirty(slot);
            self.point(above, id, UNWRITTEN);
            if let Some(above) = above {
                self.frames.get_mut(above).children += 1;
            }
            above = Some(slot);
            made = Some(slot);
        }
        made.unwrap_or_else(|| unreachable!("{leaf} is absent and below what is resident"))
    }

    fn insert_empty(&mut self, id: PageId, above: Option<Slot>) -> Slot {
        let page = self.frames.spares.empty(id);
        self.frames.insert(Frame::made(id, PageMemory::Alone(page), above))
    }

    /// Adds levels on top until `leaf` fits.
    fn grow_to(&mut self, leaf: PageId) {
        let tree = leaf.tree;
        let mut root = self.tree_root(tree);
        if root.pointer.is_none() {
            root.depth = depth_for(leaf.index);
            self.trees.insert(tree, root);
        }
        while !fits(root.depth, leaf.index) {
            let old = PageId { tree, level: root.depth, index: 0 };
            let id = PageId { level: root.depth + 1, ..old };
            let slot = self.insert_empty(id, None);
            pointer_page::set(self.frames.change(slot), 0, root.pointer);
            self.adopt_child(slot, old);
            root = TreeRoot { pointer: UNWRITTEN, depth: id.level };
            self.trees.insert(tree, root);
        }
    }

    /// The former top of a tree, if it is resident or on its way, gets a parent.
    fn adopt_child(&mut self, parent: Slot, child: PageId) {
        if let Some(slot) = self.frames.find(child) {
            self.frames.get_mut(slot).parent = Some(parent);
        } else if let Some(arriving) = self.arriving.get_mut(&child) {
            arriving.parent = Some(parent);
        } else {
            return;
        }
        self.frames.get_mut(parent).children += 1;
    }

    /// Makes `parent`, or the tree's root, point to `child`.
    pub(super) fn point(&mut self, parent: Option<Slot>, child: PageId, pointer: BlockPtr) {
        match parent {
            Some(parent) => {
                pointer_page::set(self.frames.change(parent), child_slot(child), pointer);
            }
            None => {
                let root = TreeRoot { pointer, depth: child.level };
                self.trees.insert(child.tree, root);
            }
        }
    }

    /// Removes a leaf, and the inner pages that are empty then. It must have been wanted; an absent
    /// leaf stays absent.
    pub fn remove_page(&mut self, tree: TreeId, index: u64) {
        let Some(leaf) = self.frames.find(leaf_id(tree, index)) else { return };
        if let Some(parent) = self.frames.get(leaf).parent {
            self.own(parent);
        }
        let mut above = self.take_out(leaf);
        while let Some(slot) = above.filter(|&slot| self.points_to_nothing(slot)) {
            above = self.take_out(slot);
        }
    }

    /// Whether an inner page is empty, and goes.
    pub(super) fn points_to_nothing(&self, slot: Slot) -> bool {
        let frame = self.frames.get(slot);
        frame.children == 0 && first_used(&frame.page, 0).is_none()
    }

    /// Takes out a page without children, of which all that is above is owned; the one above it.
    pub(super) fn take_out(&mut self, slot: Slot) -> Option<Slot> {
        let frame = self.frames.remove(slot);
        self.frames.spares.put(frame.page);
        if frame.block != 0 {
            self.space.free(frame.block);
        }
        let Some(parent) = frame.parent else {
            self.trees.insert(frame.id.tree, TreeRoot::default());
            return None;
        };
        self.point(Some(parent), frame.id, BlockPtr::NONE);
        self.frames.get_mut(parent).children -= 1;
        Some(parent)
    }
}
