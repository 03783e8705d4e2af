//! Pages that came from the disk and went to it, by what they belong to.

use format::units::{PageId, TreeId};

/// Pages of one table since the store was opened.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TableTraffic {
    /// Leaves that had to be read: what was wanted and not in the cache.
    pub leaf_reads: u64,
    /// Pages above leaves that had to be read.
    pub inner_reads: u64,
    /// Pages that were given a block to be written to.
    pub writes: u64,
}

/// The same of all tables.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Of the Hash-PBN table: buckets, young entries, filters.
    pub hash_pbn: TableTraffic,
    /// Of the PBN-PBA table.
    pub pbn_pba: TableTraffic,
    /// Of the maps of all volumes.
    pub maps: TableTraffic,
    /// Of the rest: catalog, containers, free PBNs.
    pub others: TableTraffic,
}

impl Traffic {
    fn of(&mut self, tree: TreeId) -> &mut TableTraffic {
        match tree {
            TreeId::HASH_PBN | TreeId::YOUNG | TreeId::HASH_FILTER => &mut self.hash_pbn,
            TreeId::PBN_PBA => &mut self.pbn_pba,
            tree if tree.is_map() => &mut self.maps,
            _ => &mut self.others,
        }
    }

    pub(super) fn count_read(&mut self, id: PageId) {
        let table = self.of(id.tree);
        *(if id.level == 0 { &mut table.leaf_reads } else { &mut table.inner_reads }) += 1;
    }

    pub(super) fn count_write(&mut self, id: PageId) {
        self.of(id.tree).writes += 1;
    }
}
