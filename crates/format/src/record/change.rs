//! Changes: the language in which the journal says what happened to the tables.
//!
//! A change says what the tables become, not what a client asked for: the engine applies the same
//! changes when they happen and when it recovers, and so arrives at the same tables. They are
//! packed without gaps or padding, each a kind and its fixed fields; only runs and names vary.
//! A record names its body's length, so there is no mark for the end.
//!
//! A change may have several kinds: [`Change::Store`] and [`Change::Move`] have one without the
//! frame's check, as version 1 wrote them, and one with it.

use crate::catalog::{NAME_BYTES_MAX, VolumeName};
use crate::error::{FormatError, Structure};
use crate::field::{array_at, u16_at, u24_at, u32_at, u48_at, u64_at};
use crate::units::{
    Codec, Compression, ContainerId, Fingerprint, FrameCheck, Lba, Pba, Pbn, VolumeId,
};

pub(crate) const KIND_STORE: u8 = 1;
pub(crate) const KIND_MAP: u8 = 2;
pub(crate) const KIND_UNMAP: u8 = 3;
pub(crate) const KIND_MOVE: u8 = 4;
pub(crate) const KIND_FORGET: u8 = 5;
pub(crate) const KIND_OPEN_CONTAINER: u8 = 6;
pub(crate) const KIND_SEAL_CONTAINER: u8 = 7;
pub(crate) const KIND_FREE_CONTAINER: u8 = 8;
pub(crate) const KIND_CREATE_VOLUME: u8 = 9;
pub(crate) const KIND_RESIZE_VOLUME: u8 = 10;
pub(crate) const KIND_RENAME_VOLUME: u8 = 11;
pub(crate) const KIND_DELETE_VOLUME: u8 = 12;
pub(crate) const KIND_DROP_VOLUME: u8 = 13;
pub(crate) const KIND_SET_COMPRESSION: u8 = 14;
pub(crate) const KIND_OPENED: u8 = 15;
pub(crate) const KIND_STORE_CHECKED: u8 = 16;
pub(crate) const KIND_MOVE_CHECKED: u8 = 17;

pub(crate) const PBN_BYTES: usize = 6;

/// One step from one state of the tables to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A new chunk is stored; nothing maps to it yet.
    Store {
        /// Its name.
        pbn: Pbn,
        /// Of its plain bytes.
        fingerprint: Fingerprint,
        /// Where its frame is.
        pba: Pba,
    },
    /// Consecutive LBAs name these chunks from now on.
    Map {
        /// Whose LBAs.
        volume: VolumeId,
        /// The first of them.
        first: Lba,
        /// One for each; [`Pbn::NONE`] unmaps.
        pbns: Vec<Pbn>,
    },
    /// Consecutive LBAs read as zeros from now on.
    Unmap {
        /// Whose LBAs.
        volume: VolumeId,
        /// The first of them.
        first: Lba,
        /// So many.
        count: u64,
    },
    /// A frame was copied to another place; its chunk is the same.
    Move {
        /// The chunk.
        pbn: Pbn,
        /// Where its frame is now.
        to: Pba,
    },
    /// A dead chunk leaves the tables, and its PBN joins the queue of free ones.
    Forget {
        /// The chunk.
        pbn: Pbn,
        /// By which the Hash-PBN table finds it.
        fingerprint: Fingerprint,
    },
    /// A free container takes frames from now on.
    OpenContainer {
        /// Which.
        id: ContainerId,
        /// Number of the opening.
        sequence: u32,
    },
    /// The open container is full and has its directory.
    SealContainer {
        /// Which.
        id: ContainerId,
        /// What of it is frames.
        used_bytes: u32,
    },
    /// A container holds nothing that any table names.
    FreeContainer {
        /// Which.
        id: ContainerId,
    },
    /// A volume of zeros exists.
    CreateVolume {
        /// Its number, never used before.
        id: VolumeId,
        /// As clients see it.
        size_bytes: u64,
        /// Whether clients may not write.
        read_only: bool,
        /// A [`VolumeName`].
        name: String,
    },
    /// A volume has another size; what lay beyond a smaller one was unmapped before.
    ResizeVolume {
        /// Which.
        id: VolumeId,
        /// As clients see it.
        size_bytes: u64,
    },
    /// A volume has another name.
    RenameVolume {
        /// Which.
        id: VolumeId,
        /// A [`VolumeName`].
        name: String,
    },
    /// A volume is gone for clients; its map is emptied in the background.
    DeleteVolume {
        /// Which.
        id: VolumeId,
    },
    /// A deleted volume's map is empty; it leaves the catalog.
    DropVolume {
        /// Which.
        id: VolumeId,
    },
    /// New frames are written so.
    SetCompression(Compression),
    /// The store was opened; later records carry this incarnation.
    Opened {
        /// Number of the opening.
        incarnation: u64,
    },
}

impl Change {
    /// Appends the change to a record's body.
    ///
    /// # Panics
    /// When a number does not fit its field, or a name is no [`VolumeName`].
    pub fn encode(&self, body: &mut Vec<u8>) {
        match self {
            Self::Store { pbn, fingerprint, pba } => {
                body.push(kind_with(pba.check, KIND_STORE, KIND_STORE_CHECKED));
                push_pbn(body, *pbn);
                body.extend_from_slice(&fingerprint.0);
                push_pba(body, *pba);
            }
            Self::Map { volume, first, pbns } => Self::encode_map(body, *volume, *first, pbns),
            Self::Unmap { volume, first, count } => {
                push_kind(body, KIND_UNMAP, volume.0);
                push_u64(body, first.0);
                push_u64(body, *count);
            }
            Self::Move { pbn, to } => {
                body.push(kind_with(to.check, KIND_MOVE, KIND_MOVE_CHECKED));
                push_pbn(body, *pbn);
                push_pba(body, *to);
            }
            Self::Forget { pbn, fingerprint } => {
                body.push(KIND_FORGET);
                push_pbn(body, *pbn);
                body.extend_from_slice(&fingerprint.0);
            }
            Self::OpenContainer { id, sequence } => {
                push_kind(body, KIND_OPEN_CONTAINER, id.0);
                push_u32(body, *sequence);
            }
            Self::SealContainer { id, used_bytes } => {
                push_kind(body, KIND_SEAL_CONTAINER, id.0);
                push_u32(body, *used_bytes);
            }
            Self::FreeContainer { id } => push_kind(body, KIND_FREE_CONTAINER, id.0),
            Self::SetCompression(Compression { codec, level }) => {
                body.extend_from_slice(&[
                    KIND_SET_COMPRESSION,
                    *codec as u8,
                    level.cast_unsigned(),
                ]);
            }
            Self::Opened { incarnation } => {
                body.push(KIND_OPENED);
                push_u64(body, *incarnation);
            }
            volume_change => volume_change.encode_volume_change(body),
        }
    }

    fn encode_volume_change(&self, body: &mut Vec<u8>) {
        match self {
            Self::CreateVolume { id, size_bytes, read_only, name } => {
                push_kind(body, KIND_CREATE_VOLUME, id.0);
                push_u64(body, *size_bytes);
                body.push(u8::from(*read_only));
                push_name(body, name);
            }
            Self::ResizeVolume { id, size_bytes } => {
                push_kind(body, KIND_RESIZE_VOLUME, id.0);
                push_u64(body, *size_bytes);
            }
            Self::RenameVolume { id, name } => {
                push_kind(body, KIND_RENAME_VOLUME, id.0);
                push_name(body, name);
            }
            Self::DeleteVolume { id } => push_kind(body, KIND_DELETE_VOLUME, id.0),
            Self::DropVolume { id } => push_kind(body, KIND_DROP_VOLUME, id.0),
            _ => {}
        }
    }

    /// Appends a [`Change::Map`] without making one.
    ///
    /// # Panics
    /// When a PBN does not fit 48 bits.
    pub fn encode_map(body: &mut Vec<u8>, volume: VolumeId, first: Lba, pbns: &[Pbn]) {
        push_kind(body, KIND_MAP, volume.0);
        push_u64(body, first.0);
        push_u32(body, pbns.len() as u32);
        body.reserve(pbns.len() * PBN_BYTES);
        for &pbn in pbns {
            push_pbn(body, pbn);
        }
    }
}

fn push_kind(body: &mut Vec<u8>, kind: u8, id: u32) {
    body.push(kind);
    push_u32(body, id);
}

fn push_u32(body: &mut Vec<u8>, value: u32) {
    body.extend_from_slice(&value.to_le_bytes());
}

fn push_u64(body: &mut Vec<u8>, value: u64) {
    body.extend_from_slice(&value.to_le_bytes());
}

fn push_u24(body: &mut Vec<u8>, value: u32) {
    let [a, b, c, overflow] = value.to_le_bytes();
    assert!(overflow == 0, "{value} does not fit 24 bits");
    body.extend_from_slice(&[a, b, c]);
}

fn push_pbn(body: &mut Vec<u8>, pbn: Pbn) {
    let [a, b, c, d, e, f, overflow @ ..] = pbn.0.to_le_bytes();
    assert!(overflow == [0, 0], "PBN {pbn} does not fit 48 bits");
    body.extend_from_slice(&[a, b, c, d, e, f]);
}

fn push_pba(body: &mut Vec<u8>, pba: Pba) {
    push_u32(body, pba.container.0);
    push_u24(body, pba.offset_bytes);
    push_u24(body, pba.length_bytes);
    if !pba.check.is_unknown() {
        body.extend_from_slice(&pba.check.to_bits().to_le_bytes());
    }
}

fn kind_with(check: FrameCheck, unknown: u8, known: u8) -> u8 {
    if check.is_unknown() { unknown } else { known }
}

fn push_name(body: &mut Vec<u8>, name: &str) {
    assert!(name.len() <= NAME_BYTES_MAX, "names are parsed before they are recorded");
    body.push(name.len() as u8);
    body.extend_from_slice(name.as_bytes());
}

/// The changes of a record's body, in their order; ends after the first error.
#[derive(Clone, Debug)]
pub struct Changes<'a> {
    rest: &'a [u8],
}

impl<'a> Changes<'a> {
    /// The changes in `body`.
    #[must_use]
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    fn take(&mut self, length_bytes: usize) -> Result<&'a [u8], FormatError> {
        FormatError::at_least(Structure::Change, length_bytes, self.rest)?;
        let (field, rest) = self.rest.split_at(length_bytes);
        self.rest = rest;
        Ok(field)
    }

    fn take_u8(&mut self) -> Result<u8, FormatError> {
        self.take(1).map(|field| field[0])
    }

    fn take_u32(&mut self) -> Result<u32, FormatError> {
        self.take(4).map(|field| u32_at(field, 0))
    }

    fn take_u64(&mut self) -> Result<u64, FormatError> {
        self.take(8).map(|field| u64_at(field, 0))
    }

    fn take_pbn(&mut self) -> Result<Pbn, FormatError> {
        self.take(PBN_BYTES).map(|field| Pbn(u48_at(field, 0)))
    }

    fn take_fingerprint(&mut self) -> Result<Fingerprint, FormatError> {
        self.take(32).map(|field| Fingerprint(array_at(field, 0)))
    }

    fn take_pba(&mut self) -> Result<Pba, FormatError> {
        let field = self.take(10)?;
        let (offset_bytes, length_bytes) = (u24_at(field, 4), u24_at(field, 7));
        let container = ContainerId(u32_at(field, 0));
        Ok(Pba { container, offset_bytes, length_bytes, check: FrameCheck::UNKNOWN })
    }

    fn take_checked_pba(&mut self) -> Result<Pba, FormatError> {
        let pba = self.take_pba()?;
        let check = FrameCheck::from_bits(u16_at(self.take(2)?, 0));
        if check.is_unknown() {
            Err(impossible("frame check", 0))
        } else {
            Ok(Pba { check, ..pba })
        }
    }

    fn take_container(&mut self) -> Result<ContainerId, FormatError> {
        self.take_u32().map(ContainerId)
    }

    fn take_volume(&mut self) -> Result<VolumeId, FormatError> {
        self.take_u32().map(VolumeId)
    }

    fn take_name(&mut self) -> Result<String, FormatError> {
        let length_bytes = self.take_u8()?;
        VolumeName::decode(Structure::Change, self.take(usize::from(length_bytes))?)
    }

    fn take_flag(&mut self) -> Result<bool, FormatError> {
        match self.take_u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(impossible("flag", other)),
        }
    }

    fn take_map(&mut self) -> Result<Change, FormatError> {
        let (volume, first) = (self.take_volume()?, Lba(self.take_u64()?));
        let count = self.take_u32()? as usize;
        let fields = self.take(count.saturating_mul(PBN_BYTES))?;
        let pbns = fields.chunks_exact(PBN_BYTES).map(|field| Pbn(u48_at(field, 0))).collect();
        Ok(Change::Map { volume, first, pbns })
    }

    fn take_compression(&mut self) -> Result<Compression, FormatError> {
        let number = self.take_u8()?;
        let codec = Codec::from_number(number).ok_or_else(|| impossible("codec", number))?;
        Ok(Compression { codec, level: self.take_u8()?.cast_signed() })
    }

    fn take_change(&mut self) -> Result<Change, FormatError> {
        Ok(match self.take_u8()? {
            KIND_STORE => Change::Store {
                pbn: self.take_pbn()?,
                fingerprint: self.take_fingerprint()?,
                pba: self.take_pba()?,
            },
            KIND_MAP => self.take_map()?,
            KIND_UNMAP => Change::Unmap {
                volume: self.take_volume()?,
                first: Lba(self.take_u64()?),
                count: self.take_u64()?,
            },
            KIND_MOVE => Change::Move { pbn: self.take_pbn()?, to: self.take_pba()? },
            KIND_STORE_CHECKED => Change::Store {
                pbn: self.take_pbn()?,
                fingerprint: self.take_fingerprint()?,
                pba: self.take_checked_pba()?,
            },
            KIND_MOVE_CHECKED => {
                Change::Move { pbn: self.take_pbn()?, to: self.take_checked_pba()? }
            }
            KIND_FORGET => {
                Change::Forget { pbn: self.take_pbn()?, fingerprint: self.take_fingerprint()? }
            }
            KIND_OPEN_CONTAINER => {
                Change::OpenContainer { id: self.take_container()?, sequence: self.take_u32()? }
            }
            KIND_SEAL_CONTAINER => {
                Change::SealContainer { id: self.take_container()?, used_bytes: self.take_u32()? }
            }
            KIND_FREE_CONTAINER => Change::FreeContainer { id: self.take_container()? },
            KIND_SET_COMPRESSION => Change::SetCompression(self.take_compression()?),
            KIND_OPENED => Change::Opened { incarnation: self.take_u64()? },
            kind => self.take_volume_change(kind)?,
        })
    }

    fn take_volume_change(&mut self, kind: u8) -> Result<Change, FormatError> {
        Ok(match kind {
            KIND_CREATE_VOLUME => Change::CreateVolume {
                id: self.take_volume()?,
                size_bytes: self.take_u64()?,
                read_only: self.take_flag()?,
                name: self.take_name()?,
            },
            KIND_RESIZE_VOLUME => {
                Change::ResizeVolume { id: self.take_volume()?, size_bytes: self.take_u64()? }
            }
            KIND_RENAME_VOLUME => {
                Change::RenameVolume { id: self.take_volume()?, name: self.take_name()? }
            }
            KIND_DELETE_VOLUME => Change::DeleteVolume { id: self.take_volume()? },
            KIND_DROP_VOLUME => Change::DropVolume { id: self.take_volume()? },
            other => return Err(impossible("kind", other)),
        })
    }
}

fn impossible(field: &'static str, found: u8) -> FormatError {
    FormatError::field(Structure::Change, field, u64::from(found))
}

impl Iterator for Changes<'_> {
    type Item = Result<Change, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let change = self.take_change();
        if change.is_err() {
            self.rest = &[];
        }
        Some(change)
    }
}

impl std::iter::FusedIterator for Changes<'_> {}
