//! Leaves of the catalog: the volumes.
//!
//! The catalog is a plain array of slots; which slot holds which volume means nothing. A volume's
//! entry carries the root of its map, so that one root block reaches everything.

use std::ops::Range;

use crate::domain::{DOMAIN_NAME_BYTES_MAX, Domain};
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::page::{PAYLOAD_BYTES, Page};
use crate::units::{BlockPtr, Compression, UUID_BYTES, VolumeId};

pub use crate::name::{NAME_BYTES_MAX, NameError, VolumeName};
pub use crate::units::TreeRoot;
pub use crate::volume_kind::{VolumeFlags, VolumeKind};

/// Entries in a leaf.
pub const SLOTS: usize = 7;

pub(crate) const ENTRY_BYTES: usize = 512;
pub(crate) const STATE_AT: usize = 0;
pub(crate) const FLAGS_AT: usize = 1;
pub(crate) const NAME_BYTES_AT: usize = 2;
pub(crate) const DEPTH_AT: usize = 3;
pub(crate) const ID_AT: usize = 4;
pub(crate) const SIZE_AT: usize = 8;
pub(crate) const MAPPED_AT: usize = 16;
pub(crate) const POINTER_AT: usize = 24;
pub(crate) const CREATED_AT: usize = 32;
pub(crate) const NAME_AT: usize = 40;
pub(crate) const PADDING_AT: usize = 295;
pub(crate) const PARENT_AT: usize = 296;
pub(crate) const SNAPSHOT_OF_AT: usize = 300;
pub(crate) const TAKEN_AT: usize = 304;
pub(crate) const GIVEN_BACK_AT: usize = 312;
pub(crate) const CUT_START_AT: usize = 320;
pub(crate) const CUT_END_AT: usize = 328;
pub(crate) const ZERO_AT: usize = 336;
pub(crate) const QUOTA_AT: usize = 368;
pub(crate) const DOMAIN_AT: usize = 376;
pub(crate) const DOMAIN_NAME_BYTES_AT: usize = 378;
pub(crate) const DOMAIN_NAME_AT: usize = 379;
pub(crate) const ORIGIN_UUID_AT: usize = 443;
pub(crate) const ORIGIN_NUMBER_AT: usize = 459;
pub(crate) const KIND_AT: usize = 463;
pub(crate) const INCOMPATIBLE_FLAGS_AT: usize = 464;
pub(crate) const COMPATIBLE_FLAGS_AT: usize = 468;
pub(crate) const CODEC_AT: usize = 472;
pub(crate) const LEVEL_AT: usize = 473;
pub(crate) const RESERVATION_AT: usize = 474;
pub(crate) const REST_AT: usize = 482;
pub(crate) const FLAG_READ_ONLY: u8 = 1;
const FLAG_PARENT: u8 = 2;
const FLAG_SNAPSHOT: u8 = 4;
const FLAG_NO_DEDUP: u8 = 8;
const FLAG_AUTO_DEDUP: u8 = 16;
const FLAGS_DEDUP: u8 = FLAG_NO_DEDUP | FLAG_AUTO_DEDUP;
const FLAGS: u8 = FLAG_READ_ONLY | FLAG_PARENT | FLAG_SNAPSHOT | FLAGS_DEDUP;
const STATE_VACANT: u8 = 0;

const _: () = assert!(NAME_AT + NAME_BYTES_MAX == PADDING_AT && ZERO_AT <= QUOTA_AT);
const _: () = assert!(QUOTA_AT + 8 == DOMAIN_AT && DOMAIN_NAME_BYTES_AT + 1 == DOMAIN_NAME_AT);
const _: () = assert!(DOMAIN_NAME_AT + DOMAIN_NAME_BYTES_MAX == ORIGIN_UUID_AT);
const _: () = assert!(ORIGIN_UUID_AT + UUID_BYTES == ORIGIN_NUMBER_AT && REST_AT <= ENTRY_BYTES);
const _: () = assert!(ORIGIN_NUMBER_AT + 4 == KIND_AT && KIND_AT + 1 == INCOMPATIBLE_FLAGS_AT);
const _: () = assert!(SLOTS * ENTRY_BYTES <= PAYLOAD_BYTES);

/// Where a volume is in its life.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum VolumeState {
    /// In use.
    Live = 1,
    /// Its name is free and its map is being emptied.
    Deleting = 2,
}

/// Whether duplicates are looked for among what is written to a volume.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Dedup {
    /// None are.
    Off = 0,
    /// All are found.
    #[default]
    On = 1,
    /// As long as some are found.
    Auto = 2,
}

impl Dedup {
    /// All of them, by their numbers.
    pub const ALL: [Self; 3] = [Self::Off, Self::On, Self::Auto];

    /// What this number stands for; the numbers are stored.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// How people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Auto => "auto",
        }
    }

    /// What a name stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dedup| dedup.name() == name)
    }

    fn of_flags(flags: u8) -> Result<Self, FormatError> {
        match flags & FLAGS_DEDUP {
            0 => Ok(Self::On),
            FLAG_NO_DEDUP => Ok(Self::Off),
            FLAG_AUTO_DEDUP => Ok(Self::Auto),
            _ => Err(impossible("flags", flags)),
        }
    }

    fn flags(self) -> u8 {
        match self {
            Self::On => 0,
            Self::Off => FLAG_NO_DEDUP,
            Self::Auto => FLAG_AUTO_DEDUP,
        }
    }
}

/// A snapshot, by the store and the number under which it was taken: whatever stores it was copied
/// to since, it is the same.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Of the store.
    pub uuid: [u8; UUID_BYTES],
    /// [`CatalogEntry::id`] there.
    pub number: u32,
}

impl Origin {
    /// From its fields; none where they are those of nobody knows what.
    #[must_use]
    pub(crate) fn from_fields(uuid: [u8; UUID_BYTES], number: u32) -> Option<Self> {
        (uuid != [0; UUID_BYTES]).then_some(Self { uuid, number })
    }
}

/// How a version of a volume came to be, and how far it has gone.
///
/// Volumes, their snapshots and the clones of those are *versions*: trees of parents and children.
/// A version holds a reference to a chunk for each LBA that it maps to another chunk than its
/// parent does; one without a parent, for each LBA that it maps. Of one that is being deleted the
/// leaves that were given back are its parent's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lineage {
    /// Whose references it need not hold itself.
    pub parent: Option<VolumeId>,
    /// The volume that it is a snapshot of, which may be gone.
    pub snapshot_of: Option<VolumeId>,
    /// When the snapshot was taken, in seconds since 1970, as far as is known; else 0.
    pub taken_unix_s: u64,
    /// Of a version being deleted: leaves of its map, from the first on, that were given back.
    pub given_back_leaves: u64,
    /// Of one that holds what was cut off from a volume: the leaves that were. What they map is
    /// still in the figures of all that descends from it, until they are given back.
    pub cut_leaves: Range<u64>,
    /// Of a snapshot that was imported: the one that it is a copy of, as far as is known.
    pub origin: Option<Origin>,
}

/// A volume, or a snapshot of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogEntry {
    /// Its number.
    pub id: VolumeId,
    /// A [`VolumeName`]; of a snapshot, its own part of `volume@snapshot`; of a volume being
    /// deleted, its last.
    pub name: String,
    /// As clients see it.
    pub size_bytes: u64,
    /// LBAs that name a chunk.
    pub mapped_chunks: u64,
    /// Where it is in its life.
    pub state: VolumeState,
    /// Whether clients may not write.
    pub read_only: bool,
    /// What it may map at most, in bytes; 0: any amount.
    pub quota_bytes: u64,
    /// Room that is its own, for what it does not map yet of so many bytes; 0: none.
    pub reservation_bytes: u64,
    /// Whether duplicates are looked for among what is written to it.
    pub dedup: Dedup,
    /// What its new frames are compressed with; none: with what the store's are.
    pub compression: Option<Compression>,
    /// Whose chunks it shares, for life; none: those of the default domain.
    pub domain: Option<Domain>,
    /// Its map.
    pub root: TreeRoot,
    /// Generation of the first checkpoint that knows it.
    pub created_generation: u64,
    /// How it came to be.
    pub lineage: Lineage,
    /// What its bytes are, for life.
    pub kind: VolumeKind,
    /// What else there is to know of it.
    pub flags: VolumeFlags,
}

impl CatalogEntry {
    /// Of a volume that has just been made: nothing is in it, and it came from no other.
    #[must_use]
    pub fn of_new_volume(
        id: VolumeId,
        name: String,
        size_bytes: u64,
        read_only: bool,
        domain: Option<Domain>,
        kind: VolumeKind,
    ) -> Self {
        Self {
            id,
            name,
            size_bytes,
            mapped_chunks: 0,
            state: VolumeState::Live,
            read_only,
            quota_bytes: 0,
            reservation_bytes: 0,
            dedup: Dedup::default(),
            compression: None,
            domain,
            root: Default::default(),
            created_generation: 0,
            lineage: Default::default(),
            kind,
            flags: Default::default(),
        }
    }

    /// How many chunks it may map, by its size.
    #[must_use]
    pub fn chunks(&self, chunk_bytes: u32) -> u64 {
        self.size_bytes.div_ceil(u64::from(chunk_bytes))
    }

    /// Number of its domain; 0 of the default one.
    #[must_use]
    pub fn domain_number(&self) -> u16 {
        self.domain.as_ref().map_or(0, |domain| domain.id.number())
    }
}

/// The entry in `slot`, less than [`SLOTS`]; none when vacant.
///
/// # Errors
/// [`FormatError::Field`] when a field holds what is not written there.
pub fn get(page: &Page, slot: usize) -> Result<Option<CatalogEntry>, FormatError> {
    let entry = &page.payload()[slot * ENTRY_BYTES..][..ENTRY_BYTES];
    let state = match entry[STATE_AT] {
        STATE_VACANT => return Ok(None),
        1 => VolumeState::Live,
        2 => VolumeState::Deleting,
        other => return Err(impossible("state", other)),
    };
    let flags = entry[FLAGS_AT];
    if flags & !FLAGS != 0 {
        return Err(impossible("flags", flags));
    }
    let pointer = BlockPtr::from_bits(u64_at(entry, POINTER_AT));
    let root = TreeRoot { pointer, depth: entry[DEPTH_AT] };
    if !root.is_sound() {
        return Err(impossible("depth", root.depth));
    }
    let name = &entry[NAME_AT..][..usize::from(entry[NAME_BYTES_AT])];
    Ok(Some(CatalogEntry {
        id: VolumeId(u32_at(entry, ID_AT)),
        name: VolumeName::decode(Structure::CatalogEntry, name)?,
        size_bytes: u64_at(entry, SIZE_AT),
        mapped_chunks: u64_at(entry, MAPPED_AT),
        state,
        read_only: flags & FLAG_READ_ONLY != 0,
        quota_bytes: u64_at(entry, QUOTA_AT),
        reservation_bytes: u64_at(entry, RESERVATION_AT),
        dedup: Dedup::of_flags(flags)?,
        compression: Compression::of_volume_bytes(
            Structure::CatalogEntry,
            [entry[CODEC_AT], entry[LEVEL_AT]],
        )?,
        domain: get_domain(entry)?,
        root,
        created_generation: u64_at(entry, CREATED_AT),
        lineage: get_lineage(entry, flags),
        kind: VolumeKind::from_number(entry[KIND_AT])
            .ok_or_else(|| impossible("kind", entry[KIND_AT]))?,
        flags: VolumeFlags::from_words(
            u32_at(entry, INCOMPATIBLE_FLAGS_AT),
            u32_at(entry, COMPATIBLE_FLAGS_AT),
        )?,
    }))
}

fn get_domain(entry: &[u8]) -> Result<Option<Domain>, FormatError> {
    let length_bytes = usize::from(entry[DOMAIN_NAME_BYTES_AT]);
    let name = entry[DOMAIN_NAME_AT..ORIGIN_UUID_AT].get(..length_bytes).unwrap_or_default();
    if name.len() != length_bytes {
        return Err(impossible("length of a domain's name", entry[DOMAIN_NAME_BYTES_AT]));
    }
    Domain::decode(Structure::CatalogEntry, u16_at(entry, DOMAIN_AT), name)
}

fn get_lineage(entry: &[u8], flags: u8) -> Lineage {
    let number = |flag, at| (flags & flag != 0).then(|| VolumeId(u32_at(entry, at)));
    Lineage {
        parent: number(FLAG_PARENT, PARENT_AT),
        snapshot_of: number(FLAG_SNAPSHOT, SNAPSHOT_OF_AT),
        taken_unix_s: u64_at(entry, TAKEN_AT),
        given_back_leaves: u64_at(entry, GIVEN_BACK_AT),
        cut_leaves: u64_at(entry, CUT_START_AT)..u64_at(entry, CUT_END_AT),
        origin: Origin::from_fields(
            array_at(entry, ORIGIN_UUID_AT),
            u32_at(entry, ORIGIN_NUMBER_AT),
        ),
    }
}

fn set_lineage(bytes: &mut [u8], lineage: &Lineage) {
    let numbers = [
        (FLAG_PARENT, PARENT_AT, lineage.parent),
        (FLAG_SNAPSHOT, SNAPSHOT_OF_AT, lineage.snapshot_of),
    ];
    for (flag, at, number) in numbers {
        if let Some(VolumeId(number)) = number {
            bytes[FLAGS_AT] |= flag;
            put_u32(bytes, at, number);
        }
    }
    put_u64(bytes, TAKEN_AT, lineage.taken_unix_s);
    put_u64(bytes, GIVEN_BACK_AT, lineage.given_back_leaves);
    put_u64(bytes, CUT_START_AT, lineage.cut_leaves.start);
    put_u64(bytes, CUT_END_AT, lineage.cut_leaves.end);
    if let Some(Origin { uuid, number }) = &lineage.origin {
        put_bytes(bytes, ORIGIN_UUID_AT, uuid);
        put_u32(bytes, ORIGIN_NUMBER_AT, *number);
    }
}

fn impossible(field: &'static str, found: u8) -> FormatError {
    FormatError::field(Structure::CatalogEntry, field, u64::from(found))
}

/// Changes the entry in `slot`, less than [`SLOTS`].
///
/// # Panics
/// When the name is longer than [`NAME_BYTES_MAX`], which no [`VolumeName`] is, or that of the
/// domain is longer than a domain's can be.
pub fn set(page: &mut Page, slot: usize, entry: Option<&CatalogEntry>) {
    let bytes = &mut page.payload_mut()[slot * ENTRY_BYTES..][..ENTRY_BYTES];
    bytes.fill(0);
    let Some(entry) = entry else { return };
    assert!(entry.name.len() <= NAME_BYTES_MAX, "names are parsed before they are stored");
    bytes[STATE_AT] = entry.state as u8;
    bytes[FLAGS_AT] = if entry.read_only { FLAG_READ_ONLY } else { 0 };
    bytes[FLAGS_AT] |= entry.dedup.flags();
    bytes[NAME_BYTES_AT] = entry.name.len() as u8;
    bytes[DEPTH_AT] = entry.root.depth;
    put_u32(bytes, ID_AT, entry.id.0);
    put_u64(bytes, SIZE_AT, entry.size_bytes);
    put_u64(bytes, MAPPED_AT, entry.mapped_chunks);
    put_u64(bytes, POINTER_AT, entry.root.pointer.to_bits());
    put_u64(bytes, CREATED_AT, entry.created_generation);
    put_u64(bytes, QUOTA_AT, entry.quota_bytes);
    put_u64(bytes, RESERVATION_AT, entry.reservation_bytes);
    put_bytes(bytes, NAME_AT, entry.name.as_bytes());
    if let Some(Domain { id, name }) = &entry.domain {
        assert!(name.len() <= DOMAIN_NAME_BYTES_MAX, "names are parsed before they are stored");
        put_u16(bytes, DOMAIN_AT, id.number());
        bytes[DOMAIN_NAME_BYTES_AT] = name.len() as u8;
        put_bytes(bytes, DOMAIN_NAME_AT, name.as_bytes());
    }
    set_lineage(bytes, &entry.lineage);
    bytes[KIND_AT] = entry.kind as u8;
    put_u32(bytes, COMPATIBLE_FLAGS_AT, entry.flags.compatible);
    put_bytes(bytes, CODEC_AT, &Compression::volume_bytes(entry.compression));
}
