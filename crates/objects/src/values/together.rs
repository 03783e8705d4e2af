//! Writes several short values that one batch will name: one piece of a region, one request.
//!
//! A value that is put alone costs a request to the engine and an entry of the batch for its
//! region. Together they cost one of each.

use format::objects::CHUNK_BYTES;
use format::objects::record::{INLINE_BYTES_MAX, Value};

use super::Values;
use super::error::ValueError;
use super::writer::{Claim, VALUES, push_segment, runs_in};
use segments::SegmentPolicy;

/// Longest value that is written together with others.
pub const TOGETHER_BYTES_MAX: usize = 64 << 10;

/// Values that are written and that nobody names yet; [`super::ValueChanges::name_together`] takes
/// them. Dropped, they are abandoned.
#[must_use]
pub struct WrittenTogether {
    values: Vec<Value>,
    claim: Claim,
}

impl WrittenTogether {
    pub(super) fn into_parts(self) -> (Vec<Value>, Claim) {
        (self.values, self.claim)
    }
}

impl Values {
    /// Writes values of at most [`TOGETHER_BYTES_MAX`] bytes each, cut as `policy` says.
    ///
    /// # Errors
    /// [`ValueError`]; what was written is abandoned.
    ///
    /// # Panics
    /// When one is longer.
    pub fn write_together(
        &self,
        policy: SegmentPolicy,
        values: &[&[u8]],
    ) -> Result<WrittenTogether, ValueError> {
        let mut ready = self.backing.buffers.take();
        ready.clear();
        let written = values.iter().filter(|value| value.len() > INLINE_BYTES_MAX);
        // Growing step by step would copy the values once more.
        ready
            .reserve(written.map(|value| value.len().next_multiple_of(CHUNK_BYTES as usize)).sum());
        // Where each value's segments end in `ready`, and their lengths.
        let mut cuts: Vec<Option<(u64, Vec<u64>)>> = Vec::with_capacity(values.len());
        for value in values {
            assert!(value.len() <= TOGETHER_BYTES_MAX, "a value of {} bytes", value.len());
            if value.len() <= INLINE_BYTES_MAX {
                cuts.push(None);
                continue;
            }
            let lengths = cut_into(&mut ready, policy, value);
            cuts.push(Some((ready.len() as u64 / CHUNK_BYTES, lengths)));
        }
        let chunks = ready.len() as u64 / CHUNK_BYTES;
        let lease = match chunks {
            0 => None,
            _ => Some(self.backing.regions.lease(chunks)?),
        };
        let start = lease.as_ref().map_or(0, |lease| lease.carved().start);
        if chunks > 0 {
            self.backing.volume.write_vectored_at(&[(start * CHUNK_BYTES, &ready[..])], VALUES)?;
        }
        let mut next = start;
        let placed = cuts.into_iter().zip(values).map(|(cut, value)| match cut {
            None => Value::Inline(value.to_vec()),
            Some((end, lengths)) => {
                let chunks = next..start + end;
                next = chunks.end;
                let entries = runs_in(&lengths, chunks);
                assert!(entries.len() <= self.backing.limits.list_entries, "a short value's list");
                Value::List(entries)
            }
        });
        Ok(WrittenTogether {
            values: placed.collect(),
            claim: lease.map_or(Claim::Inline, Claim::Region),
        })
    }
}

/// Appends the segments of a value, each padded to whole chunks; returns their lengths.
fn cut_into(ready: &mut Vec<u8>, policy: SegmentPolicy, value: &[u8]) -> Vec<u64> {
    let (mut cutter, mut rest, mut lengths) = (policy.cutter(), value, Vec::new());
    while !rest.is_empty() {
        let Some(length) = cutter.cut(rest, true) else {
            panic!("a cutter has an answer at the end");
        };
        let (segment, behind) = rest.split_at(length);
        push_segment(ready, segment);
        lengths.push(length as u64);
        rest = behind;
    }
    lengths
}
