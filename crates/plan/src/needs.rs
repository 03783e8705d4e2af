//! What a demand takes: cores, memory bandwidth, memory, tables, what devices have to carry.

use format::directory::DIRECTORY_ENTRY_BYTES;
use serde::Serialize;

use crate::costs::{CHUNK_BYTES, StageCosts};
use crate::demand::Demand;
use crate::offload::Offload;

/// Of the tables, what is cached: FIDR's 2.8% (section 7.1), which our tables do with as well.
const CACHED_SHARE: f64 = 0.028;
/// The write buffer and the read cache, and the least that is cached.
const MEMORY_BYTES_MIN: f64 = 256.0 * 1024.0 * 1024.0;
/// An entry of the Hash-PBN table and its filter, of the PBN-PBA table, and of a directory; a
/// mapping. Rounded up from what `tamis estimate` counts.
const TABLE_BYTES_PER_UNIQUE: f64 = 64.0 + DIRECTORY_ENTRY_BYTES as f64;
const TABLE_BYTES_PER_MAPPED: f64 = 9.0;
/// Of a unique chunk, table pages written beside it: gathered entries (decision 018).
const TABLE_WRITES_PER_UNIQUE: f64 = 0.1;

/// What a demand takes. Bandwidths are bytes a second.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// Cores that are busy.
    pub cores: f64,
    /// Of them, the one thread that owns the tables: more than 1 cannot be had.
    pub core_threads: f64,
    /// Through DRAM.
    pub dram_bytes_per_second: f64,
    /// `--memory` of the server.
    pub memory_bytes: f64,
    /// Room for tables, when the store is full.
    pub tables_bytes: f64,
    /// Room for data, when the store is full.
    pub data_bytes: f64,
    /// Written to data devices.
    pub data_write_bytes_per_second: f64,
    /// Read from data devices.
    pub data_read_bytes_per_second: f64,
    /// Written to and read from the tables' device.
    pub tables_bytes_per_second: f64,
}

/// Of a demand, with a stage done elsewhere.
#[must_use]
pub fn needs(demand: &Demand, costs: &StageCosts, offload: Offload) -> Needs {
    let chunks = demand.bytes_per_second / CHUNK_BYTES;
    let unique = demand.unique_share();
    let table_pages = chunks * unique * TABLE_WRITES_PER_UNIQUE;
    let tables_bytes = tables_bytes(demand);
    let stored = demand.bytes_per_second * unique * demand.compressed_share;
    Needs {
        cores: chunks * core_ns(demand, costs, offload) / 1e9,
        core_threads: chunks * tables_ns(demand, costs, offload) / 1e9,
        dram_bytes_per_second: demand.bytes_per_second * dram_per_byte(demand, offload),
        memory_bytes: MEMORY_BYTES_MIN.max(tables_bytes * CACHED_SHARE),
        tables_bytes,
        data_bytes: demand.capacity_bytes
            * (1.0 - demand.duplicate_share)
            * demand.compressed_share,
        data_write_bytes_per_second: stored,
        data_read_bytes_per_second: demand.bytes_per_second
            * demand.read_share
            * demand.compressed_share,
        tables_bytes_per_second: 2.0 * table_pages * CHUNK_BYTES,
    }
}

/// Nanoseconds of cores for an average chunk.
pub(crate) fn core_ns(demand: &Demand, costs: &StageCosts, offload: Offload) -> f64 {
    let hashing = if offload.hashes() { 0.0 } else { demand.write_share() * costs.fingerprint_ns };
    let coding = match offload.compresses() {
        true => 0.0,
        false => demand.unique_share() * costs.compress_ns + demand.read_share * costs.expand_ns,
    };
    let door = costs.door_ns + costs.request_ns * demand.requests_per_chunk();
    let fetching = demand.read_share * demand.fetches_per_read() * costs.fetch_ns;
    door + fetching + hashing + coding + tables_ns(demand, costs, offload)
}

/// Nanoseconds of the thread that owns the tables for an average chunk.
pub(crate) fn tables_ns(demand: &Demand, costs: &StageCosts, offload: Offload) -> f64 {
    (costs.core_ns + demand.unique_share() * costs.core_new_ns) * offload.core_share()
}

/// Bytes through DRAM for a byte of a client, each time it is written or read there: from the NIC
/// and copied once (3), looked at to be hashed (1), compressed or expanded with the device's part.
pub(crate) fn dram_per_byte(demand: &Demand, offload: Offload) -> f64 {
    let (write, read) = (demand.write_share(), demand.read_share);
    let compressed = demand.compressed_share;
    let hashing = if offload.hashes() { 0.0 } else { write };
    let coding = match offload.compresses() {
        true => demand.unique_share() + read,
        false => demand.unique_share() * (1.0 + 2.0 * compressed) + read * (1.0 + 2.0 * compressed),
    };
    3.0 + hashing + coding
}

fn tables_bytes(demand: &Demand) -> f64 {
    let mapped = demand.capacity_bytes / CHUNK_BYTES;
    let unique = mapped * (1.0 - demand.duplicate_share);
    unique * TABLE_BYTES_PER_UNIQUE + mapped * TABLE_BYTES_PER_MAPPED
}

#[cfg(test)]
mod tests {
    use super::needs;
    use crate::{Demand, Offload, StageCosts};

    const DEMAND: Demand = Demand {
        bytes_per_second: 1e9,
        read_share: 0.25,
        duplicate_share: 0.5,
        compressed_share: 0.5,
        request_bytes: 65_536.0,
        capacity_bytes: 1e13,
    };

    #[test]
    fn twice_the_demand_takes_twice_the_cores_and_the_same_room() {
        let twice = Demand { bytes_per_second: 2e9, ..DEMAND };
        let [one, two] =
            [DEMAND, twice].map(|demand| needs(&demand, &StageCosts::CALIBRATED, Offload::None));
        assert!((two.cores / one.cores - 2.0).abs() < 1e-9);
        assert!((two.tables_bytes - one.tables_bytes).abs() < 1e-3);
        assert!((one.data_bytes - 2.5e12).abs() < 1.0);
    }

    #[test]
    fn what_is_done_elsewhere_takes_no_core_here() {
        let cores = |offload| needs(&DEMAND, &StageCosts::CALIBRATED, offload).cores;
        let none = cores(Offload::None);
        let alone = [Offload::Hashing, Offload::Compression, Offload::TableCache].map(cores);
        assert!(alone.iter().all(|cores| *cores < none), "{alone:?}");
        let saved: f64 = alone.iter().map(|cores| none - cores).sum();
        assert!((none - cores(Offload::All) - saved).abs() < 1e-9);
    }
}
