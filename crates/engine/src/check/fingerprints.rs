//! A check's look at the Hash-PBN table: every chunk is found by its fingerprint, and nothing else
//! is found.

use format::bucket;
use format::page::Page;
use format::units::{Fingerprint, Pbn, TreeId};
use tables::PinSet;

use crate::check::checker::Checker;
use crate::check::directories::start_of;
use crate::check::problem::{CheckProgress, Problem};
use crate::open::open_error::OpenError;
use crate::pages::wanted::Wanted;

/// Rounds of reads in which the look-ups of a leaf's entries are brought.
const LOOKUP_ROUNDS: usize = 4;

impl Checker {
    /// Compares the Hash-PBN table with the PBN-PBA table, both ways.
    pub(crate) fn check_fingerprints(
        &mut self,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<(), OpenError> {
        for tree in [TreeId::HASH_PBN, TreeId::YOUNG] {
            let total = self.loading.state.hash.leaves_end_of(tree);
            let mut outcome = Ok(());
            self.each_leaf(tree, |checker, leaf, page| {
                progress(CheckProgress { stage: "fingerprints", done: leaf, total });
                if outcome.is_ok() {
                    outcome = checker.check_entries(tree, leaf, page);
                }
            })?;
            outcome?;
        }
        for at in 0..self.known.len() {
            let pbn = at as u64;
            match (self.fingerprinted[at], self.asides[at]) {
                (true, true) => self.found(Problem::EntryOfAside { pbn }),
                // What was stored unindexed before the PBN-PBA table said so has none.
                (false, false) if self.known[at] && !self.geometry.detection.verify => {
                    self.found(Problem::ChunkWithoutEntry { pbn });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_entries(&mut self, tree: TreeId, leaf: u64, page: &Page) -> Result<(), OpenError> {
        let entries: Vec<(Fingerprint, Pbn)> = bucket::entries(page).collect();
        let held = self.bring_lookups(&entries)?;
        for (fingerprint, pbn) in &entries {
            let hash = &self.loading.state.hash;
            if tree == TreeId::HASH_PBN && !hash.belongs(leaf, fingerprint) {
                self.found(Problem::EntryMisplaced { bucket: leaf / 2, pbn: pbn.0 });
            }
            self.check_fingerprint(leaf, fingerprint, *pbn, held.is_some())?;
        }
        self.loading.state.store.release_pins(held.unwrap_or_default());
        Ok(())
    }

    /// Reads what the look-ups of these entries need, together; none if that is not all here then,
    /// because some of it is damaged.
    fn bring_lookups(
        &mut self,
        entries: &[(Fingerprint, Pbn)],
    ) -> Result<Option<PinSet>, OpenError> {
        // Which bucket is looked at may stand in a page that is read first.
        for _ in 0..LOOKUP_ROUNDS {
            let (mut wanted, mut here) = (Wanted::default(), true);
            for (fingerprint, _) in entries {
                let state = &mut self.loading.state;
                here &= matches!(state.want_lookup(fingerprint, &mut wanted), Ok(true));
                if self.geometry.detection.verify {
                    here &= matches!(state.want_standing(fingerprint, &mut wanted), Ok(true));
                }
            }
            if here {
                return Ok(Some(wanted.pins));
            }
            self.load(wanted.reads)?;
            self.loading.state.store.release_pins(wanted.pins);
        }
        Ok(None)
    }

    fn check_fingerprint(
        &mut self,
        leaf: u64,
        fingerprint: &Fingerprint,
        pbn: Pbn,
        is_here: bool,
    ) -> Result<(), OpenError> {
        let at = pbn.0 as usize;
        let wanted = match is_here {
            true => Wanted::default(),
            false => {
                self.loading.wait_for(|state, wanted| state.want_lookup(fingerprint, wanted))?
            }
        };
        let state = &self.loading.state;
        let looked_up = state.hash.lookup(&state.store, fingerprint);
        self.loading.state.store.release_pins(wanted.pins);
        // Entries that the merge has passed, or that younger ones took back, are not for look-ups.
        if looked_up != Some(pbn) {
            return Ok(());
        }
        let bucket = leaf / 2;
        if !self.known.get(at).copied().unwrap_or(false) {
            self.found(Problem::EntryWithoutChunk { bucket, pbn: pbn.0 });
            return Ok(());
        }
        if self.fingerprinted[at] && self.fingerprints[at] != start_of(fingerprint) {
            self.found(Problem::EntryMisplaced { bucket, pbn: pbn.0 });
        }
        self.fingerprinted[at] = true;
        self.fingerprints[at] = start_of(fingerprint);
        match self.geometry.detection.verify {
            true => self.check_alone(bucket, fingerprint, is_here),
            false => Ok(()),
        }
    }

    /// Where chunks may be without an entry, that one has none does not show that another hides it.
    fn check_alone(
        &mut self,
        bucket: u64,
        fingerprint: &Fingerprint,
        is_here: bool,
    ) -> Result<(), OpenError> {
        let wanted = match is_here {
            true => Wanted::default(),
            false => {
                self.loading.wait_for(|state, wanted| state.want_standing(fingerprint, wanted))?
            }
        };
        let state = &self.loading.state;
        let standing = state.hash.standing(&state.store, fingerprint);
        self.loading.state.store.release_pins(wanted.pins);
        for pbn in standing.into_iter().skip(1) {
            self.found(Problem::EntryMisplaced { bucket, pbn: pbn.0 });
        }
        Ok(())
    }
}
