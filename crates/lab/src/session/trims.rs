//! A session's trims; and what the oracle notes of them.
//!
//! Where room is short, what is left of chunks that a trim covers in part waits for some, and the
//! chunks that it covers whole do not. A trim is advice: if no room comes, its ends stay as they
//! are. So until it is answered they may be zeros or not, whatever else of it is done; then they
//! are looked at.

use engine::OpenVolume;

use crate::failure::Broken;
use crate::oracle::Register;
use crate::range::Range;
use crate::session::doubt::Changed;
use crate::session::waiting::{Waiting, Why};
use crate::session::{SECTOR_BYTES, Session};
use crate::simulation::trouble::Asked;
use crate::workload::SECTORS;

impl Session<'_> {
    pub(crate) fn trim(&mut self, range: Range, durable: bool) -> Result<(), Broken> {
        let Some((handle, range)) = self.clip(range) else { return Ok(()) };
        let (whole, ends) = whole_and_ends(range);
        if self.shape.tight && !ends.is_empty() && !handle.read_only() {
            return self.trim_that_waits(&handle, range, whole, ends, durable);
        }
        let refused = handle.read_only();
        let changed = if refused { Changed::default() } else { self.note(range, None) };
        let covers = (durable && !refused).then(|| self.oracle.written());
        let waiting =
            if refused { Waiting::Refused(Why::ReadOnly) } else { Waiting::Change(changed) };
        self.send_trim(&handle, range, durable, waiting, covers);
        Ok(())
    }

    fn send_trim(
        &mut self,
        handle: &OpenVolume,
        range: Range,
        durable: bool,
        waiting: Waiting,
        covers: Option<usize>,
    ) -> u64 {
        let (offset_bytes, length_bytes) = (range.first * SECTOR_BYTES, range.count * SECTOR_BYTES);
        let done = self.done(waiting, covers);
        let tag = done.tag;
        self.opening.client.trim(handle, offset_bytes, length_bytes, durable, done);
        tag
    }

    fn trim_that_waits(
        &mut self,
        handle: &OpenVolume,
        range: Range,
        whole: Range,
        ends: Vec<Range>,
        durable: bool,
    ) -> Result<(), Broken> {
        let before = self.oracle.written();
        let mut in_doubt = Vec::new();
        for end in ends {
            let changed = self.note(end, None);
            self.oracle.doubt(&changed);
            in_doubt.extend(changed.registers);
        }
        let changed = self.note(whole, None);
        let covers = durable.then(|| self.oracle.written());
        let tag = self.send_trim(handle, range, durable, Waiting::Plain, covers);
        match self.wait_for(tag)? {
            Ok(reply) => self.take_change(&changed, &reply)?,
            Err(error) => {
                in_doubt.extend(&changed.registers);
                return self.fail_naming(&error, Asked::Part, &in_doubt, &changed);
            }
        }
        in_doubt.into_iter().try_for_each(|register| self.look_at_end(register, before))
    }

    /// The end of a trim that was answered well is what it was after the first `before` effects, or
    /// trimmed.
    fn look_at_end(&mut self, register: Register, before: usize) -> Result<(), Broken> {
        let Register::Chunk(volume, lba) = register else { return Ok(()) };
        let held = match self.read_chunk(volume, lba) {
            Err(Broken::Request(error)) => {
                return self.fail(&error, Self::read_of(volume, lba), &Changed::default());
            }
            held => held?,
        };
        if held != *self.oracle.now(register) && held != *self.oracle.at(register, before) {
            return Err(self.wrong(volume, lba));
        }
        let before = self.oracle.written();
        self.oracle.write(register, held);
        let sure = Changed { registers: vec![register], before, whole: true };
        self.oracle.note_answered(&sure);
        Ok(())
    }
}

/// The chunks that a range covers whole, and what it covers of others.
fn whole_and_ends(range: Range) -> (Range, Vec<Range>) {
    let Range { volume, first, count } = range;
    let end = first + count;
    let of = |first: u64, end: u64| Range { volume, first, count: end.saturating_sub(first) };
    let head = of(first, first.next_multiple_of(SECTORS).min(end));
    let tail = of((end / SECTORS * SECTORS).max(head.first + head.count), end);
    let whole = of(head.first + head.count, tail.first);
    (whole, [head, tail].into_iter().filter(|end| end.count > 0).collect())
}
