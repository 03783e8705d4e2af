//! `auto`: a way to find duplicates that is chosen anew for every window, by what was found in the
//! one before. No store has it; this is what it would win and lose (decision 020).
//!
//! ```text
//!            duplicates in the window
//!   many     a quarter or more      hash first    BLAKE3, believed
//!   some                            code first    XXH3, and the bytes compared
//!   few      less than a 64th       none          stored unseen
//! ```
//!
//! A window is judged by an eighth of its chunks, which is hashed first whatever the way is. It is
//! chosen by content: what is in it when it first comes is in it when it comes again, so the share
//! of duplicates in it is that of all, whatever was done with the others. So it comes back when
//! duplicates do. What was stored unseen is in no table and is not found; nor is, by one way, what
//! was entered by the other: to have both, each chunk would have to be hashed twice.

use std::ops::ControlFlow;
use std::time::Duration;

use format::detection::FingerprintKind;

use crate::data_chunks::CHUNK_BYTES;
use crate::detected::{BATCH_CHUNKS, Counted, DetectedBy, timed};
use crate::index::Index;

/// Batches after which the way is chosen anew: 4 MiB.
const WINDOW_BATCHES: u64 = 16;
/// Of every so many chunks one judges.
const JUDGING: u64 = 8;
/// Fewer in a window change nothing.
const JUDGES_MIN: u64 = 16;
/// One duplicate in so many chunks is few; one in so many is many.
const FEW: u64 = 64;
const MANY: u64 = 4;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    HashFirst,
    CodeFirst,
    None,
}

/// What the judging chunks of a window have shown so far.
#[derive(Debug, Default)]
struct Window {
    batches: u64,
    judges: u64,
    duplicates: u64,
}

impl Window {
    /// The way for the next window, if this one was `way`'s.
    fn next(&self, way: Way) -> Way {
        match self.duplicates {
            _ if self.judges < JUDGES_MIN => way,
            duplicates if duplicates * FEW < self.judges => Way::None,
            duplicates if duplicates * MANY < self.judges => Way::CodeFirst,
            _ => Way::HashFirst,
        }
    }
}

/// What it finds in `chunks`; `watch` hears of each batch.
pub(crate) fn detect_by_auto(
    chunks: &[[u8; CHUNK_BYTES]],
    mut watch: impl FnMut(u64) -> ControlFlow<()>,
) -> Option<DetectedBy> {
    let mut by_hash = Index::new(FingerprintKind::Blake3, chunks.len());
    let mut by_code = Index::new(FingerprintKind::Xxh3, 0);
    let (mut way, mut window) = (Way::HashFirst, Window::default());
    let (mut counted, mut choosing) = (Counted::default(), Duration::ZERO);
    for (batch, first) in chunks.chunks(BATCH_CHUNKS).zip((0..).step_by(BATCH_CHUNKS)) {
        let numbered = (first..).zip(batch);
        let (judges, others): (Vec<_>, Vec<_>) =
            timed(&mut choosing, || numbered.partition(|(_, chunk)| is_judge(chunk)));
        let [judges, others] = [judges, others].map(numbers);
        let judged = by_hash.find(chunks, &judges);
        counted.add(judges.len(), judged);
        match way {
            Way::HashFirst => counted.add(others.len(), by_hash.find(chunks, &others)),
            Way::CodeFirst => counted.add(others.len(), by_code.find(chunks, &others)),
            Way::None => {}
        }
        window.batches += 1;
        window.judges += judges.len() as u64;
        window.duplicates += judged.duplicates;
        if window.batches == WINDOW_BATCHES {
            way = window.next(way);
            window = Window::default();
        }
        watch(batch.len() as u64).continue_value()?;
    }
    counted.index_bytes = by_hash.entry_bytes() + by_code.entry_bytes();
    let mut times = by_hash.times;
    times.iter_mut().zip(by_code.times).for_each(|(sum, time)| *sum += time);
    times[1] += choosing;
    Some(DetectedBy::new("auto", false, chunks.len(), counted, times))
}

fn numbers(chunks: Vec<(usize, &[u8; CHUNK_BYTES])>) -> Vec<usize> {
    chunks.into_iter().map(|(number, _)| number).collect()
}

/// Whether a chunk is in the eighth that judges: by a few of its bytes, from all over it.
fn is_judge(chunk: &[u8; CHUNK_BYTES]) -> bool {
    let words = chunk.as_chunks::<8>().0.iter().step_by(64);
    let mixed = words.fold(0_u64, |sum, word| {
        (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    mixed >> 32 < (1 << 32) / JUDGING
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::{CHUNK_BYTES, JUDGES_MIN, Way, Window, detect_by_auto};
    use crate::detected::DetectedBy;

    /// Chunks of a window.
    const WINDOW: u64 = 1024;

    fn chunk(number: u64) -> [u8; CHUNK_BYTES] {
        let mut state = number;
        std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            (state >> 56) as u8
        })
    }

    fn detect(numbers: impl Iterator<Item = u64>) -> DetectedBy {
        let chunks: Vec<_> = numbers.map(chunk).collect();
        detect_by_auto(&chunks, |_| ControlFlow::Continue(())).unwrap()
    }

    #[test]
    fn the_share_of_duplicates_decides() {
        let next = |judges, duplicates, way| Window { batches: 16, judges, duplicates }.next(way);
        assert_eq!(next(1024, 15, Way::HashFirst), Way::None);
        assert_eq!(next(1024, 16, Way::None), Way::CodeFirst);
        assert_eq!(next(1024, 255, Way::HashFirst), Way::CodeFirst);
        assert_eq!(next(1024, 256, Way::None), Way::HashFirst);
        assert_eq!(next(JUDGES_MIN - 1, 9, Way::None), Way::None);
    }

    #[test]
    fn where_much_repeats_nothing_is_lost() {
        let found = detect((0..8 * WINDOW).map(|number| number / 2));
        assert_eq!((found.duplicates, found.hashes), (4 * WINDOW, 8 * WINDOW));
        assert_eq!(found.compare_ns, 0.0);
    }

    #[test]
    fn where_nothing_repeats_an_eighth_is_looked_at_and_it_comes_back() {
        let fresh = 8 * WINDOW;
        let found = detect(0..fresh);
        let looked_at = WINDOW..WINDOW + 7 * WINDOW / 6;
        assert!(found.duplicates == 0 && looked_at.contains(&found.hashes), "{found:?}");
        // Twice more: the second time finds the first window and the judges, and enters the rest,
        // which the third time finds.
        let found = detect((0..fresh).chain(0..fresh).chain(0..fresh));
        let exact = 2 * fresh;
        let lost = exact - found.duplicates;
        assert!((fresh / 2..fresh).contains(&lost), "{lost} of {exact}");
    }

    #[test]
    fn where_some_repeat_the_bytes_are_compared() {
        // Every tenth chunk is one of the same window.
        let numbers =
            (0..6 * WINDOW).map(|number| if number % 10 == 9 { number - 9 } else { number });
        let found = detect(numbers);
        assert!(found.compare_ns > 0.0 && found.hashes == 6 * WINDOW, "{found:?}");
        // One may lie in the window before, which was hashed first.
        assert!(found.duplicates >= 6 * WINDOW / 10 - 1 && found.collisions == 0, "{found:?}");
    }
}
