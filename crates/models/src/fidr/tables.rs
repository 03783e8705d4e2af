//! How large FIDR's tables are (section 2.1): the Hash-PBN table in buckets of 4 KiB, an array from
//! LBA to PBN, an array from PBN to place and compressed size.

use crate::units::{Bytes, CHUNK_BYTES};

const FINGERPRINT_BYTES: u64 = 32;
const PBN_BYTES: u64 = 6;
/// Offset in the container, and compressed size.
const PLACE_BYTES: u64 = 2 + 2;
const BUCKET_BYTES: u64 = 4096;
const HASH_PBN_ENTRY_BYTES: u64 = FINGERPRINT_BYTES + PBN_BYTES;

/// Entries of a bucket.
pub const ENTRIES_PER_BUCKET: u64 = BUCKET_BYTES / HASH_PBN_ENTRY_BYTES;

/// Bytes of the entries for unique data; buckets that are not full take more.
#[must_use]
pub fn hash_pbn_bytes(unique: Bytes) -> Bytes {
    Bytes(unique.0 / CHUNK_BYTES * HASH_PBN_ENTRY_BYTES)
}

/// Bytes of each table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Fingerprint to PBN, of each unique chunk.
    pub hash_pbn: Bytes,
    /// LBA to PBN, of each chunk that a client sees.
    pub lba_pbn: Bytes,
    /// PBN to place, of each unique chunk.
    pub pbn_pba: Bytes,
}

impl TableSizes {
    /// Where clients see `logical` and `unique` of it is stored, before compression.
    #[must_use]
    pub fn of(logical: Bytes, unique: Bytes) -> Self {
        Self {
            hash_pbn: hash_pbn_bytes(unique),
            lba_pbn: Bytes(logical.0 / CHUNK_BYTES * PBN_BYTES),
            pbn_pba: Bytes(unique.0 / CHUNK_BYTES * PLACE_BYTES),
        }
    }

    /// Of all three.
    #[must_use]
    pub fn total(self) -> Bytes {
        self.hash_pbn + self.lba_pbn + self.pbn_pba
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, ENTRIES_PER_BUCKET, TableSizes, hash_pbn_bytes};

    #[test]
    fn a_pebibyte_of_unique_chunks_takes_nine_and_a_half_tebibytes() {
        assert_eq!(hash_pbn_bytes(Bytes(1 << 50)), Bytes(19 << 39));
        assert_eq!(ENTRIES_PER_BUCKET, 107);
    }

    #[test]
    fn a_table_for_four_tebibytes_unique_of_eight_is_54_gibibytes() {
        let sizes = TableSizes::of(Bytes(8 << 40), Bytes(4 << 40));
        assert_eq!(sizes.total(), Bytes(54 << 30));
    }
}
