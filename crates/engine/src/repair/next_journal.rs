//! Where the journal goes on after a repair.
//!
//! Behind everything that any record ever said: no record there is can be taken for the next one.
//! Where the ring was lost nobody knows what its records said. So a ring that takes its place
//! begins with a record of its own, the one before the new roots, and as far behind what is known
//! as no ring ever comes. If the lost one is found later and put back, that record is missing, and
//! none of its own has a number near ([`crate::open::whose_journal`]).

use disk::IoError;
use format::record::Settled;
use format::root::JournalPosition;
use format::units::Zone;
use journal::{JournalWrite, Writer};
use mutants::mutant;

use crate::devices::Devices;
use crate::open::open_error::OpenError;
use crate::repair::survey::Survey;

/// Records left out behind a journal that was lost.
const RECORDS_SKIPPED: u64 = 1 << 32;

/// The journal from a repair on.
pub(crate) struct NextJournal {
    /// What the new roots say.
    pub(crate) position: JournalPosition,
    /// In a new ring, the record before them.
    first: Vec<JournalWrite>,
}

impl NextJournal {
    /// Behind what a survey found; `incarnation` is of the repair. Nothing is written yet.
    pub(crate) fn of(survey: &Survey, is_lost: bool, incarnation: u64) -> Result<Self, OpenError> {
        let Survey { geometry, base, other, .. } = survey;
        let journals = other.iter().map(|other| &other.journal).chain([&base.journal]);
        let last = journals.map(|journal| journal.end.sequence.max(journal.behind.last_sequence));
        let sequence = last.max().unwrap_or(0) + 1;
        if !is_lost {
            let JournalPosition { offset_bytes, sequence: left_out, .. } = base.journal.end;
            let sequence = if mutant!(RepairsAroundJournal) { left_out } else { sequence };
            let position = JournalPosition { sequence, offset_bytes, previous_crc: 0 };
            return Ok(Self { position, first: Vec::new() });
        }
        let sequence = sequence.saturating_add(RECORDS_SKIPPED);
        let begin = JournalPosition { sequence, ..JournalPosition::default() };
        let (journal_bytes, uuid) = (geometry.journal_bytes, geometry.uuid);
        let mut writer = Writer::resume(journal_bytes, uuid, begin, 0, incarnation);
        let first = writer.append(&[], Settled::default()).map_err(|_| OpenError::JournalFull)?;
        Ok(Self { position: writer.next(), first: first.writes })
    }

    /// Writes what has to stand before the new roots, durably. It comes behind them: until then the
    /// store is refused as it was.
    pub(crate) fn begin(self, devices: &mut Devices) -> Result<(), IoError> {
        if self.first.is_empty() {
            return Ok(());
        }
        for JournalWrite { offset_bytes, buf } in self.first {
            devices.write_now(Zone::Journal, offset_bytes, buf)?;
        }
        devices.sync_now(Zone::Journal)
    }
}
