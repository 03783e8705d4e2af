//! Gives back what was deleted: a version, piece by piece, behind everybody who waits for a device.
//!
//! A piece is a record; the last one drops the version from the catalog. A crash in between goes on
//! where it was, and so does the next opening after a close.

use format::record::Change;
use format::units::VolumeId;
use tables::{PageError, PinSet};

use crate::core::Core;
use crate::core::record::CHANGE_BYTES_MAX;
use crate::door::error::RequestError;
use crate::pages::wanted::Wanted;
use crate::part::Part;
use crate::volumes::deletion_pace::DeletionPace;
use crate::volumes::versions::PieceMax;

/// The version that is given back: which one, and how far, stands in the catalog.
#[derive(Default)]
pub(crate) struct GiveBack {
    /// Pages that the next piece needs.
    pins: PinSet,
    pace: DeletionPace,
}

/// What one step did.
enum Piece {
    /// Its pages are not here yet, or the journal is full.
    Waits,
    /// It is recorded, and more is left.
    Given,
    /// It was the last, and the version is gone.
    Last,
}

impl GiveBack {
    /// Gives back the next piece of the version whose turn it is; `clients_read`: a client's read
    /// is under way, to which a deletion gives way.
    pub(crate) fn advance(&mut self, core: &mut Core, clients_read: bool) -> bool {
        if core.stopped.is_some() {
            return false;
        }
        let Some(id) = core.deletion_going_on() else { return false };
        match self.give_back_piece(core, id, clients_read) {
            Ok(Piece::Waits) => false,
            Ok(Piece::Given) => {
                core.volumes.deletions.began(id);
                true
            }
            Ok(Piece::Last) => {
                core.volumes.deletions.ended(id);
                core.volumes.written.forget(id);
                true
            }
            Err(error) => core.stop_for(&error),
        }
    }

    fn give_back_piece(
        &mut self,
        core: &mut Core,
        id: VolumeId,
        clients_read: bool,
    ) -> Result<Piece, PageError> {
        if core.table_room.tables_are_behind(&core.state) || core.devices.journal_is_behind() {
            return Ok(Piece::Waits);
        }
        let room_is_wanted = core.room_is_wanted();
        let may_ask = self.pace.may_ask(&core.state.store, clients_read, room_is_wanted);
        let Some(reads) = may_ask else { return Ok(Piece::Waits) };
        let mut wanted = Wanted::default();
        let most = PieceMax { reads, ..core.table_room.most_of_piece() };
        let reached = core.state.want_give_back(id, u64::MAX, Some(most), &mut wanted);
        self.pace.note(&wanted.reads);
        core.hold_in(&mut self.pins, wanted);
        let Some(leaves) = reached? else { return Ok(Piece::Waits) };
        if !core.journal_has_room(2 * CHANGE_BYTES_MAX) {
            return Ok(Piece::Waits);
        }
        let piece = Change::GiveBack { id, leaves };
        if leaves < u64::MAX {
            core.record(&[piece]);
            return Ok(Piece::Given);
        }
        core.record(&[piece, Change::DropVolume { id }]);
        Ok(Piece::Last)
    }
}

impl Part for GiveBack {
    /// Nobody waits for an answer.
    fn fail(&mut self, _error: &RequestError) {}

    /// A close leaves the rest to the next opening.
    fn is_idle(&self, _core: &Core) -> bool {
        true
    }

    fn check(&self, _core: &Core) {}
}

#[cfg(test)]
mod tests {
    use format::record::Change;

    use super::GiveBack;
    use crate::door::opens::Opener;
    use crate::small_store::{MIB, beside, store};

    #[test]
    fn a_deleted_version_goes_piece_by_piece_and_no_further_once_a_close_was_asked_for() {
        let (mut engine, client) = store(Default::default());
        let volume = beside(&mut engine, &client, |client| {
            client.create_volume("v", 64 * MIB, false).unwrap();
            let volume = client.open_volume("v", Opener::new("a test", 0)).unwrap();
            client.write_at(&volume, 0, &[7; 8192]).unwrap();
            client.flush_blocking().unwrap();
            volume
        });
        let (mut give_back, core) = (GiveBack::default(), &mut engine.core);
        let id = core.volumes.get("v").unwrap().id;
        assert!(!give_back.advance(core, false), "nothing is deleted");
        core.record(&[Change::DeleteVolume { id }]);
        core.volumes.deletions.add(id);
        core.is_closing = true;
        assert!(!give_back.advance(core, false), "the next opening goes on with it");
        core.is_closing = false;
        while give_back.advance(core, false) {}
        assert!(core.volumes.deletions.count() == 0 && core.state.catalog.get(id).is_none());
        assert_eq!(core.state.totals.mapped_chunks, 0);
        drop(volume);
    }
}
