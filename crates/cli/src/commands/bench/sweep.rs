//! `tamis bench detect --sweep`: what comparisons read ahead, and what that spares them.
//!
//! EaD's prefetch cache has a trigger m and a distance n; an engine has them as options of the
//! opened store (`ComparingAhead`). Each store here has others, over the same chunks. What is not
//! held in memory and was not read ahead is read when it is compared with.

use engine::{ComparingAhead, FingerprintKind};
use serde::Serialize;

use super::report::mib_per_second;
use super::stores::{InStore, Way};
use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

const KIB: u32 = 1 << 10;
/// The distance at the engine's trigger, and the trigger at its distance. An engine with 256 MiB of
/// memory reads no further than 2 MiB.
const AHEADS: [(usize, u32); 8] = [
    (32, 0),
    (32, 256 * KIB),
    (32, 512 * KIB),
    (32, 1024 * KIB),
    (32, 2048 * KIB),
    (4, 1024 * KIB),
    (16, 1024 * KIB),
    (128, 1024 * KIB),
];

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Sweep {
    pub(super) data_chunks: u64,
    pub(super) stores: Vec<Swept>,
}

/// One store.
#[derive(Debug, Serialize)]
pub(super) struct Swept {
    trigger_chunks: usize,
    distance_bytes: u32,
    #[serde(flatten)]
    store: InStore,
}

/// The stores to make.
pub(super) fn ways() -> impl Iterator<Item = Way> + Clone {
    AHEADS.into_iter().map(|(run_min, bytes)| {
        let ahead = ComparingAhead { run_min, bytes };
        Way { kind: FingerprintKind::EccCrc64, verify: true, ahead }
    })
}

impl Swept {
    pub(super) fn new(way: Way, store: InStore) -> Self {
        let ComparingAhead { run_min, bytes } = way.ahead;
        Self { trigger_chunks: run_min, distance_bytes: bytes, store }
    }
}

impl Sweep {
    pub(super) fn text(&self) -> String {
        let mut table = Table::with_heading([
            ("TRIGGER", Align::Right),
            ("DISTANCE", Align::Right),
            ("WRITTEN", Align::Right),
            ("CORE", Align::Right),
            ("EQUAL", Align::Right),
            ("HELD", Align::Right),
            ("AHEAD", Align::Right),
            ("CHUNKS READ", Align::Right),
            ("READS", Align::Right),
            ("READ AHEAD", Align::Right),
        ]);
        for Swept { trigger_chunks, distance_bytes, store } in &self.stores {
            table.row([
                human_count(*trigger_chunks as u64),
                human_bytes(u64::from(*distance_bytes)),
                format!("{:.0} MiB/s", mib_per_second(store.chunks_per_second)),
                format!("{:.0} ns", store.core_ns_per_chunk),
                human_count(store.cases.equal),
                human_count(store.comparison_chunks_held),
                human_count(store.comparison_chunks_ahead),
                human_count(store.comparison_chunks),
                human_count(store.comparison_reads),
                human_bytes(store.ahead_bytes),
            ]);
        }
        format!(
            "{} of data in chunks of 4 KiB, a store with ecc-crc64 --verify each\n\n{table}\n\
             trigger: chunks of a group that lie in one container; distance: what is read\n\
             behind them then. Stored chunks to compare with were held in memory, or read\n\
             ahead, or read by the reads; those on their way to the disk are in none of these\n",
            human_bytes(self.data_chunks << 12),
        )
    }
}
