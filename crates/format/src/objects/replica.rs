//! How a bucket is replicated: one block of its volume, beside the header.
//!
//! It is the only block that the two copies of a bucket do not have in common. Each side writes it
//! with every record, in the order of the volume, so after any crash it says which records the rest
//! of the volume holds. A volume without it is not replicated.

use super::header::{HEADER_COPIES_AT_BYTES, RING_AT_BYTES};
use crate::BLOCK_BYTES;
use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::replication::Position;
use crate::units::UUID_BYTES;

/// Where the block is.
pub const REPLICA_STATE_AT_BYTES: u64 = 16 << 10;

/// Longest address of another server.
pub const PEER_BYTES_MAX: usize = 1024;

const _: () = assert!(HEADER_COPIES_AT_BYTES[0] + BLOCK_BYTES as u64 <= REPLICA_STATE_AT_BYTES);
const _: () = assert!(REPLICA_STATE_AT_BYTES + BLOCK_BYTES as u64 <= HEADER_COPIES_AT_BYTES[1]);
const _: () = assert!(HEADER_COPIES_AT_BYTES[1] < RING_AT_BYTES);

/// The version that this program reads: 1 named no store, and was in no release.
const VERSION: u32 = 2;

const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-RS");
const MAGIC_AT: usize = 0;
const CRC_AT: usize = 8;
const VERSION_AT: usize = 12;
const ROLE_AT: usize = 16;
const FLAGS_AT: usize = 17;
const PEER_LENGTH_AT: usize = 18;
const VOLUME_AT: usize = 20;
const SET_AT: usize = 24;
const EPOCH_AT: usize = 32;
const LIFE_AT: usize = 40;
const SEQUENCE_AT: usize = 48;
const BEGUN_AT: usize = 56;
const STORE_AT: usize = 64;
const PEER_AT: usize = STORE_AT + UUID_BYTES;
const _: () = assert!(PEER_AT + PEER_BYTES_MAX <= BLOCK_BYTES);

const MAY_GO_ON_ALONE: u8 = 1;
const WAS_IN_STEP: u8 = 2;
const WENT_ON_ALONE: u8 = 4;
const FLAGS: u8 = MAY_GO_ON_ALONE | WAS_IN_STEP | WENT_ON_ALONE;

/// What this copy of a bucket is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ReplicaRole {
    /// Takes changes and sends them to the peer.
    Primary,
    /// Holds a prefix of the primary's changes, with all that were acknowledged.
    Secondary,
    /// Holds a mixture: the comparison with the primary has not ended.
    Syncing,
    /// Was promoted, or replicates no more: takes changes, for itself.
    Alone,
    /// Another copy was promoted: takes no changes any more.
    Fenced,
}

impl ReplicaRole {
    const ALL: [(Self, u8); 5] = [
        (Self::Primary, 1),
        (Self::Secondary, 2),
        (Self::Syncing, 3),
        (Self::Alone, 4),
        (Self::Fenced, 5),
    ];

    fn number(self) -> u8 {
        let listed = Self::ALL.into_iter().find(|(role, _)| *role == self);
        listed.map_or(0, |(_, number)| number)
    }

    fn of_number(number: u8) -> Result<Self, FormatError> {
        let listed = Self::ALL.into_iter().find(|(_, listed)| *listed == number);
        let unknown = FormatError::field(Structure::ReplicaState, "role", number.into());
        listed.map(|(role, _)| role).ok_or(unknown)
    }
}

/// A volume among those of all stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeIdentity {
    /// UUID of its store.
    pub store: [u8; UUID_BYTES],
    /// Its number there.
    pub number: u32,
}

/// How a bucket is replicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// What this copy is.
    pub role: ReplicaRole,
    /// The volume that this was written to: neither a clone of it nor what another store has
    /// received from it is replicated.
    pub volume: VolumeIdentity,
    /// Both copies of a bucket have it, and no other bucket.
    pub set: u64,
    /// Records up to this one are in the volume.
    pub position: Position,
    /// The record of this number may be in the volume in part; equal to the position's, none is.
    pub begun: u64,
    /// A primary whose peer is away answers all the same.
    pub may_go_on_alone: bool,
    /// The peer has been in step: from then on what is acknowledged is on both.
    pub was_in_step: bool,
    /// Something was acknowledged since that the peer may not have.
    pub went_on_alone: bool,
    /// Of a primary, the address of its peer; of a fenced copy, who took over; else what is told.
    pub peer: String,
}

impl ReplicaState {
    /// The block for [`REPLICA_STATE_AT_BYTES`].
    ///
    /// # Panics
    /// When the peer's address is longer than [`PEER_BYTES_MAX`].
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        assert!(self.peer.len() <= PEER_BYTES_MAX, "an address of a peer is short");
        let mut block = [0; BLOCK_BYTES];
        let mut flags = 0;
        for (is_set, flag) in [
            (self.may_go_on_alone, MAY_GO_ON_ALONE),
            (self.was_in_step, WAS_IN_STEP),
            (self.went_on_alone, WENT_ON_ALONE),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        put_u64(&mut block, MAGIC_AT, MAGIC);
        put_u32(&mut block, VERSION_AT, VERSION);
        put_bytes(&mut block, ROLE_AT, &[self.role.number(), flags]);
        put_u16(&mut block, PEER_LENGTH_AT, self.peer.len() as u16);
        put_u32(&mut block, VOLUME_AT, self.volume.number);
        put_bytes(&mut block, STORE_AT, &self.volume.store);
        put_u64(&mut block, SET_AT, self.set);
        put_u64(&mut block, EPOCH_AT, self.position.epoch);
        put_u64(&mut block, LIFE_AT, self.position.life);
        put_u64(&mut block, SEQUENCE_AT, self.position.sequence);
        put_u64(&mut block, BEGUN_AT, self.begun);
        put_bytes(&mut block, PEER_AT, self.peer.as_bytes());
        let crc = crc32c(&block[VERSION_AT..]);
        put_u32(&mut block, CRC_AT, crc);
        block
    }

    /// What a block says; none: zeros, the bucket is not replicated.
    ///
    /// # Errors
    /// [`FormatError`] when the block holds anything else, newer or damaged.
    pub fn decode(block: &[u8]) -> Result<Option<Self>, FormatError> {
        let structure = Structure::ReplicaState;
        FormatError::at_least(structure, BLOCK_BYTES, block)?;
        let block = &block[..BLOCK_BYTES];
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let found = u64_at(block, MAGIC_AT);
        if found != MAGIC {
            return Err(FormatError::Magic { structure, expected: MAGIC, found });
        }
        let version = u32_at(block, VERSION_AT);
        if version > VERSION {
            let (supported, found) = (VERSION, version);
            return Err(FormatError::NewerVersion { structure, supported, found });
        }
        if version < VERSION {
            return Err(FormatError::field(structure, "version", version.into()));
        }
        FormatError::checksum(structure, u32_at(block, CRC_AT), crc32c(&block[VERSION_AT..]))?;
        let flags = block[FLAGS_AT];
        if flags & !FLAGS != 0 {
            return Err(FormatError::field(structure, "flags", flags.into()));
        }
        let peer_bytes = usize::from(u16_at(block, PEER_LENGTH_AT));
        let unreadable = FormatError::field(structure, "peer", peer_bytes as u64);
        if peer_bytes > PEER_BYTES_MAX {
            return Err(unreadable);
        }
        let peer = String::from_utf8(block[PEER_AT..PEER_AT + peer_bytes].to_vec());
        let position = Position {
            epoch: u64_at(block, EPOCH_AT),
            life: u64_at(block, LIFE_AT),
            sequence: u64_at(block, SEQUENCE_AT),
        };
        let begun = u64_at(block, BEGUN_AT);
        if begun != position.sequence && Some(begun) != position.sequence.checked_add(1) {
            return Err(FormatError::field(structure, "begun record", begun));
        }
        Ok(Some(Self {
            role: ReplicaRole::of_number(block[ROLE_AT])?,
            volume: VolumeIdentity {
                store: array_at(block, STORE_AT),
                number: u32_at(block, VOLUME_AT),
            },
            set: u64_at(block, SET_AT),
            position,
            begun,
            may_go_on_alone: flags & MAY_GO_ON_ALONE != 0,
            was_in_step: flags & WAS_IN_STEP != 0,
            went_on_alone: flags & WENT_ON_ALONE != 0,
            peer: peer.map_err(|_| unreadable)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{ReplicaRole, ReplicaState, VolumeIdentity};
    use crate::BLOCK_BYTES;
    use crate::replication::Position;

    #[test]
    fn a_state_comes_back_and_no_changed_byte_does() {
        let state = ReplicaState {
            role: ReplicaRole::Fenced,
            volume: VolumeIdentity { store: [3; 16], number: 7 },
            set: 8,
            position: Position { epoch: 9, life: 10, sequence: 11 },
            begun: 12,
            may_go_on_alone: true,
            was_in_step: false,
            went_on_alone: true,
            peer: "unix:/run/b.sock".to_owned(),
        };
        let block = state.encode();
        assert_eq!(ReplicaState::decode(&block).unwrap(), Some(state));
        for at in 0..BLOCK_BYTES {
            let mut changed = block;
            changed[at] ^= 1;
            assert!(ReplicaState::decode(&changed).is_err(), "byte {at}");
        }
        assert_eq!(ReplicaState::decode(&[0; BLOCK_BYTES]).unwrap(), None);
        assert!(ReplicaState::decode(&[0; 100]).is_err());
    }
}
