//! Lists that are filled and emptied again for every change of the tables.
//!
//! Most runs are of one chunk: a list of each would be as many allocations as there are chunks; and
//! to touch new memory for each group costs more than to fill it. The lists stay as long as the
//! longest run, some thousand entries, or record.

use format::record::Change;
use format::units::{Pba, Pbn};

use crate::write::slot::GROUP_SLOTS;

/// The lists, empty in between.
#[derive(Default)]
pub(crate) struct Scratch {
    /// What LBAs name, before a run is changed and while it is.
    pub(crate) mapped: Vec<Pbn>,
    pub(crate) replaced: Vec<Pbn>,
    /// What a group changes, of that what it maps, and the body of its record.
    pub(crate) changes: Vec<Change>,
    pub(crate) maps: Vec<Change>,
    pub(crate) body: Vec<u8>,
    /// Empty lists for runs of PBNs that are mapped.
    runs: Vec<Vec<Pbn>>,
    /// Where chunks are that get their first reference, or lose their last.
    pub(crate) revived: Vec<Pba>,
    pub(crate) died: Vec<Pba>,
}

impl Scratch {
    /// A list for a run that begins with this PBN.
    pub(crate) fn run_of(&mut self, first: Pbn) -> Vec<Pbn> {
        let mut run = self.runs.pop().unwrap_or_default();
        run.push(first);
        run
    }

    /// A list of changes without them; what they have of lists is kept.
    pub(crate) fn emptied(&mut self, mut changes: Vec<Change>) -> Vec<Change> {
        let runs = changes.drain(..).filter_map(|change| match change {
            Change::Map { pbns, .. } => Some(pbns),
            _ => None,
        });
        for mut run in runs {
            if self.runs.len() < GROUP_SLOTS {
                run.clear();
                self.runs.push(run);
            }
        }
        changes
    }
}
