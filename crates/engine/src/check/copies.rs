//! The walk of a check through the table of second copies. See [`crate::check()`].

use std::collections::{BTreeMap, BTreeSet};

use format::units::{Pba, Pbn, TreeId};
use tables::pbn_pba;

use crate::check::checker::{Checker, Kind, Stored};
use crate::check::problem::Problem;
use crate::open::open_error::OpenError;

impl Checker {
    /// Second copies are of stored chunks, and in other containers than these.
    pub(crate) fn check_copies(&mut self) -> Result<(), OpenError> {
        let mut copies = Vec::new();
        self.each_leaf(TreeId::COPIES, |_, leaf, page| {
            copies.extend(pbn_pba::entries(leaf, page).map(|(pbn, entry)| (pbn, entry.pba)));
        })?;
        let chunks: BTreeMap<Pbn, Pba> = self.places_of(&copies);
        for (pbn, pba) in copies {
            match chunks.get(&pbn) {
                None => self.found(Problem::CopyWithoutChunk { pbn: pbn.0 }),
                Some(chunk) if chunk.container == pba.container => {
                    self.found(Problem::CopyBesideChunk { pbn: pbn.0, container: pba.container.0 });
                }
                Some(_) => {}
            }
            self.stored.push(Stored { pba, pbn, kind: Kind::SecondCopy });
        }
        Ok(())
    }

    /// Where the chunks of these copies are.
    fn places_of(&self, copies: &[(Pbn, Pba)]) -> BTreeMap<Pbn, Pba> {
        let copied: BTreeSet<Pbn> = copies.iter().map(|(pbn, _)| *pbn).collect();
        let chunks = self.stored.iter().filter(|chunk| copied.contains(&chunk.pbn));
        chunks.map(|chunk| (chunk.pbn, chunk.pba)).collect()
    }
}
