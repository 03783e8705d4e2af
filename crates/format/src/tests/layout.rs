//! Where every field of every structure is, as the code has it.
//!
//! A structure is listed from its first byte to its last; a field reaches up to the next one. So no
//! byte is without a name, and the lengths in `docs/format.md` are checked along with the offsets.

use crate::{
    BLOCK_BYTES, CONTAINER_BYTES, FORMAT_VERSION, FORMAT_VERSION_COMMON, bucket, catalog,
    container_page, directory, domain, frame, map_page, mark, objects, page, pba_page,
    pointer_page, record, root, stream, superblock, units,
};

/// One structure.
pub(super) struct Layout {
    /// Its heading in `docs/format.md`.
    pub(super) title: &'static str,
    pub(super) length_bytes: usize,
    /// Offset and name of each field, in their order.
    pub(super) fields: Vec<(usize, &'static str)>,
}

impl Layout {
    /// Offset, length and name of each field.
    pub(super) fn rows(&self) -> Vec<(usize, usize, String)> {
        let starts = self.fields.iter().map(|&(offset, _)| offset);
        let ends = starts.skip(1).chain([self.length_bytes]);
        let fields = self.fields.iter().zip(ends);
        fields.map(|(&(offset, name), end)| (offset, end - offset, name.to_owned())).collect()
    }
}

/// All structures.
pub(super) fn layouts() -> Vec<Layout> {
    vec![
        geometry(),
        root(),
        mark(),
        label(),
        page(),
        pointer_page(),
        map_page(),
        pba_page(),
        bucket(),
        bucket_entry(),
        container_page(),
        catalog(),
        record(),
        frame(),
        directory_entry(),
        footer(),
        undo_start(),
        undo_entry(),
        stream_header(),
        stream_version(),
        stream_section(),
        bucket_header(),
        index_length(),
        bucket_group(),
        bucket_change(),
        object_record(),
        list_entry(),
        segment_block(),
        extent(),
        bucket_figures(),
    ]
}

/// Numbers that are no offsets.
pub(super) fn constants() -> Vec<(&'static str, u64)> {
    vec![
        ("FORMAT_VERSION", u64::from(FORMAT_VERSION)),
        ("FORMAT_VERSION_COMMON", u64::from(FORMAT_VERSION_COMMON)),
        ("BLOCK_BYTES", BLOCK_BYTES as u64),
        ("CONTAINER_BYTES", u64::from(CONTAINER_BYTES)),
        ("SUPERBLOCK_BYTES", superblock::SUPERBLOCK_BYTES),
        ("CHUNK_BYTES_MAX", u64::from(superblock::CHUNK_BYTES_MAX)),
        ("DATA_ZONES_MAX", superblock::DATA_ZONES_MAX as u64),
        ("JOURNAL_BYTES_MIN", superblock::JOURNAL_BYTES_MIN),
        ("RECORD_BYTES_MAX", record::RECORD_BYTES_MAX as u64),
        ("SECTOR_BYTES", u64::from(frame::SECTOR_BYTES)),
        ("TREES", root::TREES as u64),
        ("DEPTH_MAX", u64::from(units::TreeRoot::DEPTH_MAX)),
        ("pointer_page::FANOUT", pointer_page::FANOUT as u64),
        ("map_page::SLOTS", map_page::SLOTS as u64),
        ("pba_page::SLOTS", pba_page::SLOTS as u64),
        ("bucket::CAPACITY", bucket::CAPACITY as u64),
        ("container_page::SLOTS", container_page::SLOTS as u64),
        ("catalog::SLOTS", catalog::SLOTS as u64),
        ("NAME_BYTES_MAX", catalog::NAME_BYTES_MAX as u64),
        ("DOMAIN_NAME_BYTES_MAX", domain::DOMAIN_NAME_BYTES_MAX as u64),
        ("DomainId::COUNT_MAX", u64::from(domain::DomainId::COUNT_MAX)),
        ("stream::STREAM_VERSION", u64::from(stream::STREAM_VERSION)),
        ("stream::DATA_BYTES_MAX", stream::DATA_BYTES_MAX),
    ]
}

fn geometry() -> Layout {
    use crate::features::{
        COMPATIBLE_AT, INCOMPATIBLE_AT, MAP_COPIES_AT, PAIR_AT, PAIR_EPOCH_AT, PAIR_ROLE_AT,
        READ_ONLY_COMPATIBLE_AT, RESERVED_AT, ZONES_GONE_AT,
    };
    use crate::superblock::{
        BUCKET_SEED_AT, CHUNK_BYTES_AT, CONTAINER_BYTES_AT, CRC_AT, DATA_AT, DATA_COUNT_AT,
        DETECTION_FILTER_AT, DETECTION_FLAGS_AT, DETECTION_KIND_AT, FLAGS_AT, JOURNAL_BYTES_AT,
        MAGIC_AT, REST_AT, SECRET_AT, TABLES_BYTES_AT, UUID_AT, VERSION_AT,
    };
    let fields = vec![
        (MAGIC_AT, "magic"),
        (CRC_AT, "checksum"),
        (VERSION_AT, "version"),
        (UUID_AT, "UUID"),
        (BUCKET_SEED_AT, "bucket seed"),
        (CHUNK_BYTES_AT, "chunk length"),
        (CONTAINER_BYTES_AT, "container length"),
        (JOURNAL_BYTES_AT, "journal length"),
        (TABLES_BYTES_AT, "tables length"),
        (DATA_COUNT_AT, "count of data zones"),
        (DETECTION_KIND_AT, "kind of fingerprint"),
        (DETECTION_FLAGS_AT, "detection flags"),
        (DETECTION_FILTER_AT, "blocks of a filter"),
        (FLAGS_AT, "flags"),
        (DATA_AT, "containers per data zone"),
        (SECRET_AT, "secret of domains"),
        (COMPATIBLE_AT, "compatible features"),
        (READ_ONLY_COMPATIBLE_AT, "read-only compatible features"),
        (INCOMPATIBLE_AT, "incompatible features"),
        (PAIR_AT, "pair"),
        (PAIR_EPOCH_AT, "epoch"),
        (PAIR_ROLE_AT, "role"),
        (MAP_COPIES_AT, "copies of maps"),
        (ZONES_GONE_AT, "zones gone"),
        (RESERVED_AT, "reserved"),
        (REST_AT, "zero"),
    ];
    Layout { title: "Geometry", length_bytes: BLOCK_BYTES, fields }
}

fn root() -> Layout {
    let mut fields = root_counters();
    fields.extend(root_tables());
    Layout { title: "Root", length_bytes: BLOCK_BYTES, fields }
}

fn root_counters() -> Vec<(usize, &'static str)> {
    use crate::root::{
        CODEC_AT, CODEC_LEVEL_AT, FLAGS_AT, GENERATION_AT, JOURNAL_CRC_AT, JOURNAL_OFFSET_AT,
        JOURNAL_SEQUENCE_AT, LINEAR_LEVEL_AT, NEXT_CONTAINER_SEQUENCE_AT, NEXT_INCARNATION_AT,
        NEXT_VOLUME_AT,
    };
    vec![
        (superblock::MAGIC_AT, "magic"),
        (superblock::CRC_AT, "checksum"),
        (superblock::VERSION_AT, "version"),
        (superblock::UUID_AT, "UUID"),
        (GENERATION_AT, "generation"),
        (FLAGS_AT, "flags"),
        (LINEAR_LEVEL_AT, "zero, or of format 1"),
        (CODEC_AT, "codec"),
        (CODEC_LEVEL_AT, "codec level"),
        (NEXT_VOLUME_AT, "next volume"),
        (JOURNAL_SEQUENCE_AT, "journal sequence"),
        (JOURNAL_OFFSET_AT, "journal offset"),
        (JOURNAL_CRC_AT, "journal checksum"),
        (NEXT_CONTAINER_SEQUENCE_AT, "next container sequence"),
        (NEXT_INCARNATION_AT, "next incarnation"),
    ]
}

fn root_tables() -> Vec<(usize, &'static str)> {
    use crate::root::{
        CATALOG_SLOTS_AT, COLLECTION_FILL_AT, COLLECTION_ID_AT, COLLECTION_SEQUENCE_AT,
        COPIED_CHUNKS_AT, COPIES_TREE_AT, COPY_FRAME_BYTES_AT, DEAD_CHUNKS_AT, DEAD_FRAME_BYTES_AT,
        DOMAINS_AT, FREE_HEAD_AT, FREE_TAIL_AT, HASH_AFTER_AT, HASH_BEFORE_AT, HASH_ENTRIES_AT,
        HASH_MERGED_AT, HASH_TREES_AT, LABEL_AT, LABEL_REST_AT, LINEAR_ENTRIES_AT, LINEAR_SPLIT_AT,
        LIVE_FRAME_BYTES_AT, MAPPED_CHUNKS_AT, NEXT_PBN_AT, OPEN_FILL_AT, OPEN_ID_AT,
        OPEN_SEQUENCE_AT, RESERVED_AT, REST_AT, TREES_AT, UNIQUE_CHUNKS_AT, YOUNG_SEALED_AT,
        YOUNG_TAIL_AT, ZERO_AT,
    };
    vec![
        (TREES_AT, "trees"),
        (LINEAR_SPLIT_AT, "zero, or of format 1"),
        (LINEAR_ENTRIES_AT, "zero, or of format 1"),
        (NEXT_PBN_AT, "next PBN"),
        (FREE_HEAD_AT, "free head"),
        (FREE_TAIL_AT, "free tail"),
        (CATALOG_SLOTS_AT, "catalog slots"),
        (OPEN_ID_AT, "open container"),
        (OPEN_FILL_AT, "open container's fill"),
        (OPEN_SEQUENCE_AT, "open container's sequence"),
        (ZERO_AT, "zero"),
        (MAPPED_CHUNKS_AT, "mapped chunks"),
        (UNIQUE_CHUNKS_AT, "unique chunks"),
        (LIVE_FRAME_BYTES_AT, "live frame bytes"),
        (DEAD_CHUNKS_AT, "dead chunks"),
        (DEAD_FRAME_BYTES_AT, "dead frame bytes"),
        (DOMAINS_AT, "domains"),
        (RESERVED_AT, "zero"),
        (LABEL_AT, "label"),
        (LABEL_REST_AT, "zero"),
        (COLLECTION_ID_AT, "collection's open container"),
        (COLLECTION_FILL_AT, "its fill"),
        (COLLECTION_SEQUENCE_AT, "its sequence"),
        (COPIES_TREE_AT, "tree of second copies"),
        (COPIED_CHUNKS_AT, "copied chunks"),
        (COPY_FRAME_BYTES_AT, "copy frame bytes"),
        (HASH_TREES_AT, "trees of the Hash-PBN table"),
        (HASH_BEFORE_AT, "buckets before"),
        (HASH_AFTER_AT, "buckets"),
        (HASH_MERGED_AT, "merged buckets"),
        (HASH_ENTRIES_AT, "merged entries"),
        (YOUNG_TAIL_AT, "young tail"),
        (YOUNG_SEALED_AT, "sealed young pages"),
        (REST_AT, "zero"),
    ]
}

fn label() -> Layout {
    use crate::label::{GEOMETRY_AT, REST_AT, ROOT_AT, START_REST_AT};
    let fields = vec![
        (superblock::MAGIC_AT, "magic"),
        (superblock::CRC_AT, "checksum"),
        (superblock::VERSION_AT, "version"),
        (superblock::UUID_AT, "UUID"),
        (START_REST_AT, "zero"),
        (GEOMETRY_AT, "geometry"),
        (ROOT_AT, "root"),
        (REST_AT, "zero"),
    ];
    Layout { title: "Label", length_bytes: BLOCK_BYTES, fields }
}

fn undo_start() -> Layout {
    use crate::undo::{
        JOURNAL_CRC_AT, SHORT_AT, SHORT_COUNT_AT, START_REST_AT, START_ZERO_AT, SUPERBLOCK_CRC_AT,
    };
    let fields = vec![
        (superblock::MAGIC_AT, "magic"),
        (superblock::CRC_AT, "checksum"),
        (superblock::VERSION_AT, "version"),
        (SUPERBLOCK_CRC_AT, "superblock"),
        (JOURNAL_CRC_AT, "journal"),
        (SHORT_COUNT_AT, "short files"),
        (START_ZERO_AT, "zero"),
        (SHORT_AT, "lengths"),
        (START_REST_AT, "zero"),
    ];
    Layout { title: "Start of an undo file", length_bytes: BLOCK_BYTES, fields }
}

fn undo_entry() -> Layout {
    use crate::undo::{
        ENTRY_REST_AT, ENTRY_ZERO_AT, LENGTH_AT, NEW_CRCS_AT, NUMBER_AT, OFFSET_AT, OLD_CRC_AT,
        ZONE_AT,
    };
    let fields = vec![
        (superblock::MAGIC_AT, "magic"),
        (superblock::CRC_AT, "checksum"),
        (superblock::VERSION_AT, "version"),
        (ZONE_AT, "zone"),
        (LENGTH_AT, "length"),
        (OFFSET_AT, "offset"),
        (OLD_CRC_AT, "old checksum"),
        (ENTRY_ZERO_AT, "zero"),
        (NUMBER_AT, "number"),
        (NEW_CRCS_AT, "new checksums"),
        (ENTRY_REST_AT, "zero"),
    ];
    Layout { title: "Entry of an undo file", length_bytes: BLOCK_BYTES, fields }
}

fn mark() -> Layout {
    let fields = vec![
        (superblock::MAGIC_AT, "magic"),
        (superblock::CRC_AT, "checksum"),
        (superblock::VERSION_AT, "version"),
        (superblock::UUID_AT, "UUID"),
        (mark::ZONE_AT, "zone"),
        (mark::REST_AT, "zero"),
    ];
    Layout { title: "Mark", length_bytes: BLOCK_BYTES, fields }
}

fn page() -> Layout {
    let fields = vec![
        (page::CRC_AT, "checksum"),
        (page::KIND_AT, "kind"),
        (page::LEVEL_AT, "level"),
        (page::VERSION_AT, "version"),
        (page::INDEX_AT, "index"),
        (page::TREE_AT, "tree"),
        (page::ZERO_AT, "zero"),
        (page::GENERATION_AT, "generation"),
        (page::PAGE_HEADER_BYTES, "payload"),
    ];
    Layout { title: "Page", length_bytes: BLOCK_BYTES, fields }
}

fn pointer_page() -> Layout {
    Layout {
        title: "Inner page",
        length_bytes: pointer_page::FANOUT * pointer_page::POINTER_BYTES,
        fields: vec![(0, "pointers")],
    }
}

fn map_page() -> Layout {
    let fields = vec![(0, "PBNs"), (map_page::SLOTS * map_page::PBN_BYTES, "zero")];
    Layout { title: "Leaf of PBNs", length_bytes: page::PAYLOAD_BYTES, fields }
}

fn pba_page() -> Layout {
    let fields = vec![
        (pba_page::CONTAINER_AT, "container"),
        (pba_page::OFFSET_AT, "offset"),
        (pba_page::LENGTH_AT, "length"),
        (pba_page::CHECK_AT, "frame check"),
        (pba_page::REFERENCES_AT, "references"),
    ];
    Layout { title: "Leaf of PBAs", length_bytes: pba_page::ENTRY_BYTES, fields }
}

fn bucket() -> Layout {
    let fields = vec![
        (bucket::COUNT_AT, "count"),
        (bucket::FLAGS_AT, "flags"),
        (bucket::ZERO_AT, "zero"),
        (bucket::TAGS_AT, "tags"),
        (bucket::ENTRIES_AT, "entries"),
    ];
    Layout { title: "Bucket", length_bytes: page::PAYLOAD_BYTES, fields }
}

fn bucket_entry() -> Layout {
    let fields = vec![(0, "fingerprint"), (bucket::ENTRY_PBN_AT, "PBN")];
    Layout { title: "Bucket entry", length_bytes: bucket::ENTRY_BYTES, fields }
}

fn container_page() -> Layout {
    let fields = vec![
        (container_page::LIVE_AT, "live bytes"),
        (container_page::USED_AT, "used bytes"),
        (container_page::STATE_AT, "state"),
        (container_page::ZERO_AT, "zero"),
        (container_page::SEQUENCE_AT, "sequence"),
    ];
    Layout { title: "Leaf of containers", length_bytes: container_page::ENTRY_BYTES, fields }
}

fn catalog() -> Layout {
    let fields = vec![
        (catalog::STATE_AT, "state"),
        (catalog::FLAGS_AT, "flags"),
        (catalog::NAME_BYTES_AT, "name length"),
        (catalog::DEPTH_AT, "map depth"),
        (catalog::ID_AT, "volume"),
        (catalog::SIZE_AT, "size"),
        (catalog::MAPPED_AT, "mapped chunks"),
        (catalog::POINTER_AT, "map pointer"),
        (catalog::CREATED_AT, "created generation"),
        (catalog::NAME_AT, "name"),
        (catalog::PADDING_AT, "zero"),
        (catalog::PARENT_AT, "parent"),
        (catalog::SNAPSHOT_OF_AT, "snapshot of"),
        (catalog::TAKEN_AT, "taken"),
        (catalog::GIVEN_BACK_AT, "given back"),
        (catalog::CUT_START_AT, "cut from"),
        (catalog::CUT_END_AT, "cut to"),
        (catalog::ZERO_AT, "zero"),
        (catalog::QUOTA_AT, "quota"),
        (catalog::DOMAIN_AT, "domain"),
        (catalog::DOMAIN_NAME_BYTES_AT, "domain's name length"),
        (catalog::DOMAIN_NAME_AT, "domain's name"),
        (catalog::ORIGIN_UUID_AT, "origin's store"),
        (catalog::ORIGIN_NUMBER_AT, "origin's number"),
        (catalog::KIND_AT, "kind"),
        (catalog::INCOMPATIBLE_FLAGS_AT, "incompatible flags"),
        (catalog::COMPATIBLE_FLAGS_AT, "compatible flags"),
        (catalog::CODEC_AT, "codec"),
        (catalog::LEVEL_AT, "level"),
        (catalog::RESERVATION_AT, "reservation"),
        (catalog::REST_AT, "zero"),
    ];
    Layout { title: "Leaf of volumes", length_bytes: catalog::ENTRY_BYTES, fields }
}

fn record() -> Layout {
    let fields = vec![
        (record::CRC_AT, "checksum"),
        (record::MAGIC_AT, "magic"),
        (record::LENGTH_AT, "length"),
        (record::BODY_BYTES_AT, "body length"),
        (record::INCARNATION_AT, "incarnation"),
        (record::SEQUENCE_AT, "sequence"),
        (record::DURABLE_SEQUENCE_AT, "durable sequence"),
        (record::UUID_PREFIX_AT, "UUID prefix"),
        (record::PREVIOUS_CRC_AT, "previous checksum"),
        (record::KIND_AT, "kind"),
        (record::ZERO_AT, "zero"),
        (record::PLACED_SEQUENCE_AT, "placed sequence"),
    ];
    Layout { title: "Record header", length_bytes: record::RECORD_HEADER_BYTES, fields }
}

fn frame() -> Layout {
    let fields = vec![
        (frame::CRC_AT, "checksum"),
        (frame::STORED_BYTES_AT, "payload length"),
        (frame::CODEC_AT, "codec, domain"),
        (frame::PBN_AT, "PBN"),
        (frame::PLAIN_SECTORS_AT, "chunk length"),
        (frame::DOMAIN_AT, "domain"),
    ];
    Layout { title: "Frame header", length_bytes: frame::FRAME_HEADER_BYTES, fields }
}

fn directory_entry() -> Layout {
    let fields = vec![
        (directory::ENTRY_FINGERPRINT_AT, "fingerprint"),
        (directory::ENTRY_PBN_AT, "PBN"),
        (directory::ENTRY_OFFSET_AT, "offset"),
        (directory::ENTRY_LENGTH_AT, "length"),
    ];
    Layout { title: "Directory entry", length_bytes: directory::DIRECTORY_ENTRY_BYTES, fields }
}

fn footer() -> Layout {
    let fields = vec![
        (directory::MAGIC_AT, "magic"),
        (directory::VERSION_AT, "version"),
        (directory::CONTAINER_AT, "container"),
        (directory::SEQUENCE_AT, "sequence"),
        (directory::COUNT_AT, "count"),
        (directory::DIRECTORY_OFFSET_AT, "directory offset"),
        (directory::DIRECTORY_CRC_AT, "directory checksum"),
        (directory::UUID_PREFIX_AT, "UUID prefix"),
        (directory::ZERO_AT, "zero"),
        (directory::CRC_AT, "checksum"),
    ];
    Layout { title: "Footer", length_bytes: directory::FOOTER_BYTES, fields }
}

fn stream_header() -> Layout {
    use crate::stream::header::{
        BASE_AT, BASE_UUID_AT, CHUNK_BYTES_AT, CRC_AT, DATA_BYTES_AT, FLAGS_AT, MAGIC_AT,
        PADDING_AT, REST_AT, TARGET_AT, TARGET_UUID_AT, UUID_AT, VERSION_AT, ZERO_AT,
    };
    let fields = vec![
        (MAGIC_AT, "magic"),
        (CRC_AT, "checksum"),
        (VERSION_AT, "version"),
        (UUID_AT, "UUID"),
        (CHUNK_BYTES_AT, "chunk length"),
        (FLAGS_AT, "flags"),
        (ZERO_AT, "zero"),
        (DATA_BYTES_AT, "data"),
        (PADDING_AT, "zero"),
        (TARGET_AT, "target"),
        (BASE_AT, "base"),
        (TARGET_UUID_AT, "target's store"),
        (BASE_UUID_AT, "base's store"),
        (REST_AT, "zero"),
    ];
    Layout { title: "Stream header", length_bytes: stream::STREAM_HEADER_BYTES, fields }
}

fn stream_version() -> Layout {
    use crate::stream::header::{
        NAME_AT, NAME_BYTES_AT, NUMBER_AT, SAMPLE_AT, SIZE_AT, TAKEN_AT, VERSION_BYTES,
        VERSION_REST_AT,
    };
    let fields = vec![
        (NAME_AT, "name"),
        (NAME_BYTES_AT, "name length"),
        (NUMBER_AT, "number"),
        (SAMPLE_AT, "sample"),
        (TAKEN_AT, "taken"),
        (SIZE_AT, "size"),
        (VERSION_REST_AT, "zero"),
    ];
    Layout { title: "Version in a stream", length_bytes: VERSION_BYTES, fields }
}

fn stream_section() -> Layout {
    use crate::stream::section::{CRC_AT, KIND_AT, LENGTH_AT, NUMBER_AT, OFFSET_AT, ZERO_AT};
    let fields = vec![
        (CRC_AT, "checksum"),
        (KIND_AT, "kind"),
        (ZERO_AT, "zero"),
        (NUMBER_AT, "number"),
        (OFFSET_AT, "offset"),
        (LENGTH_AT, "length"),
    ];
    Layout { title: "Section header", length_bytes: stream::SECTION_HEADER_BYTES, fields }
}

fn bucket_header() -> Layout {
    use objects::header;
    let fields = vec![
        (header::MAGIC_AT, "magic"),
        (header::CRC_AT, "checksum"),
        (header::VERSION_AT, "version"),
        (header::UUID_AT, "UUID"),
        (header::RING_BYTES_AT, "ring"),
        (header::REST_AT, "zero"),
    ];
    Layout { title: "Header of a bucket", length_bytes: BLOCK_BYTES, fields }
}

fn index_length() -> Layout {
    use objects::header;
    let fields = vec![
        (header::MAGIC_AT, "magic"),
        (header::CRC_AT, "checksum"),
        (header::VERSION_AT, "version"),
        (header::UUID_AT, "UUID"),
        (header::LENGTH_BYTES_AT, "length"),
        (header::REST_AT, "zero"),
    ];
    Layout { title: "Length of an index", length_bytes: BLOCK_BYTES, fields }
}

fn bucket_group() -> Layout {
    use objects::log;
    let fields = vec![
        (log::MAGIC_AT, "magic"),
        (log::CRC_AT, "checksum"),
        (log::LENGTH_AT, "length"),
        (log::UUID_AT, "UUID"),
        (log::SEQUENCE_AT, "sequence"),
        (log::POSITION_AT, "position"),
        (log::REST_AT, "zero"),
    ];
    Layout { title: "Header of a group", length_bytes: log::GROUP_HEADER_BYTES, fields }
}

fn bucket_change() -> Layout {
    use objects::log;
    let fields = vec![
        (log::KIND_AT, "kind"),
        (log::TABLE_AT, "table"),
        (log::KEY_BYTES_AT, "key length"),
        (log::VALUE_BYTES_AT, "value length"),
    ];
    Layout { title: "Change of a group", length_bytes: log::CHANGE_HEADER_BYTES, fields }
}

fn object_record() -> Layout {
    use objects::record as at;
    Layout {
        title: "Record of an object",
        length_bytes: at::OBJECT_HEADER_BYTES,
        fields: vec![
            (at::VERSION_AT, "version"),
            (at::VALUE_KIND_AT, "kind of value"),
            (at::FLAGS_AT, "flags"),
            (at::CHECKSUMS_AT, "number of checksums"),
            (at::CRC_AT, "checksum"),
            (at::PUT_AT, "put"),
            (at::SIZE_AT, "size"),
            (at::CREATED_AT, "created"),
            (at::EXPIRES_AT, "expires"),
            (at::MD5_AT, "MD5"),
        ],
    }
}

fn list_entry() -> Layout {
    use objects::segments as at;
    Layout {
        title: "Entry of a list of segments",
        length_bytes: at::ENTRY_BYTES,
        fields: vec![
            (at::LEVEL_AT, "level"),
            (at::ENTRY_ZERO_AT, "zero"),
            (at::SKIP_AT, "skip"),
            (at::ENTRY_CRC_AT, "checksum"),
            (at::LENGTH_AT, "length"),
            (at::CHUNK_AT, "chunk"),
        ],
    }
}

fn segment_block() -> Layout {
    use objects::segments as at;
    Layout {
        title: "Block of a list of segments",
        length_bytes: at::SEGMENT_BLOCK_BYTES,
        fields: vec![
            (at::CRC_AT, "checksum"),
            (at::MAGIC_AT, "magic"),
            (at::BLOCK_LEVEL_AT, "level"),
            (at::BLOCK_ZERO_AT, "zero"),
            (at::COUNT_AT, "number of entries"),
            (at::BLOCK_PADDING_AT, "zero"),
            (at::BLOCK_LENGTH_AT, "length"),
            (at::BLOCK_CHUNK_AT, "chunk"),
            (at::ENTRIES_AT, "entries"),
        ],
    }
}

fn extent() -> Layout {
    use objects::extents as at;
    Layout {
        title: "Tree to be freed",
        length_bytes: at::TREE_VALUE_BYTES,
        fields: vec![(0, "length"), (at::TREE_AT, "block"), (at::POSITION_AT, "position")],
    }
}

fn bucket_figures() -> Layout {
    use objects::settings as at;
    Layout {
        title: "Figures of a bucket",
        length_bytes: at::FIGURES_BYTES,
        fields: vec![
            (at::OBJECTS_AT, "objects"),
            (at::OBJECT_BYTES_AT, "bytes of objects"),
            (at::PARTS_AT, "parts"),
            (at::PART_BYTES_AT, "bytes of parts"),
        ],
    }
}
