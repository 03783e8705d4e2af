//! What a store has beyond version 3 of the format: *features*, of which each has a bit.
//!
//! Version 4 is the last number that says what a store has. What comes later gets a bit in one of
//! three words of the geometry, as ext4, XFS and ZFS do it. The word says what a program may do
//! with a store of which it does not know the bit:
//!
//! | class | a program that does not know the bit |
//! |---|---|
//! | compatible | reads and writes the store, and keeps the bit |
//! | read-only compatible | checks the store, and writes nothing to it |
//! | incompatible | refuses the store |
//!
//! The fields that belong to a feature stand behind the words, in the same sector. What is reserved
//! of them for features to come is kept as it was found, so that a geometry that is written again
//! loses nothing that a compatible feature wrote there.
//!
//! A store without features is of version 2 or 3, and these bytes are zeros.

use crate::error::{FeatureClass, FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u64, u64_at};
use crate::units::UUID_BYTES;

pub(crate) const COMPATIBLE_AT: usize = 368;
pub(crate) const READ_ONLY_COMPATIBLE_AT: usize = 376;
pub(crate) const INCOMPATIBLE_AT: usize = 384;
pub(crate) const PAIR_AT: usize = 392;
pub(crate) const PAIR_EPOCH_AT: usize = 408;
pub(crate) const PAIR_ROLE_AT: usize = 416;
pub(crate) const MAP_COPIES_AT: usize = 417;
pub(crate) const ZONES_GONE_AT: usize = 418;
pub(crate) const RESERVED_AT: usize = 426;
pub(crate) const END_AT: usize = 512;

const _: () = assert!(PAIR_AT + UUID_BYTES == PAIR_EPOCH_AT && PAIR_EPOCH_AT + 8 == PAIR_ROLE_AT);

/// Bytes behind the fields, for features to come.
pub const RESERVED_BYTES: usize = END_AT - RESERVED_AT;

/// Which of two stores that are to hold the same this one is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum PairRole {
    /// Clients write to it, and it sends what they write to the other.
    Primary = 1,
    /// It takes what the primary sends, and nothing else.
    Secondary = 2,
}

impl PairRole {
    /// Both, by their numbers from 1 on.
    pub const ALL: [Self; 2] = [Self::Primary, Self::Secondary];
}

/// That a store and another one are a pair, of which one is a replica of the other.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pair {
    /// Of the pair: both stores have it, and no other store does. Not zeros.
    pub uuid: [u8; UUID_BYTES],
    /// Which of the two this one is.
    pub role: PairRole,
    /// How many times a primary has been made. Of two stores that both call themselves primary, the
    /// one with the lower epoch has been fenced off and must not write.
    pub epoch: u64,
}

/// How many copies there are of the leaves of maps.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum MapCopies {
    /// One: what a leaf mapped is lost with it.
    #[default]
    One = 0,
    /// Two, far from each other; only with [`Features::TOP_COPIES`].
    Two = 2,
}

impl MapCopies {
    /// What this number stands for; the numbers are stored.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::One),
            2 => Some(Self::Two),
            _ => None,
        }
    }
}

/// What a store has beyond version 3.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Features {
    /// Bits that a program need not know.
    pub compatible: u64,
    /// Bits that a program must know to write.
    pub read_only_compatible: u64,
    /// Bits that a program must know to do anything.
    pub incompatible: u64,
    /// The pair that the store is one of; only with [`Self::PAIRED`].
    pub pair: Option<Pair>,
    /// How often leaves of maps are stored.
    pub map_copies: MapCopies,
    /// Data zones that were taken out, a bit each by number; only with [`Self::ZONES_GONE`]. Their
    /// containers keep their numbers, and nothing has those.
    pub zones_gone: u64,
    /// What stands behind the fields: zeros, or what a compatible feature of a newer program keeps
    /// there.
    pub reserved: [u8; RESERVED_BYTES],
}

impl Default for Features {
    /// None: what versions 2 and 3 have.
    fn default() -> Self {
        Self {
            compatible: 0,
            read_only_compatible: 0,
            incompatible: 0,
            pair: None,
            map_copies: MapCopies::One,
            zones_gone: 0,
            reserved: [0; RESERVED_BYTES],
        }
    }
}

impl Features {
    /// Incompatible: there is a volume of another kind than block, or was.
    pub const BUCKETS: u64 = 1;
    /// Incompatible: pages above the leaves have two copies, far from each other. Reserved: no
    /// program writes it yet, and this one refuses it.
    pub const TOP_COPIES: u64 = 1 << 1;
    /// Incompatible: numbers of domains have 21 bits. Reserved as well.
    pub const WIDE_DOMAINS: u64 = 1 << 2;
    /// Incompatible: there is a volume whose new frames are not compressed as the store's are, or
    /// was.
    pub const VOLUME_CODECS: u64 = 1 << 3;
    /// Incompatible: there is a volume with a reservation, or was.
    pub const VOLUME_RESERVATIONS: u64 = 1 << 4;
    /// Incompatible: data zones were taken out, and their numbers are left empty.
    pub const ZONES_GONE: u64 = 1 << 5;
    /// Read-only compatible: the store is one of a pair. Who does not know what that asks of a
    /// writer must not write.
    pub const PAIRED: u64 = 1;

    const KNOWN_INCOMPATIBLE: u64 =
        Self::BUCKETS | Self::VOLUME_CODECS | Self::VOLUME_RESERVATIONS | Self::ZONES_GONE;
    const KNOWN_READ_ONLY_COMPATIBLE: u64 = 0;

    /// Whether the store has anything of version 4.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    /// The same with this incompatible feature.
    #[must_use]
    pub fn with_incompatible(&self, feature: u64) -> Self {
        Self { incompatible: self.incompatible | feature, ..self.clone() }
    }

    /// The same without this data zone.
    #[must_use]
    pub fn without_zone(&self, number: u16) -> Self {
        let zones_gone = self.zones_gone | zone_bit(number);
        Self { zones_gone, ..self.with_incompatible(Self::ZONES_GONE) }
    }

    /// Whether this data zone was taken out.
    #[must_use]
    pub fn is_zone_gone(&self, number: u16) -> bool {
        self.zones_gone & zone_bit(number) != 0
    }

    /// Whether this program knows all that it must know to write to the store.
    ///
    /// # Errors
    /// [`FormatError::UnknownFeatures`] with those that it does not know.
    pub fn check_writable(&self) -> Result<(), FormatError> {
        let class = FeatureClass::ReadOnlyCompatible;
        refuse_unknown(class, self.read_only_compatible & !Self::KNOWN_READ_ONLY_COMPATIBLE)
    }

    pub(crate) fn encode(&self, block: &mut [u8]) {
        put_u64(block, COMPATIBLE_AT, self.compatible);
        put_u64(block, READ_ONLY_COMPATIBLE_AT, self.read_only_compatible);
        put_u64(block, INCOMPATIBLE_AT, self.incompatible);
        if let Some(Pair { uuid, role, epoch }) = self.pair {
            put_bytes(block, PAIR_AT, &uuid);
            put_u64(block, PAIR_EPOCH_AT, epoch);
            block[PAIR_ROLE_AT] = role as u8;
        }
        block[MAP_COPIES_AT] = self.map_copies as u8;
        put_u64(block, ZONES_GONE_AT, self.zones_gone);
        put_bytes(block, RESERVED_AT, &self.reserved);
    }

    pub(crate) fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let number = block[MAP_COPIES_AT];
        let map_copies = MapCopies::from_number(number)
            .ok_or_else(|| impossible("copies of maps", u64::from(number)))?;
        Ok(Self {
            compatible: u64_at(block, COMPATIBLE_AT),
            read_only_compatible: u64_at(block, READ_ONLY_COMPATIBLE_AT),
            incompatible: u64_at(block, INCOMPATIBLE_AT),
            pair: decode_pair(block)?,
            map_copies,
            zones_gone: u64_at(block, ZONES_GONE_AT),
            reserved: array_at(block, RESERVED_AT),
        })
    }

    /// Whether the fields are those of the features that the bits name.
    pub(crate) fn check(&self) -> Result<(), FormatError> {
        let has_pair = self.read_only_compatible & Self::PAIRED != 0;
        if has_pair != self.pair.is_some() {
            return Err(impossible("pair", u64::from(has_pair)));
        }
        let has_copies = self.incompatible & Self::TOP_COPIES != 0;
        if self.map_copies != MapCopies::One && !has_copies {
            return Err(impossible("copies of maps", self.map_copies as u64));
        }
        let has_gone = self.incompatible & Self::ZONES_GONE != 0;
        if has_gone != (self.zones_gone != 0) {
            return Err(impossible("data zones that are gone", self.zones_gone));
        }
        Ok(())
    }
}

/// The bit of a data zone; none for a number that no zone has.
fn zone_bit(number: u16) -> u64 {
    1_u64.checked_shl(number.into()).unwrap_or(0)
}

/// That a geometry of version 4, whose checksum is right, has features that this program would have
/// to know to do anything with the store.
pub(crate) fn check_known(block: &[u8]) -> Result<(), FormatError> {
    let unknown = u64_at(block, INCOMPATIBLE_AT) & !Features::KNOWN_INCOMPATIBLE;
    refuse_unknown(FeatureClass::Incompatible, unknown)
}

fn refuse_unknown(class: FeatureClass, unknown: u64) -> Result<(), FormatError> {
    match unknown {
        0 => Ok(()),
        bits => Err(FormatError::UnknownFeatures { class, bits }),
    }
}

fn decode_pair(block: &[u8]) -> Result<Option<Pair>, FormatError> {
    let (uuid, epoch) = (array_at(block, PAIR_AT), u64_at(block, PAIR_EPOCH_AT));
    let number = block[PAIR_ROLE_AT];
    let role = usize::from(number).checked_sub(1).and_then(|at| PairRole::ALL.get(at).copied());
    match role {
        Some(role) if uuid != [0; UUID_BYTES] => Ok(Some(Pair { uuid, role, epoch })),
        None if number == 0 && uuid == [0; UUID_BYTES] && epoch == 0 => Ok(None),
        _ => Err(impossible("role in a pair", u64::from(number))),
    }
}

fn impossible(field: &'static str, found: u64) -> FormatError {
    FormatError::field(Structure::Superblock, field, found)
}
