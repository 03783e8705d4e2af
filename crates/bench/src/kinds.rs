//! What each kind of fingerprint takes of a core: many chunks a call, as workers make them, the
//! same in a keyed domain, and one a call; beside comparing two chunks, which kinds that are not
//! strong need on top.
//!
//! One thread over one mebibyte that the caches hold, so that the functions are measured and not
//! the memory. All kinds take turns in every round.

use std::fmt::{self, Display, Formatter};
use std::hint::black_box;

use format::detection::{Detection, FingerprintKind};
use format::domain::{DomainId, DomainSecret};
use reduce::{Fingerprinter, Fingerprinters};
use serde::Serialize;

use crate::args::Args;
use crate::machine::load_average;
use crate::passes;
use crate::samples::Samples;
use crate::source::{CHUNK_BYTES, REQUEST_BYTES, Source};

const SEED: u64 = 3;
/// Chunks that a worker gets at a time.
const BATCH_CHUNKS: usize = 64;
/// Times that the mebibyte is gone through in one measurement.
const PASSES: usize = 8;

/// Figures of all rounds, in nanoseconds of a core's clock per 4-KiB chunk.
#[derive(Debug, Serialize)]
pub(crate) struct Kinds {
    pub(crate) kinds: Vec<KindTimes>,
    /// Of one chunk with another one that is the same.
    pub(crate) compare_ns: Samples,
    /// Of the last minute, when a round began.
    pub(crate) load_average: Samples,
}

/// One kind's.
#[derive(Debug, Serialize)]
pub(crate) struct KindTimes {
    pub(crate) kind: &'static str,
    pub(crate) strong: bool,
    pub(crate) batch_ns: Samples,
    pub(crate) keyed_ns: Samples,
    pub(crate) one_ns: Samples,
}

/// All rounds.
pub(crate) fn measure(args: &Args) -> Kinds {
    let mut bytes = vec![0; REQUEST_BYTES];
    Source::new(1, SEED).copy_request(0, &mut bytes);
    let same = bytes.clone();
    let chunks: Vec<&[u8]> = bytes.chunks_exact(CHUNK_BYTES).collect();
    let twins: Vec<&[u8]> = same.chunks_exact(CHUNK_BYTES).collect();
    let new = |kind: FingerprintKind| KindTimes {
        kind: kind.name(),
        strong: kind.is_strong(),
        batch_ns: Samples::default(),
        keyed_ns: Samples::default(),
        one_ns: Samples::default(),
    };
    let mut figures = Kinds {
        kinds: FingerprintKind::ALL.map(new).into(),
        compare_ns: Samples::default(),
        load_average: Samples::default(),
    };
    for _ in 0..args.rounds {
        figures.load_average.push(load_average());
        for (kind, times) in FingerprintKind::ALL.into_iter().zip(&mut figures.kinds) {
            let fingerprinter = Fingerprinter::new(kind);
            times.batch_ns.push(ns_per_chunk(|| batches(fingerprinter, &chunks)));
            let keyed = keyed(kind);
            times.keyed_ns.push(ns_per_chunk(|| batches(keyed, &chunks)));
            times.one_ns.push(ns_per_chunk(|| one_by_one(fingerprinter, &chunks)));
        }
        figures.compare_ns.push(ns_per_chunk(|| {
            black_box(black_box(&chunks).iter().zip(&twins).filter(|(a, b)| a == b).count());
        }));
    }
    figures
}

/// That of a domain with a key; which one means nothing for the time.
fn keyed(kind: FingerprintKind) -> Fingerprinter {
    let secret = Some(DomainSecret([SEED as u8; 32]));
    let detection = Detection { kind, secret, ..Detection::default() };
    Fingerprinters::new(&detection).of(DomainId::new(1).unwrap_or_default())
}

fn batches(fingerprinter: Fingerprinter, chunks: &[&[u8]]) {
    let mut made = Vec::with_capacity(BATCH_CHUNKS);
    for batch in black_box(chunks).chunks(BATCH_CHUNKS) {
        made.clear();
        fingerprinter.batch(batch, &mut made);
        black_box(&made);
    }
}

fn one_by_one(fingerprinter: Fingerprinter, chunks: &[&[u8]]) {
    for chunk in black_box(chunks) {
        black_box(fingerprinter.one(chunk));
    }
}

fn ns_per_chunk(work: impl FnMut()) -> f64 {
    passes::ns_per_chunk(PASSES, work)
}

impl Display for Kinds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "One thread, chunks of 4 KiB in the caches; ns of a core's clock per chunk, median \
             (min to max).\n\n\
             | kind | strong | {BATCH_CHUNKS} a call | {BATCH_CHUNKS}, keyed | one a call |\n\
             |---|---|---|---|---|"
        )?;
        for KindTimes { kind, strong, batch_ns, keyed_ns, one_ns } in &self.kinds {
            let strong = if *strong { "yes" } else { "no" };
            writeln!(f, "| {kind} | {strong} | {batch_ns} | {keyed_ns} | {one_ns} |")?;
        }
        writeln!(f, "| comparing two chunks | | | | {} |", self.compare_ns)?;
        writeln!(f, "\nLoad average when a round began: {}.", self.load_average)
    }
}

#[cfg(test)]
mod tests {
    use super::measure;
    use crate::args::Args;
    use clap::Parser;
    use format::detection::FingerprintKind;

    /// Once, so that it never rots; a figure of it means nothing.
    #[test]
    fn every_kind_is_measured_and_shown() {
        let args = Args::parse_from(["bench", "kinds", "--rounds", "1"]);
        let shown = measure(&args).to_string();
        for kind in FingerprintKind::ALL {
            assert!(shown.contains(&format!("| {kind} | ")), "{shown}");
        }
    }
}
