//! What an accelerator was given of a group, and what it gave back (decision 077).
//!
//! It is there from the moment that the group's batches are submitted until the look-up has said
//! which chunks are new. Payloads of chunks that are not go with it.

use accelerator::{Offload, Verdict};
use format::units::{Compression, Fingerprint};
use reduce::Payload;

use crate::write::slot::{Plan, Slot};

/// Of a group's slots, by their numbers.
pub(crate) struct Offloaded {
    /// The slots of each job, rising.
    batches: Vec<Vec<u16>>,
    /// What each was taken for; None where there is no chunk.
    verdicts: Vec<Option<Verdict>>,
    /// What each was compressed to.
    payloads: Vec<Option<Payload>>,
}

impl Offloaded {
    /// Nothing has come back; `verdicts` has as many as the group has slots.
    pub(crate) fn new(verdicts: Vec<Option<Verdict>>, batches: Vec<Vec<u16>>) -> Self {
        let payloads = vec![None; verdicts.len()];
        Self { batches, verdicts, payloads }
    }

    /// Takes the results of one job; how many chunks turned out to be zeros.
    pub(crate) fn take_results(
        &mut self,
        job: usize,
        slots: &mut [Slot],
        fingerprints: Vec<Option<Fingerprint>>,
        payloads: Vec<Option<Payload>>,
    ) -> u64 {
        let mut zeros = 0;
        let mut payloads = payloads.into_iter();
        let batch = std::mem::take(&mut self.batches[job]);
        for (at, fingerprint) in batch.into_iter().map(usize::from).zip(fingerprints) {
            self.payloads[at] = payloads.next().flatten();
            if slots[at].take_fingerprint(fingerprint) {
                // Nobody guesses what zeros are: they are neither stored nor duplicates.
                self.verdicts[at] = None;
                zeros += 1;
            }
        }
        zeros
    }

    /// Tells how each guess came out.
    pub(crate) fn judge(&self, plans: &[Plan], chunk_bytes: u32, offload: &mut Offload) {
        for (verdict, plan) in self.verdicts.iter().zip(plans) {
            if let Some(verdict) = *verdict {
                offload.judge(verdict, plan.stores().is_some(), chunk_bytes as usize);
            }
        }
    }

    /// What a slot's chunk was compressed to. None where it was not, or with another codec than it
    /// is stored with: a switch came between.
    pub(crate) fn take_payload(&mut self, slot: usize, with: Compression) -> Option<Payload> {
        self.payloads[slot].take().filter(|payload| payload.compression() == with)
    }
}
