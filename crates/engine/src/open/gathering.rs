//! Records that are replayed together: what all of them need is read in one go.
//!
//! What an earlier one changes may make a later one need another page than was read; every change
//! waits for its own pages when it is applied, so gathering decides nothing.

use format::record::Change;
use format::root::JournalPosition;
use journal::{Replay, ReplayRecord};
use mutants::mutant;

use crate::open::loading::Loading;
use crate::open::open_error::OpenError;

/// A record, decoded.
pub(crate) struct Gathered {
    pub(crate) sequence: u64,
    pub(crate) incarnation: u64,
    pub(crate) changes: Vec<Change>,
    /// Where the journal goes on behind it.
    pub(crate) end: JournalPosition,
}

/// The record that was read and did not go with those before it.
#[derive(Default)]
pub(crate) struct Gathering {
    next: Option<Gathered>,
}

impl Gathered {
    fn of(record: &ReplayRecord, end: JournalPosition) -> Result<Self, OpenError> {
        let changes = record.changes().map_err(OpenError::Record)?;
        let (sequence, incarnation) = (record.sequence, record.incarnation);
        Ok(Self { sequence, incarnation, changes, end })
    }

    /// Whether what the records behind it need may depend on it in more than their chunks' places.
    fn changes_volumes(&self) -> bool {
        self.changes.iter().any(|change| {
            !matches!(
                change,
                Change::Store { .. }
                    | Change::StoreAside { .. }
                    | Change::Carry { .. }
                    | Change::Map { .. }
                    | Change::Unmap { .. }
                    | Change::Move { .. }
                    | Change::Copy { .. }
                    | Change::DropCopy { .. }
                    | Change::Forget { .. }
                    | Change::OpenContainer { .. }
                    | Change::SealContainer { .. }
                    | Change::FreeContainer { .. }
            )
        })
    }
}

impl Loading {
    /// The records that are applied next: one, or several that are known to be durable and change
    /// nothing but chunks and where they are, so that what all of them need can be read together.
    pub(crate) fn gather(
        &mut self,
        replay: &mut Replay,
        gathering: &mut Gathering,
        durable_sequence: u64,
    ) -> Result<Vec<Gathered>, OpenError> {
        let (mut records, mut changes) = (Vec::new(), 0);
        loop {
            let next = match gathering.next.take() {
                Some(next) => next,
                None => match self.next_record(replay)? {
                    Some(record) => Gathered::of(&record, replay.position())?,
                    None => return Ok(records),
                },
            };
            let is_alone = next.sequence > durable_sequence || next.changes_volumes();
            if is_alone && !records.is_empty() {
                gathering.next = Some(next);
                return Ok(records);
            }
            changes += next.changes.len();
            records.push(next);
            if is_alone || changes >= self.batches.changes_of_records() {
                return Ok(records);
            }
        }
    }

    pub(crate) fn apply_gathered(&mut self, gathered: &[Gathered]) -> Result<(), OpenError> {
        let all: Vec<&Change> = gathered.iter().flat_map(|record| &record.changes).collect();
        for part in all.chunks(self.batches.changes()) {
            let held = self.read_for(part);
            for change in part.iter().filter(|change| !is_forgotten(change)) {
                self.apply(change)?;
            }
            self.state.store.release_pins(held.pins);
        }
        Ok(())
    }
}

/// What mutants leave out.
fn is_forgotten(change: &Change) -> bool {
    match change {
        Change::Unmap { .. } => mutant!(ForgetsUnmapAtReplay),
        Change::Move { .. } => mutant!(ForgetsMoveAtReplay),
        _ => false,
    }
}
