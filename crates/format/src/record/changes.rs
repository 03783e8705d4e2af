//! The changes of a record's body, read one after the other.

use std::iter::FusedIterator;

use super::change::{Change, PBN_BYTES};
use super::kinds::{
    KIND_CARRY, KIND_CLONE_VOLUME, KIND_COPY, KIND_COPY_NAMED, KIND_CREATE_VOLUME,
    KIND_CREATE_VOLUME_IN, KIND_CREATE_VOLUME_OF_KIND, KIND_CUT_OFF, KIND_DELETE_VOLUME,
    KIND_DROP_COPY, KIND_DROP_VOLUME, KIND_FORGET, KIND_FREE_CONTAINER, KIND_GIVE_BACK, KIND_MAP,
    KIND_MOVE, KIND_MOVE_CHECKED, KIND_MOVE_NAMED, KIND_OPEN_COLLECTION_CONTAINER,
    KIND_OPEN_CONTAINER, KIND_OPENED, KIND_RENAME_VOLUME, KIND_RESIZE_VOLUME, KIND_ROLLBACK,
    KIND_SEAL_CONTAINER, KIND_SET_COMPRESSION, KIND_SET_DEDUP, KIND_SET_ORIGIN, KIND_SET_QUOTA,
    KIND_SET_RESERVATION, KIND_SET_VOLUME_COMPRESSION, KIND_STORE, KIND_STORE_ASIDE,
    KIND_STORE_CHECKED, KIND_TAKE_SNAPSHOT, KIND_UNMAP,
};
use crate::catalog::{Dedup, Origin, VolumeKind, VolumeName};
use crate::domain::Domain;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, u16_at, u24_at, u32_at, u48_at, u64_at};
use crate::pba_page::ASIDE_FLAG;
use crate::root::Stream;
use crate::units::{
    Codec, Compression, ContainerId, Fingerprint, FrameCheck, Lba, Pba, Pbn, UUID_BYTES, VolumeId,
};

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
        if length_bytes >= ASIDE_FLAG {
            return Err(impossible("length of a frame", field[9]));
        }
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

    fn take_origin(&mut self) -> Result<Origin, FormatError> {
        let (uuid, number) = (array_at(self.take(UUID_BYTES)?, 0), self.take_u32()?);
        Origin::from_fields(uuid, number).ok_or_else(|| impossible("origin", 0))
    }

    fn take_volume(&mut self) -> Result<VolumeId, FormatError> {
        self.take_u32().map(VolumeId)
    }

    fn take_name(&mut self) -> Result<String, FormatError> {
        let length_bytes = self.take_u8()?;
        VolumeName::decode(Structure::Change, self.take(usize::from(length_bytes))?)
    }

    fn take_domain(&mut self) -> Result<Option<Domain>, FormatError> {
        let number = u16_at(self.take(2)?, 0);
        let length_bytes = self.take_u8()?;
        let name = self.take(usize::from(length_bytes))?;
        Domain::decode(Structure::Change, number, name)
    }

    fn take_create(&mut self, change: u8) -> Result<Change, FormatError> {
        let (id, size_bytes) = (self.take_volume()?, self.take_u64()?);
        let (read_only, name) = (self.take_flag()?, self.take_name()?);
        let domain = if change == KIND_CREATE_VOLUME { None } else { self.take_domain()? };
        let kind = match change {
            KIND_CREATE_VOLUME_OF_KIND => self.take_kind_of_volume()?,
            _ => VolumeKind::Block,
        };
        let create = Change::CreateVolume { id, size_bytes, read_only, name, domain, kind };
        // A volume that an older change can make is made by that.
        if create.number_of_create() == change {
            Ok(create)
        } else {
            Err(impossible("kind", change))
        }
    }

    fn take_kind_of_volume(&mut self) -> Result<VolumeKind, FormatError> {
        let number = self.take_u8()?;
        VolumeKind::from_number(number).ok_or_else(|| impossible("kind of a volume", number))
    }

    fn take_flag(&mut self) -> Result<bool, FormatError> {
        match self.take_u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(impossible("flag", other)),
        }
    }

    fn take_dedup(&mut self) -> Result<Dedup, FormatError> {
        let number = self.take_u8()?;
        Dedup::from_number(number).ok_or_else(|| impossible("way to deduplicate", number))
    }

    fn take_open(&mut self, stream: Stream) -> Result<Change, FormatError> {
        let (id, sequence) = (self.take_container()?, self.take_u32()?);
        Ok(Change::OpenContainer { id, sequence, stream })
    }

    fn take_map(&mut self) -> Result<Change, FormatError> {
        let (volume, first) = (self.take_volume()?, Lba(self.take_u64()?));
        let count = self.take_u32()? as usize;
        let fields = self.take(count.saturating_mul(PBN_BYTES))?;
        let pbns = fields.chunks_exact(PBN_BYTES).map(|field| Pbn(u48_at(field, 0))).collect();
        Ok(Change::Map { volume, first, pbns })
    }

    fn take_carry(&mut self) -> Result<Change, FormatError> {
        let (container, field) = (self.take_container()?, self.take(6)?);
        let (offset_bytes, length_bytes) = (u24_at(field, 0), u24_at(field, 3));
        let bytes = self.take(length_bytes as usize)?.to_vec();
        Ok(Change::Carry { container, offset_bytes, bytes })
    }

    fn take_compression(&mut self) -> Result<Compression, FormatError> {
        let number = self.take_u8()?;
        let codec = Codec::from_number(number).ok_or_else(|| impossible("codec", number))?;
        Ok(Compression { codec, level: self.take_u8()?.cast_signed() })
    }

    fn take_volume_compression(&mut self) -> Result<Option<Compression>, FormatError> {
        Compression::of_volume_bytes(Structure::Change, array_at(self.take(2)?, 0))
    }

    fn take_change(&mut self) -> Result<Change, FormatError> {
        Ok(match self.take_u8()? {
            KIND_MAP => self.take_map()?,
            KIND_UNMAP => Change::Unmap {
                volume: self.take_volume()?,
                first: Lba(self.take_u64()?),
                count: self.take_u64()?,
            },
            KIND_OPEN_CONTAINER => self.take_open(Stream::Clients)?,
            KIND_OPEN_COLLECTION_CONTAINER => self.take_open(Stream::Collection)?,
            KIND_SEAL_CONTAINER => {
                Change::SealContainer { id: self.take_container()?, used_bytes: self.take_u32()? }
            }
            KIND_FREE_CONTAINER => Change::FreeContainer { id: self.take_container()? },
            KIND_SET_COMPRESSION => Change::SetCompression(self.take_compression()?),
            KIND_OPENED => Change::Opened { incarnation: self.take_u64()? },
            kind => self.take_chunk_change(kind)?,
        })
    }

    fn take_chunk_change(&mut self, kind: u8) -> Result<Change, FormatError> {
        Ok(match kind {
            KIND_STORE => Change::Store {
                pbn: self.take_pbn()?,
                fingerprint: self.take_fingerprint()?,
                pba: self.take_pba()?,
            },
            KIND_STORE_CHECKED => Change::Store {
                pbn: self.take_pbn()?,
                fingerprint: self.take_fingerprint()?,
                pba: self.take_checked_pba()?,
            },
            KIND_STORE_ASIDE => Change::StoreAside {
                pbn: self.take_pbn()?,
                fingerprint: self.take_fingerprint()?,
                pba: self.take_checked_pba()?,
            },
            KIND_MOVE => {
                let (pbn, to) = (self.take_pbn()?, self.take_pba()?);
                Change::Move { pbn, to, fingerprint: None }
            }
            KIND_MOVE_CHECKED => {
                let (pbn, to) = (self.take_pbn()?, self.take_checked_pba()?);
                Change::Move { pbn, to, fingerprint: None }
            }
            KIND_MOVE_NAMED => {
                let (pbn, fingerprint) = (self.take_pbn()?, Some(self.take_fingerprint()?));
                Change::Move { pbn, to: self.take_checked_pba()?, fingerprint }
            }
            KIND_COPY => {
                let (pbn, at) = (self.take_pbn()?, self.take_checked_pba()?);
                Change::Copy { pbn, at, fingerprint: None }
            }
            KIND_COPY_NAMED => {
                let (pbn, fingerprint) = (self.take_pbn()?, Some(self.take_fingerprint()?));
                Change::Copy { pbn, at: self.take_checked_pba()?, fingerprint }
            }
            KIND_DROP_COPY => Change::DropCopy { pbn: self.take_pbn()? },
            KIND_FORGET => {
                Change::Forget { pbn: self.take_pbn()?, fingerprint: self.take_fingerprint()? }
            }
            KIND_CARRY => self.take_carry()?,
            kind => self.take_volume_change(kind)?,
        })
    }

    fn take_volume_change(&mut self, kind: u8) -> Result<Change, FormatError> {
        Ok(match kind {
            KIND_CREATE_VOLUME | KIND_CREATE_VOLUME_IN | KIND_CREATE_VOLUME_OF_KIND => {
                self.take_create(kind)?
            }
            KIND_RESIZE_VOLUME => {
                Change::ResizeVolume { id: self.take_volume()?, size_bytes: self.take_u64()? }
            }
            KIND_RENAME_VOLUME => {
                Change::RenameVolume { id: self.take_volume()?, name: self.take_name()? }
            }
            KIND_DELETE_VOLUME => Change::DeleteVolume { id: self.take_volume()? },
            KIND_DROP_VOLUME => Change::DropVolume { id: self.take_volume()? },
            kind => self.take_version_change(kind)?,
        })
    }

    fn take_version_change(&mut self, kind: u8) -> Result<Change, FormatError> {
        Ok(match kind {
            KIND_TAKE_SNAPSHOT => Change::TakeSnapshot {
                volume: self.take_volume()?,
                id: self.take_volume()?,
                taken_unix_s: self.take_u64()?,
                name: self.take_name()?,
            },
            KIND_CLONE_VOLUME => Change::CloneVolume {
                snapshot: self.take_volume()?,
                id: self.take_volume()?,
                name: self.take_name()?,
            },
            KIND_CUT_OFF => Change::CutOff {
                volume: self.take_volume()?,
                into: self.take_volume()?,
                leaves: self.take_u64()?..self.take_u64()?,
            },
            KIND_ROLLBACK => Change::Rollback {
                volume: self.take_volume()?,
                to: self.take_volume()?,
                into: self.take_volume()?,
            },
            KIND_GIVE_BACK => {
                Change::GiveBack { id: self.take_volume()?, leaves: self.take_u64()? }
            }
            KIND_SET_QUOTA => {
                Change::SetQuota { id: self.take_volume()?, quota_bytes: self.take_u64()? }
            }
            KIND_SET_DEDUP => {
                Change::SetDedup { id: self.take_volume()?, dedup: self.take_dedup()? }
            }
            KIND_SET_RESERVATION => Change::SetReservation {
                id: self.take_volume()?,
                reservation_bytes: self.take_u64()?,
            },
            KIND_SET_VOLUME_COMPRESSION => Change::SetVolumeCompression {
                id: self.take_volume()?,
                compression: self.take_volume_compression()?,
            },
            KIND_SET_ORIGIN => {
                Change::SetOrigin { id: self.take_volume()?, origin: self.take_origin()? }
            }
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

impl FusedIterator for Changes<'_> {}
