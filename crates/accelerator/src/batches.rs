//! Chunks of one verdict that go to the device together.
//!
//! A batch wants either hashing alone or both kinds of units, so that the scheduler can choose
//! between them.

use crate::predictor::Verdict;

/// Chunks that are submitted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What all of them are taken for.
    pub verdict: Verdict,
    /// Their numbers, rising.
    pub chunks: Vec<u16>,
}

/// Lays chunks into batches of at most `most`, those of the first chunk's batch first.
#[must_use]
pub fn batches(guessed: impl IntoIterator<Item = (u16, Verdict)>, most: usize) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    // Where in it the last batch of each verdict is.
    let mut open = [None; 2];
    for (chunk, verdict) in guessed {
        let place = &mut open[verdict as usize];
        let has_room = |at: &usize| batches[*at].chunks.len() < most.max(1);
        let at = place.filter(has_room).unwrap_or_else(|| {
            batches.push(Batch { verdict, chunks: Vec::with_capacity(most) });
            batches.len() - 1
        });
        *place = Some(at);
        batches[at].chunks.push(chunk);
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::batches;
    use crate::predictor::Verdict;

    fn verdict(is_new: bool) -> Verdict {
        if is_new { Verdict::New } else { Verdict::Duplicate }
    }

    proptest! {
        #[test]
        fn every_chunk_is_in_one_batch_of_its_verdict(
            news in prop::collection::vec(any::<bool>(), 0..600),
            most in 1_usize..100,
        ) {
            let guessed = (0..).zip(news.iter().map(|&is_new| verdict(is_new)));
            let batches = batches(guessed.clone(), most);
            let in_batch = |batch: &super::Batch| {
                let verdict = batch.verdict;
                batch.chunks.iter().map(move |&chunk| (chunk, verdict)).collect::<Vec<_>>()
            };
            let mut found: Vec<_> = batches.iter().flat_map(in_batch).collect();
            found.sort_by_key(|(chunk, _)| *chunk);
            prop_assert_eq!(found, guessed.collect::<Vec<_>>());
            for of in [Verdict::New, Verdict::Duplicate] {
                let lengths = batches.iter().filter(|batch| batch.verdict == of);
                let lengths: Vec<_> = lengths.map(|batch| batch.chunks.len()).collect();
                let full = lengths.split_last().map_or(&[][..], |(_, full)| full);
                prop_assert!(full.iter().all(|&length| length == most), "one may be short");
                prop_assert!(lengths.iter().all(|&length| (1..=most).contains(&length)));
            }
        }
    }
}
