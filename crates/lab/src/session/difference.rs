//! Where two versions differ, as an incremental backup asks it: nothing that differs is left out.

use engine::{DifferenceRequest, DifferenceStep, Reply};

use crate::failure::Broken;
use crate::oracle::{CHUNK_BYTES, Register, Value};
use crate::session::Session;
use crate::session::waiting::Waiting;
use crate::simulation::opening::strange;

/// What is told of chunks of a volume: whether each reads as zeros in the second version.
type Told = std::collections::BTreeMap<u64, bool>;

impl Session<'_> {
    /// Asks where `to` differs from `from`, once both are as they were written.
    pub(crate) fn differ(&mut self, from: u32, to: u32) -> Result<(), Broken> {
        self.come_to_rest()?;
        let name_of = |volume| self.oracle.volume(volume).map(|entry| entry.name.clone());
        let (Some(from_name), Some(to_name)) = (name_of(from), name_of(to)) else { return Ok(()) };
        if self.trouble.is_some() {
            return Ok(());
        }
        let (mut told, mut next) = (Told::new(), Some(0));
        while let Some(lba) = next {
            self.steps = 0;
            let names = (from_name.clone(), to_name.clone());
            let request = DifferenceRequest { from: names.0, to: names.1, lba };
            let done = self.done(Waiting::Plain, None);
            let tag = done.tag;
            self.opening.client.administer(request, done);
            match self.wait_for(tag)?.map_err(Broken::Request)? {
                Reply::Difference(step) => next = take_step(&step, lba, &mut told)?,
                other => return Err(strange("a difference", &other)),
            }
        }
        self.compare_told(from, to, &told)
    }

    fn compare_told(&self, from: u32, to: u32, told: &Told) -> Result<(), Broken> {
        let whole = 0..u64::MAX;
        let mut lbas = self.oracle.chunks(from, whole.clone());
        lbas.append(&mut self.oracle.chunks(to, whole));
        lbas.extend(told.keys());
        for lba in lbas {
            let [old, new] = [from, to].map(|volume| self.oracle.now(Register::Chunk(volume, lba)));
            let right = match told.get(&lba) {
                // A chunk that is stored twice may be told to differ from itself.
                Some(unmapped) => {
                    *unmapped == (*new == Value::Nothing) && (old != new || !unmapped)
                }
                None => old == new,
            };
            if !right {
                return Err(strange("a difference", &(from, to, lba, told.get(&lba))));
            }
        }
        Ok(())
    }
}

/// Notes what a step tells; where the next begins, which is further on.
fn take_step(step: &DifferenceStep, lba: u64, told: &mut Told) -> Result<Option<u64>, Broken> {
    let chunk_bytes = CHUNK_BYTES as u64;
    for range in &step.ranges {
        let end_bytes = range.offset_bytes + range.length_bytes;
        let lbas = range.offset_bytes / chunk_bytes..end_bytes.div_ceil(chunk_bytes);
        told.extend(lbas.map(|lba| (lba, range.unmapped)));
    }
    match step.next_lba {
        Some(next) if next <= lba => Err(strange("a step of a difference", &next)),
        next => Ok(next),
    }
}
