//! Changes: the language in which the journal says what happened to the tables.
//!
//! A change says what the tables become, not what a client asked for: the engine applies the same
//! changes when they happen and when it recovers, and so arrives at the same tables. They are
//! packed without gaps or padding, each a kind and its fixed fields; only runs and names vary.
//! A record names its body's length, so there is no mark for the end.
//!
//! A change may have several kinds: [`Change::Store`] and [`Change::Move`] have one without the
//! frame's check, as version 1 wrote them, and one with it. [`Change::Move`] and [`Change::Copy`]
//! have one more, with the chunk's fingerprint, in stores that compare bytes: there the Hash-PBN
//! table does not know every chunk by its own, and recovery has to know what a frame should hold.
//!
//! [`Change::Carry`] changes no table: it holds the bytes of frames that the same record names, so
//! that the record alone makes them durable.

use std::ops::Range;

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
#[cfg(doc)]
use crate::catalog::VolumeName;
use crate::catalog::{Dedup, NAME_BYTES_MAX, Origin, VolumeKind};
use crate::domain::Domain;
use crate::root::Stream;
use crate::units::{Compression, ContainerId, Fingerprint, FrameCheck, Lba, Pba, Pbn, VolumeId};

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
    /// The same of a chunk whose fingerprint leads to another one: the Hash-PBN table stays as it
    /// is, and never finds this chunk. Only stores that compare bytes have such chunks.
    StoreAside {
        /// Its name.
        pbn: Pbn,
        /// Of its plain bytes.
        fingerprint: Fingerprint,
        /// Where its frame is.
        pba: Pba,
    },
    /// The bytes of frames of this record, one after the other: recovery puts them into their
    /// container, which may not have been written when the record was.
    Carry {
        /// Which.
        container: ContainerId,
        /// Where in it they begin.
        offset_bytes: u32,
        /// The frames.
        bytes: Vec<u8>,
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
    /// A frame was copied to another place; its chunk is the same. A second copy that is in the
    /// container of that place, or is that place, is none any more.
    Move {
        /// The chunk.
        pbn: Pbn,
        /// Where its frame is now.
        to: Pba,
        /// Of its plain bytes; only in stores that compare bytes.
        fingerprint: Option<Fingerprint>,
    },
    /// A chunk has a second copy of its frame, in another container.
    Copy {
        /// The chunk.
        pbn: Pbn,
        /// Where that frame is.
        at: Pba,
        /// Of its plain bytes; only in stores that compare bytes.
        fingerprint: Option<Fingerprint>,
    },
    /// A chunk has no second copy any more.
    DropCopy {
        /// The chunk.
        pbn: Pbn,
    },
    /// A dead chunk leaves the tables, its second copy with it, and its PBN joins the queue of free
    /// ones.
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
        /// Whose frames.
        stream: Stream,
    },
    /// An open container is full and has its directory.
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
        /// Whose chunks it shares, if not those of the default domain.
        domain: Option<Domain>,
        /// What its bytes are.
        kind: VolumeKind,
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
    /// A snapshot holds what a volume holds, and becomes its parent.
    TakeSnapshot {
        /// Of which.
        volume: VolumeId,
        /// The snapshot's number, never used before.
        id: VolumeId,
        /// When, in seconds since 1970; 0 when nobody knows.
        taken_unix_s: u64,
        /// A [`VolumeName`]: the snapshot's own part of its name.
        name: String,
    },
    /// A new volume holds what a snapshot holds, and is its child.
    CloneVolume {
        /// What it begins as.
        snapshot: VolumeId,
        /// Its number, never used before.
        id: VolumeId,
        /// A [`VolumeName`].
        name: String,
    },
    /// A range of a volume reads as zeros from now on. A version that nobody sees keeps what was
    /// there and becomes the volume's parent, until it has been given back.
    CutOff {
        /// Which.
        volume: VolumeId,
        /// Number of the version that keeps it, never used before.
        into: VolumeId,
        /// Leaves of the map.
        leaves: Range<u64>,
    },
    /// A volume holds what a snapshot holds. A version that nobody sees keeps what the volume held,
    /// until it has been given back.
    Rollback {
        /// Which.
        volume: VolumeId,
        /// The snapshot, from now on its parent.
        to: VolumeId,
        /// Number of the version that keeps what was, never used before.
        into: VolumeId,
    },
    /// References of a version that is being deleted are given back, up to a leaf of its map.
    GiveBack {
        /// Which.
        id: VolumeId,
        /// Leaves that were given back by now, from the first on.
        leaves: u64,
    },
    /// A volume may map so much and no more.
    SetQuota {
        /// Which.
        id: VolumeId,
        /// At most; 0: any amount.
        quota_bytes: u64,
    },
    /// Whether duplicates are looked for among what is written to a volume.
    SetDedup {
        /// Which.
        id: VolumeId,
        /// Whether they are.
        dedup: Dedup,
    },
    /// New frames of a volume are compressed so, or as the store's are.
    SetVolumeCompression {
        /// Which.
        id: VolumeId,
        /// With what; none: with what the store's are.
        compression: Option<Compression>,
    },
    /// Room is a volume's own, for what it does not map yet of so many bytes.
    SetReservation {
        /// Which.
        id: VolumeId,
        /// Of how many; 0: none.
        reservation_bytes: u64,
    },
    /// A snapshot is a copy of one that was taken elsewhere, or here before.
    SetOrigin {
        /// Which.
        id: VolumeId,
        /// The one that it is a copy of.
        origin: Origin,
    },
}

impl Change {
    /// Appends the change to a record's body.
    ///
    /// # Panics
    /// When a number does not fit its field, or a name is no [`VolumeName`].
    pub fn encode(&self, body: &mut Vec<u8>) {
        match self {
            Self::Store { .. }
            | Self::StoreAside { .. }
            | Self::Move { .. }
            | Self::Copy { .. }
            | Self::DropCopy { .. }
            | Self::Forget { .. }
            | Self::Carry { .. } => self.encode_chunk_change(body),
            Self::Map { volume, first, pbns } => Self::encode_map(body, *volume, *first, pbns),
            Self::Unmap { volume, first, count } => {
                push_kind(body, KIND_UNMAP, volume.0);
                push_u64(body, first.0);
                push_u64(body, *count);
            }
            Self::OpenContainer { id, sequence, stream } => {
                let kind = match stream {
                    Stream::Clients => KIND_OPEN_CONTAINER,
                    Stream::Collection => KIND_OPEN_COLLECTION_CONTAINER,
                };
                push_kind(body, kind, id.0);
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

    /// Of the changes that make a volume, the oldest that can make this one.
    pub(super) fn number_of_create(&self) -> u8 {
        match self {
            Self::CreateVolume { kind: VolumeKind::Block, domain: None, .. } => KIND_CREATE_VOLUME,
            Self::CreateVolume { kind: VolumeKind::Block, .. } => KIND_CREATE_VOLUME_IN,
            _ => KIND_CREATE_VOLUME_OF_KIND,
        }
    }

    fn encode_chunk_change(&self, body: &mut Vec<u8>) {
        match self {
            Self::Store { pbn, fingerprint, pba } => {
                body.push(kind_with(pba.check, KIND_STORE, KIND_STORE_CHECKED));
                push_pbn(body, *pbn);
                body.extend_from_slice(&fingerprint.0);
                push_pba(body, *pba);
            }
            Self::StoreAside { pbn, fingerprint, pba } => {
                push_named(body, KIND_STORE_ASIDE, *pbn, fingerprint, *pba);
            }
            Self::Move { pbn, to, fingerprint: Some(fingerprint) } => {
                push_named(body, KIND_MOVE_NAMED, *pbn, fingerprint, *to);
            }
            Self::Move { pbn, to, fingerprint: None } => {
                body.push(kind_with(to.check, KIND_MOVE, KIND_MOVE_CHECKED));
                push_pbn(body, *pbn);
                push_pba(body, *to);
            }
            Self::Copy { pbn, at, fingerprint: Some(fingerprint) } => {
                push_named(body, KIND_COPY_NAMED, *pbn, fingerprint, *at);
            }
            Self::Copy { pbn, at, fingerprint: None } => {
                assert!(!at.check.is_unknown(), "who makes a copy knows its check");
                body.push(KIND_COPY);
                push_pbn(body, *pbn);
                push_pba(body, *at);
            }
            Self::DropCopy { pbn } => {
                body.push(KIND_DROP_COPY);
                push_pbn(body, *pbn);
            }
            Self::Forget { pbn, fingerprint } => {
                body.push(KIND_FORGET);
                push_pbn(body, *pbn);
                body.extend_from_slice(&fingerprint.0);
            }
            Self::Carry { container, offset_bytes, bytes } => {
                push_kind(body, KIND_CARRY, container.0);
                push_u24(body, *offset_bytes);
                push_u24(body, bytes.len() as u32);
                body.extend_from_slice(bytes);
            }
            _ => {}
        }
    }

    fn encode_volume_change(&self, body: &mut Vec<u8>) {
        match self {
            Self::CreateVolume { id, size_bytes, read_only, name, domain, kind } => {
                let change = self.number_of_create();
                push_kind(body, change, id.0);
                push_u64(body, *size_bytes);
                body.push(u8::from(*read_only));
                push_name(body, name);
                let in_domain = domain.as_ref().map(|Domain { id, name }| (*id, name.as_str()));
                if change != KIND_CREATE_VOLUME {
                    let (id, name) = in_domain.unwrap_or_default();
                    body.extend_from_slice(&id.number().to_le_bytes());
                    push_name(body, name);
                }
                if change == KIND_CREATE_VOLUME_OF_KIND {
                    body.push(*kind as u8);
                }
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
            version_change => version_change.encode_version_change(body),
        }
    }

    fn encode_version_change(&self, body: &mut Vec<u8>) {
        match self {
            Self::TakeSnapshot { volume, id, taken_unix_s, name } => {
                push_kind(body, KIND_TAKE_SNAPSHOT, volume.0);
                push_u32(body, id.0);
                push_u64(body, *taken_unix_s);
                push_name(body, name);
            }
            Self::CloneVolume { snapshot, id, name } => {
                push_kind(body, KIND_CLONE_VOLUME, snapshot.0);
                push_u32(body, id.0);
                push_name(body, name);
            }
            Self::CutOff { volume, into, leaves } => {
                push_kind(body, KIND_CUT_OFF, volume.0);
                push_u32(body, into.0);
                push_u64(body, leaves.start);
                push_u64(body, leaves.end);
            }
            Self::Rollback { volume, to, into } => {
                push_kind(body, KIND_ROLLBACK, volume.0);
                push_u32(body, to.0);
                push_u32(body, into.0);
            }
            Self::GiveBack { id, leaves } => {
                push_kind(body, KIND_GIVE_BACK, id.0);
                push_u64(body, *leaves);
            }
            Self::SetQuota { id, quota_bytes } => {
                push_kind(body, KIND_SET_QUOTA, id.0);
                push_u64(body, *quota_bytes);
            }
            Self::SetDedup { id, dedup } => {
                push_kind(body, KIND_SET_DEDUP, id.0);
                body.push(*dedup as u8);
            }
            Self::SetVolumeCompression { id, compression } => {
                push_kind(body, KIND_SET_VOLUME_COMPRESSION, id.0);
                body.extend_from_slice(&Compression::volume_bytes(*compression));
            }
            Self::SetReservation { id, reservation_bytes } => {
                push_kind(body, KIND_SET_RESERVATION, id.0);
                push_u64(body, *reservation_bytes);
            }
            Self::SetOrigin { id, origin } => {
                push_kind(body, KIND_SET_ORIGIN, id.0);
                body.extend_from_slice(&origin.uuid);
                push_u32(body, origin.number);
            }
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

fn push_named(body: &mut Vec<u8>, kind: u8, pbn: Pbn, fingerprint: &Fingerprint, pba: Pba) {
    assert!(!pba.check.is_unknown(), "stores that compare bytes are newer than the check");
    body.push(kind);
    push_pbn(body, pbn);
    body.extend_from_slice(&fingerprint.0);
    push_pba(body, pba);
}

fn kind_with(check: FrameCheck, unknown: u8, known: u8) -> u8 {
    if check.is_unknown() { unknown } else { known }
}

fn push_name(body: &mut Vec<u8>, name: &str) {
    assert!(name.len() <= NAME_BYTES_MAX, "names are parsed before they are recorded");
    body.push(name.len() as u8);
    body.extend_from_slice(name.as_bytes());
}
