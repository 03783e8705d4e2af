//! `tamis:changed:NAME`: which parts of an export differ from a snapshot of its volume.
//!
//! One step of the engine's comparison answers one request, so a request that covers much is
//! answered in part, as the protocol allows, and its client asks on. A volume is flushed first:
//! what was acknowledged before is in what is compared. An export that does not change is compared
//! as it is.

use engine::{ChangedRange, Client, DifferenceRequest, OpenVolume, RequestError};

use crate::handshake::Changed;
use crate::wire::STATE_CHANGED;

/// Extents in one reply.
const EXTENTS_MAX: usize = 1024;

/// A run of a metadata context: how long, and its flags.
pub(crate) type Run = (u64, u32);

/// What is asked for.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    /// One run is enough, and none may end behind what was asked for.
    pub(crate) one: bool,
}

/// What differs from the snapshot of `context` in `volume`.
///
/// # Errors
/// [`RequestError`] of the engine; [`RequestError::OtherVolume`] when the snapshot, or the volume,
/// is not there any more.
pub(crate) fn runs_of(
    client: &Client,
    volume: &OpenVolume,
    context: &Changed<OpenVolume>,
    asked: Asked,
) -> Result<Vec<Run>, RequestError> {
    let gone = |name: String| RequestError::OtherVolume { name };
    let base = context.base.as_ref().ok_or_else(|| gone("the snapshot".to_owned()))?;
    let (from, to) = (base.name(), volume.name());
    if !volume.is_snapshot() {
        client.flush_blocking()?;
    }
    let lba = asked.offset_bytes / u64::from(volume.chunk_bytes());
    let step = client.ask(DifferenceRequest { from: from.clone(), to, lba })?;
    if step.numbers != [base.id().0, volume.id().0] {
        return Err(gone(from));
    }
    let end_bytes = asked.offset_bytes + asked.length_bytes;
    let seen_bytes = step.next_lba.map_or(end_bytes, |lba| lba * u64::from(step.chunk_bytes));
    Ok(runs(&step.ranges, asked, seen_bytes.min(end_bytes)))
}

/// Runs from where the request begins, up to `end_bytes`.
fn runs(ranges: &[ChangedRange], asked: Asked, end_bytes: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut at = asked.offset_bytes;
    let mut add = |length_bytes: u64, flags: u32| match runs.last_mut() {
        _ if length_bytes == 0 => true,
        Some((last_bytes, last_flags)) if *last_flags == flags => {
            *last_bytes += length_bytes;
            true
        }
        _ => {
            runs.push((length_bytes, flags));
            runs.len() < EXTENTS_MAX
        }
    };
    for range in ranges {
        let start = range.offset_bytes.clamp(at, end_bytes);
        let behind = (range.offset_bytes + range.length_bytes).clamp(start, end_bytes);
        if !add(start - at, 0) || !add(behind - start, STATE_CHANGED) {
            return runs;
        }
        at = behind;
    }
    add(end_bytes - at, 0);
    if asked.one {
        runs.truncate(1);
    }
    runs
}

#[cfg(test)]
mod tests {
    use engine::ChangedRange;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{Asked, EXTENTS_MAX, runs};

    proptest! {
        /// Byte for byte as a map of the ranges says, from where the request begins.
        #[test]
        fn runs_say_what_ranges_say(
            gaps in vec((0..4_u64, 1..4_u64, any::<bool>()), 0..20),
            (offset, length, one) in (0..60_u64, 1..60_u64, any::<bool>()),
        ) {
            let mut changed = vec![false; 240];
            let (mut at, mut ranges) = (0, Vec::new());
            for (gap, long, unmapped) in gaps {
                at += gap;
                ranges.push(ChangedRange { offset_bytes: at, length_bytes: long, unmapped });
                changed[at as usize..(at + long) as usize].fill(true);
                at += long;
            }
            // A step begins at the chunk in which the request does, and knows nothing before it.
            ranges.retain(|range| range.offset_bytes + range.length_bytes > offset);
            let asked = Asked { offset_bytes: offset, length_bytes: length, one };
            let found = runs(&ranges, asked, offset + length);
            let most = if one { 1 } else { 200 };
            prop_assert!((1..=most).contains(&found.len()));
            let mut at = offset as usize;
            let mut last = None;
            for (run_bytes, flags) in found {
                prop_assert!(last != Some(flags), "neighbours are one run");
                last = Some(flags);
                for byte in &changed[at..at + run_bytes as usize] {
                    prop_assert_eq!(*byte, flags == 1);
                }
                at += run_bytes as usize;
            }
            prop_assert!(one || at as u64 == offset + length);
        }
    }

    #[test]
    fn a_reply_has_an_end() {
        let of = |lba: u64| ChangedRange {
            offset_bytes: lba * 8192,
            length_bytes: 4096,
            unmapped: false,
        };
        let ranges: Vec<_> = (0..5000).map(of).collect();
        let asked = Asked { offset_bytes: 0, length_bytes: 1 << 30, one: false };
        assert_eq!(runs(&ranges, asked, 1 << 30).len(), EXTENTS_MAX);
    }
}
