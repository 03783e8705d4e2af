//! The root: the one block from which a checkpoint is reached.
//!
//! A checkpoint is durable when its root is: pages first, a sync, then the root, a sync. Roots
//! take turns in two slots ([`crate::superblock::root_block`]); the valid one with the higher
//! generation is the store, and the journal is replayed from its position.
//!
//! Everything that is not in a page stands here: the ten trees, the shape of the Hash-PBN table,
//! the counters from which numbers are handed out, and the totals. All fields lie in the first
//! 512-byte sector, and the checksum covers the whole block.

use crate::FORMAT_VERSION_COMMON;
use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::superblock::{CRC_AT, Geometry, MAGIC_AT, UUID_AT, VERSION_AT, check_start};
use crate::units::{
    BLOCK_BYTES, BlockPtr, Codec, Compression, ContainerId, Pbn, TreeRoot, UUID_BYTES,
};

/// Trees whose roots stand in the root block; a [`crate::units::TreeId`] below is its index.
pub const TREES: usize = 10;

const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-RT");

pub(crate) const GENERATION_AT: usize = 32;
pub(crate) const FLAGS_AT: usize = 40;
/// Level, split and count of the Hash-PBN table of format 1 stand here and at the next two, and are
/// not needed to read it.
#[cfg(test)]
pub(crate) const LINEAR_LEVEL_AT: usize = 41;
pub(crate) const CODEC_AT: usize = 42;
pub(crate) const CODEC_LEVEL_AT: usize = 43;
pub(crate) const NEXT_VOLUME_AT: usize = 44;
pub(crate) const JOURNAL_SEQUENCE_AT: usize = 48;
pub(crate) const JOURNAL_OFFSET_AT: usize = 56;
pub(crate) const JOURNAL_CRC_AT: usize = 64;
pub(crate) const NEXT_CONTAINER_SEQUENCE_AT: usize = 68;
pub(crate) const NEXT_INCARNATION_AT: usize = 72;
pub(crate) const TREES_AT: usize = 80;
pub(crate) const TREE_BYTES: usize = 16;
pub(crate) const TREE_DEPTH_AT: usize = 8;
pub(crate) const LINEAR_SPLIT_AT: usize = 176;
#[cfg(test)]
pub(crate) const LINEAR_ENTRIES_AT: usize = 184;
pub(crate) const NEXT_PBN_AT: usize = 192;
pub(crate) const FREE_HEAD_AT: usize = 200;
pub(crate) const FREE_TAIL_AT: usize = 208;
pub(crate) const CATALOG_SLOTS_AT: usize = 216;
pub(crate) const OPEN_ID_AT: usize = 224;
pub(crate) const OPEN_FILL_AT: usize = 228;
pub(crate) const OPEN_SEQUENCE_AT: usize = 232;
pub(crate) const ZERO_AT: usize = 236;
pub(crate) const MAPPED_CHUNKS_AT: usize = 240;
pub(crate) const UNIQUE_CHUNKS_AT: usize = 248;
pub(crate) const LIVE_FRAME_BYTES_AT: usize = 256;
pub(crate) const DEAD_CHUNKS_AT: usize = 264;
pub(crate) const DEAD_FRAME_BYTES_AT: usize = 272;
pub(crate) const DOMAINS_AT: usize = 280;
pub(crate) const RESERVED_AT: usize = 282;
pub(crate) const LABEL_AT: usize = 288;
pub(crate) const LABEL_REST_AT: usize = 296;
pub(crate) const COLLECTION_ID_AT: usize = 312;
pub(crate) const COLLECTION_FILL_AT: usize = 316;
pub(crate) const COLLECTION_SEQUENCE_AT: usize = 320;
pub(crate) const COPIES_TREE_AT: usize = 324;
pub(crate) const COPIED_CHUNKS_AT: usize = 340;
pub(crate) const COPY_FRAME_BYTES_AT: usize = 348;
pub(crate) const HASH_TREES_AT: usize = 356;
pub(crate) const HASH_BEFORE_AT: usize = 404;
pub(crate) const HASH_AFTER_AT: usize = 412;
pub(crate) const HASH_MERGED_AT: usize = 420;
pub(crate) const HASH_ENTRIES_AT: usize = 428;
pub(crate) const YOUNG_TAIL_AT: usize = 436;
pub(crate) const YOUNG_SEALED_AT: usize = 444;
pub(crate) const REST_AT: usize = 452;

pub(crate) const FLAG_CLEAN: u8 = 1;
pub(crate) const FLAG_OPEN_CONTAINER: u8 = 2;
pub(crate) const FLAG_COLLECTION_CONTAINER: u8 = 4;
pub(crate) const FLAG_TURN: u8 = 8;

const FLAGS: u8 = FLAG_CLEAN | FLAG_OPEN_CONTAINER | FLAG_COLLECTION_CONTAINER | FLAG_TURN;
/// Where fill and sequence stand after an open container's number.
const FILL_IN_OPEN: usize = OPEN_FILL_AT - OPEN_ID_AT;
const SEQUENCE_IN_OPEN: usize = OPEN_SEQUENCE_AT - OPEN_ID_AT;

/// A Hash-PBN table of more than 2^47 buckets would not fit the numbers of PBNs; neither would more
/// young pages have been written.
const HASH_PAGES_MAX: u64 = 1 << 47;

const _: () = assert!(UUID_AT + UUID_BYTES == GENERATION_AT);
/// Trees that stand one after the other; those that came later have their own places.
const FIRST_TREES: usize = 6;

const _: () = assert!(TREES_AT + FIRST_TREES * TREE_BYTES == LINEAR_SPLIT_AT);
const _: () = assert!(HASH_TREES_AT + (TREES - FIRST_TREES - 1) * TREE_BYTES == HASH_BEFORE_AT);
const _: () = assert!(COPY_FRAME_BYTES_AT + 8 == HASH_TREES_AT && YOUNG_SEALED_AT + 8 == REST_AT);
const _: () = assert!(COPIES_TREE_AT + TREE_BYTES == COPIED_CHUNKS_AT);
const _: () = assert!(OPEN_SEQUENCE_AT + 4 == ZERO_AT && ZERO_AT + 4 == MAPPED_CHUNKS_AT);
const _: () = assert!(DEAD_FRAME_BYTES_AT + 8 == DOMAINS_AT && DOMAINS_AT + 2 == RESERVED_AT);
const _: () = assert!(RESERVED_AT < LABEL_AT && LABEL_AT + 8 == LABEL_REST_AT);
const _: () = assert!(LABEL_REST_AT < COLLECTION_ID_AT);

const _: () = assert!(COLLECTION_ID_AT + FILL_IN_OPEN == COLLECTION_FILL_AT);
const _: () = assert!(COLLECTION_ID_AT + SEQUENCE_IN_OPEN == COLLECTION_SEQUENCE_AT);
const _: () = assert!(REST_AT <= 512, "all fields lie in one sector");

/// A place in the journal, between two records.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct JournalPosition {
    /// Of the record that comes next.
    pub sequence: u64,
    /// Where it starts. Counted from the journal's first record ever, so it only grows; its place
    /// in the zone is this modulo the journal's length.
    pub offset_bytes: u64,
    /// Checksum of the record before; 0 when there is none.
    pub previous_crc: u32,
}

/// Shape of the Hash-PBN table: how far the merge has come round its buckets, and where its young
/// entries end. A new table is all zeros.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HashShape {
    /// Which of both turns the buckets are of that are being made; those before are of the other.
    pub turn: bool,
    /// Buckets of the turn before; the merge removes them one after the other.
    pub before: u64,
    /// Buckets that this turn has when it is whole.
    pub after: u64,
    /// How many of them are made.
    pub merged: u64,
    /// Entries in those that are made.
    pub entries: u64,
    /// The young page that is being filled.
    pub tail: u64,
    /// The first young page that is not sealed.
    pub sealed: u64,
}

/// Where the fields of the open container of each stream are, and the flag that says there is one.
const OPEN_CONTAINERS_AT: [(u8, usize); STREAMS] =
    [(FLAG_OPEN_CONTAINER, OPEN_ID_AT), (FLAG_COLLECTION_CONTAINER, COLLECTION_ID_AT)];

/// Whose frames an open container takes: what clients write new, and what collection moves because
/// it has lived long, never lie in one container.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Stream {
    /// New chunks.
    Clients,
    /// Chunks whose container is being collected.
    Collection,
}

/// Streams, and so open containers, in a store.
pub const STREAMS: usize = 2;

impl Stream {
    /// All of them, in the order in which a root names their containers.
    pub const ALL: [Self; STREAMS] = [Self::Clients, Self::Collection];
}

/// A container that frames are being appended to.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct OpenContainer {
    /// Its number.
    pub id: ContainerId,
    /// Where the next frame goes.
    pub fill_bytes: u32,
    /// Number of its opening.
    pub sequence: u32,
}

/// Sums over all tables, kept so that no one has to walk them.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Totals {
    /// LBAs of all volumes that name a chunk.
    pub mapped_chunks: u64,
    /// Chunks with references.
    pub unique_chunks: u64,
    /// Their frames.
    pub live_frame_bytes: u64,
    /// Chunks without references that are still stored.
    pub dead_chunks: u64,
    /// Their frames.
    pub dead_frame_bytes: u64,
    /// Chunks with a second copy.
    pub copied_chunks: u64,
    /// The frames of those copies.
    pub copy_frame_bytes: u64,
}

/// A checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    /// Number of the checkpoint.
    pub generation: u64,
    /// Whether the store was closed with it: there is nothing to replay.
    pub clean: bool,
    /// The first record that is not in the checkpoint.
    pub journal: JournalPosition,
    /// For the next opening of the store.
    pub next_incarnation: u64,
    /// What new frames are written with.
    pub compression: Compression,
    /// By number of the tree.
    pub trees: [TreeRoot; TREES],
    /// Shape of the Hash-PBN table.
    pub hash: HashShape,
    /// The first PBN that was never handed out.
    pub next_pbn: u64,
    /// Index in the queue of free PBNs from which the next is taken.
    pub free_head: u64,
    /// Index in the queue of free PBNs where the next is added.
    pub free_tail: u64,
    /// For the next volume.
    pub next_volume: u32,
    /// Keyed domains that there have ever been; the next has the number after.
    pub domains: u16,
    /// Slots of the catalog, vacant ones included.
    pub catalog_slots: u64,
    /// By stream. None right after creation, or when no container is free; for collection, as long
    /// as nothing was moved.
    pub open_containers: [Option<OpenContainer>; STREAMS],
    /// For the next container opened.
    pub next_container_sequence: u32,
    /// Sums over all tables.
    pub totals: Totals,
    /// Block of zone tables where it stands once more ([`crate::label`]); 0: nowhere.
    pub label: u64,
}

impl Root {
    /// The block to be written to [`crate::superblock::root_block`] of its generation.
    #[must_use]
    pub fn encode(&self, uuid: [u8; UUID_BYTES]) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        put_u64(&mut block, MAGIC_AT, MAGIC);
        put_u32(&mut block, VERSION_AT, FORMAT_VERSION_COMMON);
        put_bytes(&mut block, UUID_AT, &uuid);
        self.encode_counters(&mut block);
        self.encode_trees(&mut block);
        self.encode_totals(&mut block);
        let crc = crc32c(&block[VERSION_AT..]);
        put_u32(&mut block, CRC_AT, crc);
        block
    }

    fn encode_counters(&self, block: &mut [u8]) {
        put_u64(block, GENERATION_AT, self.generation);
        block[FLAGS_AT] = if self.clean { FLAG_CLEAN } else { 0 };
        block[CODEC_AT] = self.compression.codec as u8;
        block[CODEC_LEVEL_AT] = self.compression.level.cast_unsigned();
        put_u32(block, NEXT_VOLUME_AT, self.next_volume);
        put_u16(block, DOMAINS_AT, self.domains);
        put_u64(block, JOURNAL_SEQUENCE_AT, self.journal.sequence);
        put_u64(block, JOURNAL_OFFSET_AT, self.journal.offset_bytes);
        put_u32(block, JOURNAL_CRC_AT, self.journal.previous_crc);
        put_u32(block, NEXT_CONTAINER_SEQUENCE_AT, self.next_container_sequence);
        put_u64(block, NEXT_INCARNATION_AT, self.next_incarnation);
        put_u64(block, NEXT_PBN_AT, self.next_pbn);
        put_u64(block, FREE_HEAD_AT, self.free_head);
        put_u64(block, FREE_TAIL_AT, self.free_tail);
        put_u64(block, CATALOG_SLOTS_AT, self.catalog_slots);
        put_u64(block, LABEL_AT, self.label);
        for (open, (flag, at)) in self.open_containers.iter().zip(OPEN_CONTAINERS_AT) {
            if let Some(open) = open {
                block[FLAGS_AT] |= flag;
                put_u32(block, at, open.id.0);
                put_u32(block, at + FILL_IN_OPEN, open.fill_bytes);
                put_u32(block, at + SEQUENCE_IN_OPEN, open.sequence);
            }
        }
    }

    fn encode_trees(&self, block: &mut [u8]) {
        for (tree, root) in self.trees.iter().enumerate() {
            let at = tree_at(tree);
            put_u64(block, at, root.pointer.to_bits());
            block[at + TREE_DEPTH_AT] = root.depth;
        }
        block[FLAGS_AT] |= if self.hash.turn { FLAG_TURN } else { 0 };
        put_u64(block, HASH_BEFORE_AT, self.hash.before);
        put_u64(block, HASH_AFTER_AT, self.hash.after);
        put_u64(block, HASH_MERGED_AT, self.hash.merged);
        put_u64(block, HASH_ENTRIES_AT, self.hash.entries);
        put_u64(block, YOUNG_TAIL_AT, self.hash.tail);
        put_u64(block, YOUNG_SEALED_AT, self.hash.sealed);
    }

    fn encode_totals(&self, block: &mut [u8]) {
        put_u64(block, MAPPED_CHUNKS_AT, self.totals.mapped_chunks);
        put_u64(block, UNIQUE_CHUNKS_AT, self.totals.unique_chunks);
        put_u64(block, LIVE_FRAME_BYTES_AT, self.totals.live_frame_bytes);
        put_u64(block, DEAD_CHUNKS_AT, self.totals.dead_chunks);
        put_u64(block, DEAD_FRAME_BYTES_AT, self.totals.dead_frame_bytes);
        put_u64(block, COPIED_CHUNKS_AT, self.totals.copied_chunks);
        put_u64(block, COPY_FRAME_BYTES_AT, self.totals.copy_frame_bytes);
    }

    /// The root in a block of the store named `uuid`.
    ///
    /// # Errors
    /// [`FormatError`] when it holds none, a newer one, a damaged one, or another store's.
    pub fn decode(block: &[u8], uuid: [u8; UUID_BYTES]) -> Result<Self, FormatError> {
        let structure = Structure::Root;
        FormatError::at_least(structure, BLOCK_BYTES, block)?;
        let block = &block[..BLOCK_BYTES];
        check_start(structure, MAGIC, block)?;
        if array_at(block, UUID_AT) != uuid {
            return Err(FormatError::OtherStore { structure });
        }
        check_fields(block)?;
        Ok(Self {
            generation: u64_at(block, GENERATION_AT),
            clean: block[FLAGS_AT] & FLAG_CLEAN != 0,
            journal: decode_journal(block),
            next_incarnation: u64_at(block, NEXT_INCARNATION_AT),
            compression: decode_compression(block)?,
            trees: decode_trees(block)?,
            hash: decode_hash(block),
            next_pbn: u64_at(block, NEXT_PBN_AT),
            free_head: u64_at(block, FREE_HEAD_AT),
            free_tail: u64_at(block, FREE_TAIL_AT),
            next_volume: u32_at(block, NEXT_VOLUME_AT),
            domains: u16_at(block, DOMAINS_AT),
            catalog_slots: u64_at(block, CATALOG_SLOTS_AT),
            open_containers: OPEN_CONTAINERS_AT.map(|place| decode_open_container(block, place)),
            next_container_sequence: u32_at(block, NEXT_CONTAINER_SEQUENCE_AT),
            totals: decode_totals(block),
            label: u64_at(block, LABEL_AT),
        })
    }

    /// Where in the journal the root in a block goes on, whatever of it but the UUID is damaged. If
    /// that is a place between two records, it is the root's: the checksum of the record before is
    /// in it. None of a block that does not say that it is this store's.
    #[must_use]
    pub fn journal_in_damaged(block: &[u8], uuid: [u8; UUID_BYTES]) -> Option<JournalPosition> {
        let is_ours = block.len() >= BLOCK_BYTES && array_at(block, UUID_AT) == uuid;
        is_ours.then(|| decode_journal(block))
    }

    /// The root of a store of this geometry.
    ///
    /// # Errors
    /// [`FormatError`] as for [`Root::decode`], and when it counts more chunks than such a store
    /// has room for.
    pub fn decode_in(block: &[u8], geometry: &Geometry) -> Result<Self, FormatError> {
        let root = Self::decode(block, geometry.uuid)?;
        let newest = Pbn(root.next_pbn.saturating_sub(1));
        if !geometry.has_pbn(newest) {
            return Err(FormatError::field(Structure::Root, "count of chunks", root.next_pbn));
        }
        Ok(root)
    }
}

/// Fields with values that nobody writes, and that would lead astray.
fn check_fields(block: &[u8]) -> Result<(), FormatError> {
    let flags = block[FLAGS_AT];
    let hash = decode_hash(block);
    let offset = u64_at(block, JOURNAL_OFFSET_AT);
    let (head, tail) = (u64_at(block, FREE_HEAD_AT), u64_at(block, FREE_TAIL_AT));
    for (sound, field, found) in [
        (flags & !FLAGS == 0, "flags", u64::from(flags)),
        (hash.before <= HASH_PAGES_MAX, "count of buckets", hash.before),
        (hash.after <= HASH_PAGES_MAX, "count of buckets", hash.after),
        (hash.merged <= hash.after, "merged bucket", hash.merged),
        (hash.tail <= HASH_PAGES_MAX, "young page", hash.tail),
        (hash.sealed <= hash.tail, "sealed page", hash.sealed),
        (offset.is_multiple_of(BLOCK_BYTES as u64), "journal offset", offset),
        (head <= tail, "free head", head),
    ] {
        if !sound {
            return Err(FormatError::field(Structure::Root, field, found));
        }
    }
    Ok(())
}

fn decode_hash(block: &[u8]) -> HashShape {
    HashShape {
        turn: block[FLAGS_AT] & FLAG_TURN != 0,
        before: u64_at(block, HASH_BEFORE_AT),
        after: u64_at(block, HASH_AFTER_AT),
        merged: u64_at(block, HASH_MERGED_AT),
        entries: u64_at(block, HASH_ENTRIES_AT),
        tail: u64_at(block, YOUNG_TAIL_AT),
        sealed: u64_at(block, YOUNG_SEALED_AT),
    }
}

fn decode_journal(block: &[u8]) -> JournalPosition {
    JournalPosition {
        sequence: u64_at(block, JOURNAL_SEQUENCE_AT),
        offset_bytes: u64_at(block, JOURNAL_OFFSET_AT),
        previous_crc: u32_at(block, JOURNAL_CRC_AT),
    }
}

fn decode_compression(block: &[u8]) -> Result<Compression, FormatError> {
    let number = block[CODEC_AT];
    let codec = Codec::from_number(number)
        .ok_or_else(|| FormatError::field(Structure::Root, "codec", u64::from(number)))?;
    Ok(Compression { codec, level: block[CODEC_LEVEL_AT].cast_signed() })
}

/// Where the fields of a tree's root are.
fn tree_at(tree: usize) -> usize {
    match tree.checked_sub(FIRST_TREES) {
        None => TREES_AT + tree * TREE_BYTES,
        Some(0) => COPIES_TREE_AT,
        Some(later) => HASH_TREES_AT + (later - 1) * TREE_BYTES,
    }
}

fn decode_trees(block: &[u8]) -> Result<[TreeRoot; TREES], FormatError> {
    let mut trees = [TreeRoot::default(); TREES];
    for (tree, root) in trees.iter_mut().enumerate() {
        let at = tree_at(tree);
        let pointer = BlockPtr::from_bits(u64_at(block, at));
        *root = TreeRoot { pointer, depth: block[at + TREE_DEPTH_AT] };
        if !root.is_sound() {
            let depth = u64::from(root.depth);
            return Err(FormatError::field(Structure::Root, "tree depth", depth));
        }
    }
    Ok(trees)
}

fn decode_open_container(block: &[u8], (flag, at): (u8, usize)) -> Option<OpenContainer> {
    (block[FLAGS_AT] & flag != 0).then(|| OpenContainer {
        id: ContainerId(u32_at(block, at)),
        fill_bytes: u32_at(block, at + FILL_IN_OPEN),
        sequence: u32_at(block, at + SEQUENCE_IN_OPEN),
    })
}

fn decode_totals(block: &[u8]) -> Totals {
    Totals {
        mapped_chunks: u64_at(block, MAPPED_CHUNKS_AT),
        unique_chunks: u64_at(block, UNIQUE_CHUNKS_AT),
        live_frame_bytes: u64_at(block, LIVE_FRAME_BYTES_AT),
        dead_chunks: u64_at(block, DEAD_CHUNKS_AT),
        dead_frame_bytes: u64_at(block, DEAD_FRAME_BYTES_AT),
        copied_chunks: u64_at(block, COPIED_CHUNKS_AT),
        copy_frame_bytes: u64_at(block, COPY_FRAME_BYTES_AT),
    }
}
