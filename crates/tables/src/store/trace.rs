//! The way to a leaf, page by page: for people who ask where something stands.

use format::units::{PageId, TreeId};

use super::page_store::PageStore;
use super::path::{ancestor, leaf_id};

/// A page on the way to a leaf, topmost first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PageOnWay {
    /// Which page.
    pub id: PageId,
    /// Where it is on disk, or was before it changed; none when it was never written.
    pub block: Option<u64>,
    /// Whether it has changed since.
    pub dirty: bool,
}

impl PageStore {
    /// The pages that exist on the way to a leaf. The leaf must have been wanted.
    #[must_use]
    pub fn way_to(&self, tree: TreeId, index: u64) -> Vec<PageOnWay> {
        let leaf = leaf_id(tree, index);
        let levels = (0..=self.tree_root(tree).depth).rev();
        let pages = levels.filter_map(|level| {
            let slot = self.frames.find(ancestor(leaf, level))?;
            let frame = self.frames.get(slot);
            let block = Some(frame.block).filter(|&block| block != 0);
            Some(PageOnWay { id: frame.id, block, dirty: frame.is_dirty() })
        });
        pages.collect()
    }
}
