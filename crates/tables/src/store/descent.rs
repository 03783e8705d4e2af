//! The way from a root to a page, as far as it is resident.
//!
//! A page is looked for from below: the deepest resident page of its path says what comes next,
//! and since the parent of a resident page is resident, nothing above it need be looked at.

use format::pointer_page;
use format::units::PageId;

use super::page_io::PageRead;
use super::page_store::PageStore;
use super::path::{Path, ancestor, child_slot, fits};
use super::slot::Slot;

impl PageStore {
    /// How far the way to `page` is resident.
    pub(super) fn path_to(&self, page: PageId) -> Path {
        let root = self.tree_root(page.tree);
        if root.pointer.is_none()
            || page.level > root.depth
            || !fits(root.depth - page.level, page.index)
        {
            return Path::Absent { above: None };
        }
        if let Some(slot) = self.frames.find(page) {
            return Path::Here(slot);
        }
        let mut child = page;
        while child.level < root.depth {
            let above = ancestor(child, child.level + 1);
            if let Some(slot) = self.frames.find(above) {
                return self.below(slot, child);
            }
            child = above;
        }
        Path::Missing { read: PageRead { id: child, pointer: root.pointer }, parent: None }
    }

    fn below(&self, parent: Slot, child: PageId) -> Path {
        let pointer = pointer_page::get(self.page_at(parent), child_slot(child));
        if pointer.is_none() {
            return Path::Absent { above: Some(parent) };
        }
        Path::Missing { read: PageRead { id: child, pointer }, parent: Some(parent) }
    }
}
