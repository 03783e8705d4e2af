//! The secondary's side: it does records in their order, and says what it has.
//!
//! Each record is a write of the volume between two of the state block, so after a crash the block
//! names the last record that is whole, and says whether the next one may be there in part. That
//! one is done again over what it left, if the primary has it; else all is compared.

use std::sync::Arc;

use format::objects::replica::{REPLICA_STATE_AT_BYTES, ReplicaRole, ReplicaState, VolumeIdentity};
use format::replication::{Change, Message, PROTOCOL_VERSION, Position};
use format::{BLOCK_BYTES, FormatError};
use mutants::mutant;
use store::{Durability, RequestError, WriteOptions};
use thiserror::Error;

use crate::ring::Ring;
use crate::state_block::write_state;
use crate::volume::ReplicaVolume;

/// Longest range that is compared at once.
pub(crate) const COMPARED_BYTES_MAX: u32 = 1 << 20;

/// Why a secondary goes on no longer with this connection.
#[derive(Debug, Error)]
pub enum SecondaryError {
    /// The store could not do it.
    #[error("the store of the replica failed: {0}")]
    Volume(#[from] RequestError),
    /// A message cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The primary says what none does.
    #[error("the primary sends {0}")]
    Protocol(&'static str),
}

/// Why a copy was not promoted.
#[derive(Debug, Error)]
pub enum PromoteError {
    /// The store could not do it.
    #[error(transparent)]
    Volume(#[from] RequestError),
    /// It is no replica.
    #[error("it is no replica")]
    NoReplica,
    /// It holds a mixture.
    #[error("its comparison with the primary has not ended, so it holds a mixture")]
    Mixture,
}

/// The other copy of a bucket.
pub struct Secondary {
    volume: Arc<dyn ReplicaVolume>,
    state: ReplicaState,
    ring: Ring,
    /// Whether the primary of this connection has said where records begin.
    has_begun: bool,
}

impl Secondary {
    /// The copy in a volume whose block says `state`.
    #[must_use]
    pub fn new(volume: Arc<dyn ReplicaVolume>, state: ReplicaState, ring_bytes_max: u64) -> Self {
        let ring = Ring::new(state.position.sequence, ring_bytes_max);
        Self { volume, state, ring, has_begun: false }
    }

    /// What the block of a copy says that holds nothing yet.
    #[must_use]
    pub fn empty_state(set: u64, volume: VolumeIdentity) -> ReplicaState {
        ReplicaState {
            role: ReplicaRole::Syncing,
            volume,
            set,
            position: Position::default(),
            begun: 0,
            may_go_on_alone: false,
            was_in_step: false,
            went_on_alone: false,
            peer: String::new(),
        }
    }

    /// What it is, and how far.
    #[must_use]
    pub fn state(&self) -> &ReplicaState {
        &self.state
    }

    /// Answers a primary that begins.
    #[must_use]
    pub fn welcome(&mut self, version: u16, set: u64, primary: &Position) -> Message {
        self.has_begun = false;
        let epoch = self.state.position.epoch;
        let refused = |reason: &str| Message::Refused { epoch, reason: reason.to_owned() };
        if version != PROTOCOL_VERSION {
            return refused("the servers speak different protocols: use the same release for both");
        }
        if set != self.state.set {
            return refused("the bucket there is a replica of another");
        }
        let is_overtaken = epoch > primary.epoch && !mutant!(WelcomesTheOvertaken);
        match self.state.role {
            _ if is_overtaken => refused("the replica was promoted, and has taken over"),
            ReplicaRole::Secondary | ReplicaRole::Syncing => Message::Welcome {
                position: self.state.position,
                is_consistent: self.state.role == ReplicaRole::Secondary && self.is_whole(primary),
            },
            ReplicaRole::Alone if mutant!(WelcomesTheOvertaken) => {
                Message::Welcome { position: self.state.position, is_consistent: true }
            }
            ReplicaRole::Primary | ReplicaRole::Alone | ReplicaRole::Fenced => {
                refused("the bucket there is no replica: demote it first")
            }
        }
    }

    /// Whether no record is here in part, but for one that this primary sends again.
    fn is_whole(&self, primary: &Position) -> bool {
        let ReplicaState { position, begun, .. } = &self.state;
        let has_next = primary.is_beside(position) && primary.sequence > position.sequence;
        *begun == position.sequence || has_next
    }

    /// Does what the primary says; the answers are in their order.
    ///
    /// # Errors
    /// [`SecondaryError`]; the connection is to be ended.
    pub fn take(&mut self, message: Message) -> Result<Vec<Message>, SecondaryError> {
        match message {
            Message::Want { sequence } if !self.has_begun => Ok(self.give_back(sequence)),
            Message::Begin { position, compares } => {
                self.begin(position, compares)?;
                Ok(Vec::new())
            }
            Message::Record { sequence, change } if self.has_begun => self.record(sequence, change),
            Message::Flush { sequence } if self.has_begun => {
                if sequence > self.state.position.sequence {
                    return Err(SecondaryError::Protocol("a flush of what it did not send"));
                }
                self.volume.flush()?;
                Ok(vec![Message::Durable { sequence: self.state.position.sequence }])
            }
            _ => Err(SecondaryError::Protocol("a message out of turn")),
        }
    }

    fn give_back(&self, behind: u64) -> Vec<Message> {
        let last = self.state.position.sequence;
        if self.ring.last() != last || !self.ring.covers(behind) {
            return vec![Message::Given { sequence: behind }];
        }
        let record = |sequence| {
            let change = self.ring.get(sequence)?.clone();
            Some(Message::Record { sequence, change })
        };
        let records = (behind + 1..=last).filter_map(record);
        records.chain([Message::Given { sequence: last }]).collect()
    }

    fn begin(&mut self, position: Position, compares: bool) -> Result<(), SecondaryError> {
        if compares {
            // Before the first change: from here on the volume is a mixture.
            if !mutant!(HidesMixture) {
                self.state.role = ReplicaRole::Syncing;
            }
            self.ring.restart(position.sequence);
            self.state.begun = position.sequence;
        } else if self.state.role != ReplicaRole::Secondary
            || position.sequence != self.state.position.sequence
        {
            return Err(SecondaryError::Protocol("records that do not follow"));
        }
        self.state.position = position;
        write_state(&*self.volume, &self.state)?;
        self.has_begun = true;
        Ok(())
    }

    fn record(&mut self, sequence: u64, change: Change) -> Result<Vec<Message>, SecondaryError> {
        if sequence != self.state.position.sequence + 1 {
            return Err(SecondaryError::Protocol("a record that does not follow"));
        }
        self.state.begun = sequence;
        write_state(&*self.volume, &self.state)?;
        let mut next = self.state.clone();
        next.position.sequence = sequence;
        let mut answers = Vec::new();
        match &change {
            Change::Compare { at_bytes, length_bytes, fingerprint } => {
                if !self.is_equal(*at_bytes, *length_bytes, fingerprint)? {
                    let (at_bytes, length_bytes) = (*at_bytes, *length_bytes);
                    answers.push(Message::Differs { at_bytes, length_bytes });
                }
            }
            Change::InStep => next.role = ReplicaRole::Secondary,
            change => apply(&*self.volume, change)?,
        }
        write_state(&*self.volume, &next)?;
        if change == Change::InStep {
            self.volume.flush()?;
        }
        self.state = next;
        self.ring.push(change);
        answers.push(Message::Received { sequence });
        Ok(answers)
    }

    fn is_equal(
        &self,
        at_bytes: u64,
        length_bytes: u32,
        fingerprint: &[u8; 32],
    ) -> Result<bool, SecondaryError> {
        if length_bytes > COMPARED_BYTES_MAX {
            return Err(SecondaryError::Protocol("a range that is too long to be compared"));
        }
        let mut bytes = store::zeroed(length_bytes as usize)?;
        match self.volume.read_at(at_bytes, &mut bytes) {
            // It is written anew.
            Err(RequestError::Damaged { .. }) => Ok(false),
            read => {
                read?;
                Ok(blake3::hash(&bytes).as_bytes() == fingerprint)
            }
        }
    }

    /// Becomes a bucket of its own, of a higher epoch; durable when this returns.
    ///
    /// # Errors
    /// [`PromoteError`]; it is as it was.
    pub fn promote(&mut self) -> Result<&ReplicaState, PromoteError> {
        match self.state.role {
            ReplicaRole::Secondary => {}
            ReplicaRole::Syncing if mutant!(PromotesMixture) => {}
            ReplicaRole::Syncing => return Err(PromoteError::Mixture),
            ReplicaRole::Primary | ReplicaRole::Alone | ReplicaRole::Fenced => {
                return Err(PromoteError::NoReplica);
            }
        }
        let mut next = self.state.clone();
        next.role = ReplicaRole::Alone;
        next.position.epoch += 1;
        write_state(&*self.volume, &next)?;
        self.volume.flush()?;
        self.has_begun = false;
        self.state = next;
        Ok(&self.state)
    }
}

/// Does a change of the volume; of what is compared there is nothing to do.
pub(crate) fn apply(volume: &dyn ReplicaVolume, change: &Change) -> Result<(), SecondaryError> {
    match change {
        Change::Write { unindexed, writes } => {
            let all: Vec<(u64, &[u8])> =
                writes.iter().map(|(at_bytes, bytes)| (*at_bytes, &bytes[..])).collect();
            if all.iter().any(|(at_bytes, bytes)| names_state(*at_bytes, bytes.len() as u64)) {
                return Err(SecondaryError::Protocol("a write of the state block"));
            }
            let options =
                WriteOptions { durability: Durability::Acknowledged, unindexed: *unindexed };
            Ok(volume.write_vectored_at(&all, options)?)
        }
        Change::Trim { at_bytes, length_bytes } => {
            if names_state(*at_bytes, *length_bytes) {
                return Err(SecondaryError::Protocol("a trim of the state block"));
            }
            Ok(volume.trim(*at_bytes, *length_bytes)?)
        }
        Change::Compare { .. } | Change::InStep => Ok(()),
    }
}

fn names_state(at_bytes: u64, length_bytes: u64) -> bool {
    let end_bytes = at_bytes.saturating_add(length_bytes);
    at_bytes < REPLICA_STATE_AT_BYTES + BLOCK_BYTES as u64 && end_bytes > REPLICA_STATE_AT_BYTES
}
