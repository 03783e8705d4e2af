//! What the tables will be asked for, prefetched.
//!
//! Entries of many chunks lie in as many places that no cache of the processor holds. Asked one by
//! one each is waited for; touched side by side before, they come together.

use format::record::Change;
use format::units::{Pbn, TreeId};
use tables::{lba_pbn, pbn_pba};

use crate::state::State;

impl State {
    /// Prefetches, side by side, what applying these changes will look for one by one.
    pub(crate) fn touch(&self, changes: &[Change]) {
        self.hash.touch_inserts(changes.iter().filter_map(|change| match change {
            Change::Store { fingerprint, .. } | Change::Forget { fingerprint, .. } => {
                Some(fingerprint)
            }
            _ => None,
        }));
    }

    /// The same for what is looked up of these chunks in the table of PBNs.
    pub(crate) fn touch_places(&mut self, pbns: impl Iterator<Item = Pbn>) {
        let mut sought = std::mem::take(&mut self.scratch.mapped);
        sought.clear();
        sought.extend(pbns);
        pbn_pba::touch(&mut self.store, &sought);
        self.scratch.mapped = sought;
    }

    /// The same for what these changes map, and for what is mapped there now: in the map, and in
    /// the table of PBNs.
    pub(crate) fn touch_mapped(&mut self, maps: &[Change]) {
        let runs = || {
            maps.iter().filter_map(|change| match change {
                Change::Map { volume, first, pbns } => Some((*volume, *first, pbns)),
                _ => None,
            })
        };
        let mut pbns = std::mem::take(&mut self.scratch.mapped);
        pbns.clear();
        let lbas = runs().map(|(volume, first, _)| (TreeId::volume(volume), first));
        lba_pbn::see_all(&mut self.store, lbas, &mut pbns);
        pbns.extend(runs().flat_map(|(.., run)| run).filter(|pbn| !pbn.is_none()));
        pbn_pba::touch(&mut self.store, &pbns);
        self.scratch.mapped = pbns;
    }
}
