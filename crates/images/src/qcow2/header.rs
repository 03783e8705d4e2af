//! The header of a qcow2 image, versions 2 and 3, as QEMU's `docs/interop/qcow2.rst` defines it.
//! All numbers are big-endian.
//!
//! Decoding does no I/O and trusts nothing: it answers with a header whose fields fit together, or
//! says what cannot be or is not read here.

/// How every qcow2 image begins.
pub(crate) const MAGIC: [u8; 4] = *b"QFI\xfb";
/// Bytes that version 2 has; the shortest header.
const HEADER_BYTES_V2: usize = 72;
/// Bytes that version 3 has at least.
const HEADER_BYTES_V3: usize = 104;
/// Sizes of clusters that QEMU takes: 512 B to 2 MiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
/// QEMU takes no larger level-1 table.
const L1_BYTES_MAX: u64 = 32 << 20;
/// QEMU takes no longer name of a backing file.
const BACKING_NAME_BYTES_MAX: usize = 1023;
/// Clusters with subclusters are at least this large.
const CLUSTER_BITS_EXTENDED_MIN: u32 = 14;
/// Parts of a cluster that an extended entry of level 2 describes.
const SUBCLUSTERS: u64 = 32;
/// Where a header that is long enough names the compression of clusters.
const COMPRESSION_AT: usize = 104;
const EXTENSION_END: u32 = 0;
const EXTENSION_BACKING_FORMAT: u32 = 0xE279_2ACA;
const EXTENSION_DATA_FILE: u32 = 0x4441_5441;

/// Bits of `incompatible_features`. Dirty (bit 0) says that reference counts may be wrong, which
/// reading does not look at.
const INCOMPATIBLE_CORRUPT: u64 = 1 << 1;
const INCOMPATIBLE_EXTERNAL_DATA: u64 = 1 << 2;
const INCOMPATIBLE_COMPRESSION: u64 = 1 << 3;
const INCOMPATIBLE_EXTENDED_L2: u64 = 1 << 4;
const INCOMPATIBLE_KNOWN: u64 = (1 << 5) - 1;

/// What reading an image needs of its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) cluster_bits: u32,
    /// Of the disk.
    pub(crate) size_bytes: u64,
    pub(crate) l1_offset_bytes: u64,
    /// Entries that the disk's size needs; the table may be longer.
    pub(crate) l1_entries: usize,
    /// Whether entries of level 2 may say that a cluster is zeros.
    pub(crate) has_zero_flag: bool,
    /// Whether entries of level 2 have a second word, which describes 32 subclusters.
    pub(crate) has_subclusters: bool,
    pub(crate) compression: ClusterCompression,
    pub(crate) backing: Option<Backing>,
    /// The name of the file that holds the clusters, if this one does not.
    pub(crate) data_file: Option<Vec<u8>>,
}

/// How compressed clusters are compressed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusterCompression {
    /// Raw deflate, without a zlib header.
    Deflate,
    Zstd,
}

/// The image below this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Backing {
    /// As it stands in the header: a path, or something that only QEMU understands.
    pub(crate) name: Vec<u8>,
    /// Its format, when the image says it.
    pub(crate) format: Option<Vec<u8>>,
}

/// Why a header is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Unsupported(&'static str),
    Damaged(String),
}

impl Header {
    /// Decodes the header in `bytes`, which are the first of the file: its first cluster, or the
    /// whole file when that is shorter.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let cut = || HeaderError::Damaged("the file ends inside its header".to_owned());
        let word = |at: usize| u32_at(bytes, at).ok_or_else(cut);
        let long = |at: usize| u64_at(bytes, at).ok_or_else(cut);
        let version = word(4)?;
        let (features, header_bytes) = match version {
            2 => (0, HEADER_BYTES_V2),
            3 => (long(72)?, word(100)? as usize),
            _ => return Err(HeaderError::Unsupported("of a version other than 2 and 3")),
        };
        if version == 3 && header_bytes < HEADER_BYTES_V3 {
            return Err(damaged(format!("its header claims to have {header_bytes} bytes")));
        }
        check_features(features)?;
        if word(32)? != 0 {
            return Err(HeaderError::Unsupported("with encryption"));
        }
        let cluster_bits = word(20)?;
        let has_subclusters = features & INCOMPATIBLE_EXTENDED_L2 != 0;
        let too_small = has_subclusters && cluster_bits < CLUSTER_BITS_EXTENDED_MIN;
        if !CLUSTER_BITS.contains(&cluster_bits) || too_small {
            return Err(damaged(format!("its clusters would have 2^{cluster_bits} bytes")));
        }
        let (size_bytes, l1_offset_bytes) = (long(24)?, long(40)?);
        if l1_offset_bytes % (1 << cluster_bits) != 0 {
            return Err(damaged(format!("its level-1 table is at {l1_offset_bytes}")));
        }
        let backing = match long(8)? {
            0 => None,
            offset_bytes => Some(Backing {
                name: backing_name(bytes, offset_bytes, word(16)?)?,
                format: extension(bytes, header_bytes, EXTENSION_BACKING_FORMAT),
            }),
        };
        let mut header = Self {
            cluster_bits,
            size_bytes,
            l1_offset_bytes,
            l1_entries: 0,
            has_zero_flag: version == 3 && !has_subclusters,
            has_subclusters,
            compression: compression(bytes, features, header_bytes)?,
            backing,
            data_file: data_file(bytes, features, header_bytes)?,
        };
        header.l1_entries = l1_entries(size_bytes, header.l2_span_bytes(), word(36)?)?;
        Ok(header)
    }

    /// Bytes of a cluster, which are also those of a level-2 table.
    pub(crate) fn cluster_bytes(&self) -> u64 {
        1 << self.cluster_bits
    }

    /// Bytes of a subcluster; of a cluster, where clusters have no parts.
    pub(crate) fn subcluster_bytes(&self) -> u64 {
        if self.has_subclusters { self.cluster_bytes() / SUBCLUSTERS } else { self.cluster_bytes() }
    }

    /// Words of 8 bytes of an entry of level 2.
    pub(crate) fn l2_entry_words(&self) -> usize {
        if self.has_subclusters { 2 } else { 1 }
    }

    /// Entries of a level-2 table, which fills a cluster.
    pub(crate) fn l2_entries(&self) -> u64 {
        self.cluster_bytes() / (8 * self.l2_entry_words() as u64)
    }

    /// Bytes of the disk that one level-2 table describes.
    pub(crate) fn l2_span_bytes(&self) -> u64 {
        self.cluster_bytes() * self.l2_entries()
    }
}

fn check_features(incompatible: u64) -> Result<(), HeaderError> {
    if incompatible & INCOMPATIBLE_CORRUPT != 0 {
        return Err(HeaderError::Unsupported("that is marked as corrupt"));
    }
    if incompatible & !INCOMPATIBLE_KNOWN != 0 {
        return Err(HeaderError::Unsupported("with a feature that is not known"));
    }
    Ok(())
}

/// The compression that the header names: deflate, unless a feature bit says otherwise.
fn compression(
    bytes: &[u8],
    features: u64,
    header_bytes: usize,
) -> Result<ClusterCompression, HeaderError> {
    if features & INCOMPATIBLE_COMPRESSION == 0 {
        return Ok(ClusterCompression::Deflate);
    }
    let code = bytes.get(COMPRESSION_AT).filter(|_| header_bytes > COMPRESSION_AT);
    match code {
        Some(0) => Ok(ClusterCompression::Deflate),
        Some(1) => Ok(ClusterCompression::Zstd),
        Some(_) => Err(HeaderError::Unsupported("with a compression that is not known")),
        None => Err(damaged("its header ends before it names its compression".to_owned())),
    }
}

/// The name of the file that holds the clusters.
fn data_file(
    bytes: &[u8],
    features: u64,
    header_bytes: usize,
) -> Result<Option<Vec<u8>>, HeaderError> {
    if features & INCOMPATIBLE_EXTERNAL_DATA == 0 {
        return Ok(None);
    }
    match extension(bytes, header_bytes, EXTENSION_DATA_FILE) {
        Some(name) if !name.is_empty() && name.len() <= BACKING_NAME_BYTES_MAX => Ok(Some(name)),
        _ => Err(damaged("its data is in another file, which it does not name".to_owned())),
    }
}

/// Entries of the level-1 table that a disk of `size_bytes` needs, of which there are `there`.
fn l1_entries(size_bytes: u64, span_bytes: u64, there: u32) -> Result<usize, HeaderError> {
    let needed = size_bytes.div_ceil(span_bytes);
    if needed > u64::from(there) {
        return Err(damaged(format!("its level-1 table has {there} entries and needs {needed}")));
    }
    if needed * 8 > L1_BYTES_MAX {
        return Err(damaged(format!("its level-1 table would have {needed} entries")));
    }
    usize::try_from(needed).map_err(|_| damaged("its level-1 table is too long".to_owned()))
}

fn backing_name(bytes: &[u8], offset_bytes: u64, length: u32) -> Result<Vec<u8>, HeaderError> {
    let length = length as usize;
    let start = usize::try_from(offset_bytes).ok();
    let name = start.and_then(|start| bytes.get(start..start.checked_add(length)?));
    match name {
        Some(name) if (1..=BACKING_NAME_BYTES_MAX).contains(&length) => Ok(name.to_owned()),
        _ => Err(damaged(format!(
            "the name of its backing file would have {length} bytes at {offset_bytes}"
        ))),
    }
}

/// The extension of this kind. Extensions that are invalid end the search: they only ever add to
/// what the header says.
fn extension(bytes: &[u8], header_bytes: usize, wanted: u32) -> Option<Vec<u8>> {
    let mut at = header_bytes;
    loop {
        let (kind, length) = (u32_at(bytes, at)?, u32_at(bytes, at.checked_add(4)?)? as usize);
        let start = at.checked_add(8)?;
        if kind == EXTENSION_END {
            return None;
        }
        if kind == wanted {
            return Some(bytes.get(start..start.checked_add(length)?)?.to_owned());
        }
        at = start.checked_add(length)?.checked_next_multiple_of(8)?;
    }
}

fn damaged(what: String) -> HeaderError {
    HeaderError::Damaged(what)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(field.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_be_bytes(field.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};
    use proptest::sample::Index;

    use super::{Backing, ClusterCompression, Header, HeaderError, MAGIC};

    /// A header of version 3 of a disk of 1 GiB over `base.raw`, as qemu-img writes it.
    fn sound() -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        bytes[..4].copy_from_slice(&MAGIC);
        put(&mut bytes, 4, &3_u32.to_be_bytes());
        put(&mut bytes, 8, &512_u64.to_be_bytes());
        put(&mut bytes, 16, &8_u32.to_be_bytes());
        put(&mut bytes, 20, &16_u32.to_be_bytes());
        put(&mut bytes, 24, &(1_u64 << 30).to_be_bytes());
        put(&mut bytes, 36, &2_u32.to_be_bytes());
        put(&mut bytes, 40, &(3_u64 << 16).to_be_bytes());
        put(&mut bytes, 100, &104_u32.to_be_bytes());
        // A table of feature names, as QEMU writes it, then the format of the backing file.
        put(&mut bytes, 104, &0x6803_F857_u32.to_be_bytes());
        put(&mut bytes, 108, &5_u32.to_be_bytes());
        put(&mut bytes, 120, &super::EXTENSION_BACKING_FORMAT.to_be_bytes());
        put(&mut bytes, 124, &3_u32.to_be_bytes());
        put(&mut bytes, 128, b"raw");
        put(&mut bytes, 512, b"base.raw");
        bytes
    }

    fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
        bytes[at..at + field.len()].copy_from_slice(field);
    }

    fn with(at: usize, field: &[u8]) -> Result<Header, HeaderError> {
        let mut bytes = sound();
        put(&mut bytes, at, field);
        Header::decode(&bytes)
    }

    #[test]
    fn a_sound_header_is_read() {
        let header = Header::decode(&sound()).unwrap();
        let backing = Backing { name: b"base.raw".to_vec(), format: Some(b"raw".to_vec()) };
        assert_eq!(header.backing, Some(backing));
        assert_eq!((header.size_bytes, header.l1_entries), (1 << 30, 2));
        assert_eq!((header.cluster_bytes(), header.l2_span_bytes()), (64 << 10, 512 << 20));
        assert!(header.has_zero_flag);
        let old = with(4, &2_u32.to_be_bytes()).unwrap();
        assert!(!old.has_zero_flag);
    }

    #[test]
    fn what_is_not_read_here_is_named() {
        for (at, field, words) in [
            (4, 1_u32.to_be_bytes().to_vec(), "version"),
            (4, 4_u32.to_be_bytes().to_vec(), "version"),
            (32, 2_u32.to_be_bytes().to_vec(), "encryption"),
            (72, (1_u64 << 1).to_be_bytes().to_vec(), "corrupt"),
            (72, (1_u64 << 40).to_be_bytes().to_vec(), "not known"),
        ] {
            let Err(HeaderError::Unsupported(what)) = with(at, &field) else { panic!("{words}") };
            assert!(what.contains(words), "{what}");
        }
    }

    #[test]
    fn compression_subclusters_and_a_data_file_are_read() {
        let mut bytes = sound();
        put(&mut bytes, 72, &(1_u64 << 4).to_be_bytes());
        put(&mut bytes, 36, &4_u32.to_be_bytes());
        let header = Header::decode(&bytes).unwrap();
        assert!(header.has_subclusters && !header.has_zero_flag);
        assert_eq!((header.l2_entries(), header.subcluster_bytes()), (4096, 2048));
        let mut bytes = sound();
        put(&mut bytes, 72, &(1_u64 << 3).to_be_bytes());
        assert!(Header::decode(&bytes).is_err(), "it ends before it names its compression");
        put(&mut bytes, 100, &112_u32.to_be_bytes());
        put(&mut bytes, 104, &[1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Header::decode(&bytes).unwrap().compression, ClusterCompression::Zstd);
        put(&mut bytes, 104, &[2]);
        assert!(matches!(Header::decode(&bytes), Err(HeaderError::Unsupported(_))));
        let mut bytes = sound();
        put(&mut bytes, 72, &(1_u64 << 2).to_be_bytes());
        assert!(matches!(Header::decode(&bytes), Err(HeaderError::Damaged(_))), "no name");
        put(&mut bytes, 120, &super::EXTENSION_DATA_FILE.to_be_bytes());
        assert_eq!(Header::decode(&bytes).unwrap().data_file, Some(b"raw".to_vec()));
    }

    #[test]
    fn what_cannot_be_is_damage() {
        for (at, field) in [
            (20, 8_u32.to_be_bytes().to_vec()),
            (20, 22_u32.to_be_bytes().to_vec()),
            (20, u32::MAX.to_be_bytes().to_vec()),
            (24, u64::MAX.to_be_bytes().to_vec()),
            (36, 1_u32.to_be_bytes().to_vec()),
            (40, 5_u64.to_be_bytes().to_vec()),
            (8, u64::MAX.to_be_bytes().to_vec()),
            (8, 1020_u64.to_be_bytes().to_vec()),
            (16, 0_u32.to_be_bytes().to_vec()),
            (16, u32::MAX.to_be_bytes().to_vec()),
            (100, 60_u32.to_be_bytes().to_vec()),
        ] {
            let decoded = with(at, &field);
            assert!(matches!(decoded, Err(HeaderError::Damaged(_))), "{at}: {decoded:?}");
        }
        let tables = [(24, (1_u64 << 62).to_be_bytes().to_vec()), (36, vec![0xFF; 4])];
        let mut bytes = sound();
        tables.iter().for_each(|(at, field)| put(&mut bytes, *at, field));
        assert!(matches!(Header::decode(&bytes), Err(HeaderError::Damaged(_))));
    }

    #[test]
    fn extensions_without_sense_end_the_search() {
        for field in [[0xFF; 8], [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF]] {
            assert_eq!(with(104, &field).unwrap().backing.unwrap().format, None);
        }
        assert_eq!(with(124, &u32::MAX.to_be_bytes()).unwrap().backing.unwrap().format, None);
        assert_eq!(with(100, &u32::MAX.to_be_bytes()).unwrap().backing.unwrap().format, None);
    }

    proptest! {
        #[test]
        fn a_header_that_was_cut_or_changed_never_panics(
            changes in vec((any::<Index>(), any::<u8>()), 0..20),
            length in any::<Index>(),
        ) {
            let mut bytes = sound();
            for (at, byte) in changes {
                // Most changes where the fields are.
                let at = at.index(160);
                bytes[at] = byte;
            }
            bytes.truncate(length.index(1024));
            if let Ok(header) = Header::decode(&bytes) {
                prop_assert!(header.l1_entries <= 4 << 20);
                let described_bytes = header.l1_entries as u64 * header.l2_span_bytes();
                prop_assert!(described_bytes >= header.size_bytes);
            }
        }
    }
}
