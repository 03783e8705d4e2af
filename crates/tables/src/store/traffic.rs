//! Pages that came from the disk and went to it, by what they belong to.

use format::units::PageId;

use super::table::TableKind;

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
    fn of(&mut self, table: TableKind) -> &mut TableTraffic {
        match table {
            TableKind::HashPbn => &mut self.hash_pbn,
            TableKind::PbnPba => &mut self.pbn_pba,
            TableKind::Maps => &mut self.maps,
            TableKind::Others => &mut self.others,
        }
    }

    pub(super) fn count_read(&mut self, id: PageId) {
        let table = self.of(TableKind::of(id.tree));
        *(if id.level == 0 { &mut table.leaf_reads } else { &mut table.inner_reads }) += 1;
    }

    pub(super) fn count_write(&mut self, id: PageId) {
        self.of(TableKind::of(id.tree)).writes += 1;
    }
}
