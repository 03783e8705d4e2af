//! Entries of level 2: where a cluster of the disk is, or each of its 32 subclusters.
//!
//! A *unit* is what one entry places as a whole: a subcluster where the image has them, else a
//! cluster. Decoding does no I/O.

use super::header::Header;
use crate::layer::{CompressedCluster, Place, Span};

/// Bits of an entry that are an offset in the file.
pub(super) const OFFSET_MASK: u64 = 0x00FF_FFFF_FFFF_FE00;
/// Nothing else refers to the cluster. In an image whose data is in another file it also tells a
/// cluster at offset 0 from none.
const COPIED_FLAG: u64 = 1 << 63;
const COMPRESSED_FLAG: u64 = 1 << 62;
const ZERO_FLAG: u64 = 1;
/// Compressed bytes are counted in sectors of this size.
const SECTOR_BYTES: u64 = 512;

/// A level-2 table and what is needed to read it.
#[derive(Copy, Clone)]
pub(super) struct L2Table<'a> {
    pub(super) header: &'a Header,
    pub(super) words: &'a [u64],
    /// Length of the file that holds the clusters.
    pub(super) data_bytes: u64,
}

impl L2Table<'_> {
    /// What the table of the disk from `start_bytes` on says of `at_bytes`: the stretch of units
    /// that lie one behind the other in the file, or that are all absent or zeros. What cannot be
    /// is an error that says so.
    pub(super) fn span(&self, start_bytes: u64, at_bytes: u64) -> Result<Span, String> {
        let unit_bytes = self.header.subcluster_bytes();
        let cluster_bytes = self.header.cluster_bytes();
        let first_unit = (at_bytes - start_bytes) / unit_bytes;
        let first = self.place(first_unit)?;
        if let Place::Compressed(cluster) = first {
            let skip_bytes = (at_bytes - start_bytes) % cluster_bytes;
            let place = Place::Compressed(CompressedCluster { skip_bytes, ..cluster });
            return Ok(Span { end_bytes: at_bytes - skip_bytes + cluster_bytes, place });
        }
        let units = self.header.l2_span_bytes() / unit_bytes;
        let mut expected = first;
        let mut end_unit = first_unit + 1;
        while end_unit < units {
            if let Place::Host(offset_bytes) = expected {
                expected = Place::Host(offset_bytes + unit_bytes);
            }
            // What is wrong with an entry is said when it is asked for.
            if self.place(end_unit).ok() != Some(expected) {
                break;
            }
            end_unit += 1;
        }
        let place = match first {
            Place::Host(offset_bytes) => Place::Host(offset_bytes + at_bytes % unit_bytes),
            other => other,
        };
        Ok(Span { end_bytes: start_bytes.saturating_add(end_unit * unit_bytes), place })
    }

    /// Where a unit of the table is; a compressed cluster is told for each of its units.
    fn place(&self, unit: u64) -> Result<Place, String> {
        let units_per_cluster = self.header.cluster_bytes() / self.header.subcluster_bytes();
        let (cluster, part) = (unit / units_per_cluster, unit % units_per_cluster);
        let at = usize::try_from(cluster).unwrap_or(usize::MAX);
        let at = at.saturating_mul(self.header.l2_entry_words());
        let entry = self.words.get(at).copied().unwrap_or(0);
        if entry & COMPRESSED_FLAG != 0 {
            return self.compressed(entry).map(Place::Compressed);
        }
        if self.header.has_zero_flag && entry & ZERO_FLAG != 0 {
            return Ok(Place::Zeros);
        }
        let cluster_at = self.cluster_offset(entry)?;
        if !self.header.has_subclusters {
            return Ok(cluster_at.map_or(Place::Below, Place::Host));
        }
        let bitmap = self.words.get(at + 1).copied().unwrap_or(0);
        let (allocated, zeros) = (bitmap >> part & 1 != 0, bitmap >> (32 + part) & 1 != 0);
        match (allocated, zeros, cluster_at) {
            (false, true, _) => Ok(Place::Zeros),
            (false, false, _) => Ok(Place::Below),
            (true, false, Some(offset_bytes)) => {
                Ok(Place::Host(offset_bytes + part * self.header.subcluster_bytes()))
            }
            (true, true, _) => Err("a subcluster would be both data and zeros".to_owned()),
            (true, false, None) => Err("a subcluster would be in a cluster that is not".to_owned()),
        }
    }

    /// Where the cluster of an entry begins; None: nowhere.
    fn cluster_offset(&self, entry: u64) -> Result<Option<u64>, String> {
        let offset_bytes = entry & OFFSET_MASK;
        let is_there = self.header.data_file.is_some() && entry & COPIED_FLAG != 0;
        if offset_bytes == 0 && !is_there {
            return Ok(None);
        }
        let aligned = offset_bytes.is_multiple_of(self.header.cluster_bytes());
        if aligned && offset_bytes < self.data_bytes {
            return Ok(Some(offset_bytes));
        }
        Err(format!("a cluster would be at {offset_bytes}"))
    }

    /// The compressed cluster of an entry: the lower bits are its offset, the rest its sectors
    /// behind the first.
    fn compressed(&self, entry: u64) -> Result<CompressedCluster, String> {
        if self.header.data_file.is_some() {
            return Err("a cluster in a data file would be compressed".to_owned());
        }
        let offset_bits = 62 - (self.header.cluster_bits - 8);
        let offset_bytes = entry & ((1 << offset_bits) - 1);
        let sectors = (entry & (COMPRESSED_FLAG - 1)) >> offset_bits;
        let length_bytes = (sectors + 1) * SECTOR_BYTES - offset_bytes % SECTOR_BYTES;
        if offset_bytes >= self.data_bytes {
            return Err(format!("a compressed cluster would be at {offset_bytes}"));
        }
        // The last sector need not be there to its end.
        let length_bytes = length_bytes.min(self.data_bytes - offset_bytes);
        Ok(CompressedCluster { offset_bytes, length_bytes, skip_bytes: 0 })
    }
}
