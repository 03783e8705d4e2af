//! A session's copies between volumes: what is mapped, the oracle copies chunk by chunk, in
//! ascending order, for a crash may keep what is in front.

use engine::{OpenVolume, RequestError};

use crate::failure::Broken;
use crate::oracle::Register;
use crate::range::Range;
use crate::script::Verb;
use crate::session::doubt::Changed;
use crate::session::waiting::{Waiting, Why};
use crate::session::{SECTOR_BYTES, Session};
use crate::simulation::opening::strange;
use crate::simulation::trouble::Trouble;
use crate::workload::SECTORS;

impl Session<'_> {
    /// Copies the whole chunks that lie in both volumes.
    pub(crate) fn copy(&mut self, verb: &Verb) -> Result<(), Broken> {
        let Verb::Copy { from, from_first, to, to_first, count, durable } = *verb else {
            return Ok(());
        };
        let from = Range { volume: from, first: from_first, count };
        let to = Range { volume: to, first: to_first, count };
        let in_doubt = self.trouble.is_some_and(Trouble::harms_tables);
        if in_doubt || self.stopped || self.oracle.has_doubts(from.volume) {
            return Ok(());
        }
        let Some(((source, from), (target, to))) = self.clip(from).zip(self.clip(to)) else {
            return Ok(());
        };
        let chunks = from.count.min(to.count) / SECTORS;
        let (from_lba, to_lba) = (from.first / SECTORS, to.first / SECTORS);
        if chunks == 0 {
            return Ok(());
        }
        let send = |session: &mut Self, waiting, covers| {
            let done = session.done(waiting, covers);
            let tag = done.tag;
            let [from_bytes, to_bytes, length_bytes] =
                [from_lba, to_lba, chunks].map(|lba| lba * SECTORS * SECTOR_BYTES);
            let client = &session.opening.client;
            client.copy_range(&source, from_bytes, &target, to_bytes, length_bytes, durable, done);
            tag
        };
        let overlaps = from.volume == to.volume && from_lba.abs_diff(to_lba) < chunks;
        if let Some(why) = refusal(&source, &target, overlaps) {
            send(self, Waiting::Refused(why), None);
            return Ok(());
        }
        let quota = self.oracle.volume(to.volume).and_then(|entry| entry.quota);
        let mapped = quota.map(|_| self.oracle.mapped(to.volume));
        let changed = self.note_copy((from.volume, from_lba), (to.volume, to_lba), chunks);
        let covers = durable.then(|| self.oracle.written());
        if !self.shape.tight && !self.slowed && quota.is_none() {
            send(self, Waiting::Change(changed), covers);
            return Ok(());
        }
        let exceeds = quota.zip(mapped).is_some_and(|(quota, mapped)| {
            mapped <= quota && self.oracle.mapped(to.volume) > quota
        });
        let tag = send(self, Waiting::Plain, covers);
        self.settle_copy(tag, to.volume, &changed, quota.map(|_| exceeds))
    }

    /// Notes what a copy changes, chunk by chunk.
    fn note_copy(&mut self, from: (u32, u64), to: (u32, u64), chunks: u64) -> Changed {
        let before = self.oracle.written();
        let of = |(volume, lba): (u32, u64)| self.oracle.chunks(volume, lba..lba + chunks);
        let known = of(from).into_iter().map(|lba| lba - from.1);
        let mut known: Vec<u64> = known.chain(of(to).into_iter().map(|lba| lba - to.1)).collect();
        known.sort_unstable();
        known.dedup();
        let mut registers = Vec::new();
        for at in known {
            let value = self.oracle.now(Register::Chunk(from.0, from.1 + at)).clone();
            let register = Register::Chunk(to.0, to.1 + at);
            if *self.oracle.now(register) != value {
                self.oracle.write(register, value);
                registers.push(register);
            }
        }
        // What fails for want of a page is no reason to write no more.
        Changed { registers, before, whole: false }
    }

    /// Waits for a copy that may fail for want of space, or at a quota: then the store itself says
    /// how much of it was done. A quota that it `exceeds` stops it, and so may one that counts what
    /// is yet to be given back.
    fn settle_copy(
        &mut self,
        tag: u64,
        volume: u32,
        changed: &Changed,
        exceeds: Option<bool>,
    ) -> Result<(), Broken> {
        match self.wait_for(tag)? {
            Ok(reply) if exceeds == Some(true) && !self.oracle.has_doubts(volume) => {
                Err(strange("a copy beyond a quota", &reply))
            }
            Ok(reply) => self.take_change(changed, &reply),
            Err(RequestError::QuotaExceeded { .. }) if self.oracle.has_doubts(volume) => {
                self.oracle.doubt(changed);
                Ok(())
            }
            Err(RequestError::NoSpace) if self.shape.tight => {
                self.refused += 1;
                self.keep_taken(changed)
            }
            Err(RequestError::QuotaExceeded { .. }) if exceeds.is_some() => {
                self.refused += 1;
                self.keep_taken(changed)
            }
            Err(error) => self.fail(&error, changed.asked(), changed),
        }
    }
}

/// Why a copy must be refused.
fn refusal(source: &OpenVolume, target: &OpenVolume, overlaps: bool) -> Option<Why> {
    if target.read_only() {
        return Some(Why::ReadOnly);
    }
    if source.domain() != target.domain() {
        return Some(Why::OtherDomain);
    }
    overlaps.then_some(Why::Overlap)
}
