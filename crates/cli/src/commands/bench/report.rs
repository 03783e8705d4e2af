//! What was found, for programs and for people.

use estimate::{CHUNK_BYTES, DetectedBy};
use serde::Serialize;

use super::latency::Latency;
use super::stores::{InStore, STORE_MEMORY_BYTES};
use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

const MIB: f64 = (1 << 20) as f64;

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) files: u64,
    pub(super) data_chunks: u64,
    pub(super) zero_chunks: u64,
    /// Whether all data had room in --memory.
    pub(super) whole: bool,
    pub(super) unreadable_files: u64,
    /// In memory, on one thread.
    pub(super) kinds: Vec<DetectedBy>,
    /// In stores; none with --in-memory.
    pub(super) stores: Vec<InStore>,
}

impl Report {
    pub(super) fn text(&self) -> String {
        let part = if self.whole { "" } else { "; what is behind did not fit into --memory" };
        let mut text = format!(
            "{} of data in chunks of 4 KiB, {} of zeros{part}\n\n{}\n\
             times are of one thread, per chunk that is not zeros; collisions are chunks\n\
             whose fingerprint was that of other bytes; index is what one of all entries\n\
             takes of memory for each chunk. auto chooses among blake3, xxh3 and nothing\n\
             by what the last 4 MiB had; sampling is CA-FTL's: both lose duplicates, no\n\
             store has them\n",
            human_bytes(self.data_chunks << 12),
            human_bytes(self.zero_chunks << 12),
            self.in_memory(),
        );
        if !self.stores.is_empty() {
            text.push_str(&format!(
                "\n{}\n\
                 a store each, {} of memory, a write for each chunk: us until half of the\n\
                 writes, and all but a hundredth, are in the write buffer (accepted), or durable\n\
                 with 1 or 32 under way; times of core and workers are per chunk\n\n{}\n\
                 look-ups: denied by the filters, absent from the table, equal or different\n\
                 where bytes are compared; read is what came from the device for that\n",
                self.speeds(),
                human_bytes(STORE_MEMORY_BYTES),
                self.cases(),
            ));
        }
        text
    }

    fn in_memory(&self) -> Table {
        let mut table = Table::with_heading([
            ("KIND", Align::Left),
            ("DUPLICATES", Align::Right),
            ("LOST", Align::Right),
            ("COLLISIONS", Align::Right),
            ("HASHED", Align::Right),
            ("INDEX", Align::Right),
            ("FINGERPRINT", Align::Right),
            ("LOOK-UP", Align::Right),
            ("COMPARE", Align::Right),
            ("TOTAL", Align::Right),
            ("A CORE", Align::Right),
        ]);
        for by in &self.kinds {
            let ns = |ns: f64| format!("{ns:.0} ns");
            table.row([
                by.kind.to_owned(),
                human_count(by.duplicates),
                human_count(by.lost),
                human_count(by.collisions),
                human_count(by.hashes),
                format!("{:.1} B", by.index_bytes_per_chunk),
                ns(by.fingerprint_ns),
                ns(by.lookup_ns),
                if by.strong { "believed".to_owned() } else { ns(by.compare_ns) },
                ns(by.total_ns),
                format!("{:.0} MiB/s", mib_per_second(1e9 / by.total_ns.max(1.0))),
            ]);
        }
        table
    }

    fn speeds(&self) -> Table {
        let mut table = Table::with_heading([
            ("WAY", Align::Left),
            ("WRITTEN", Align::Right),
            ("CORE", Align::Right),
            ("WORKERS", Align::Right),
            ("ACCEPTED P50", Align::Right),
            ("P99", Align::Right),
            ("DURABLE 1 P50", Align::Right),
            ("P99", Align::Right),
            ("DURABLE 32 P50", Align::Right),
            ("P99", Align::Right),
        ]);
        let us = |latency: Option<Latency>, of: fn(Latency) -> f64| {
            latency.map_or_else(|| "-".to_owned(), |latency| format!("{:.1}", of(latency)))
        };
        for store in &self.stores {
            let p50 = |latency| us(latency, |latency| latency.p50_us);
            let p99 = |latency| us(latency, |latency| latency.p99_us);
            table.row([
                store.way.clone(),
                format!("{:.0} MiB/s", mib_per_second(store.chunks_per_second)),
                format!("{:.0} ns", store.core_ns_per_chunk),
                format!("{:.0} ns", store.workers_ns_per_chunk),
                p50(store.acknowledged),
                p99(store.acknowledged),
                p50(store.durable_depth_1),
                p99(store.durable_depth_1),
                p50(store.durable_depth_32),
                p99(store.durable_depth_32),
            ]);
        }
        table
    }

    fn cases(&self) -> Table {
        let mut table = Table::with_heading([
            ("WAY", Align::Left),
            ("DUPLICATES", Align::Right),
            ("DENIED", Align::Right),
            ("ABSENT", Align::Right),
            ("EQUAL", Align::Right),
            ("DIFFERENT", Align::Right),
            ("CHUNKS READ", Align::Right),
            ("READS", Align::Right),
            ("MEMORY", Align::Right),
        ]);
        for store in &self.stores {
            let cases = &store.cases;
            table.row([
                store.way.clone(),
                human_count(store.duplicates),
                human_count(cases.denied),
                human_count(cases.absent),
                human_count(cases.equal),
                human_count(cases.differ),
                human_count(store.comparison_chunks),
                human_count(store.comparison_reads),
                human_bytes(store.memory_bytes),
            ]);
        }
        table
    }
}

/// So many chunks a second.
pub(super) fn mib_per_second(chunks_per_second: f64) -> f64 {
    chunks_per_second * CHUNK_BYTES as f64 / MIB
}
