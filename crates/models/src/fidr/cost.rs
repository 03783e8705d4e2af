//! What a server with FIDR costs beside one without reduction (section 7.8, Figures 15 and 16).
//!
//! The paper says how it counts, and two savings: the SSDs that are left, and the reduction's part
//! of processors, FPGAs, DRAM and table SSDs. It does not say how much of an FPGA compression
//! takes; that is the one fitted parameter, and it serves both savings.

use crate::parameter::Parameter;
use crate::server::{Design, WRITES_PROFILED, core_cost};
use crate::units::{Bytes, Dollars, GbPerSecond};

use super::tables::{TableSizes, hash_pbn_bytes};

const SSD_DOLLARS_PER_GB: f64 = 0.5;
const DRAM_DOLLARS_PER_GB: f64 = 5.5;
const CPU_DOLLARS: f64 = 7000.0;
const CPU_CORES: f64 = 22.0;
const FPGA_DOLLARS: f64 = 7000.0;
/// The share of an FPGA that can be used.
const FPGA_USABLE: f64 = 0.7;
/// Of an FPGA, what reduction adds to a NIC of 8 GB/s (Table 4; the rest is any NIC's).
const NIC_UTILISATION: f64 = 0.107;
const NIC_GB_PER_SECOND: f64 = 8.0;
/// Of an FPGA, what the cache engine with the large tree takes: its URAM (Table 5).
const CACHE_ENGINE_UTILISATION: f64 = 0.788;
/// Of the Hash-PBN table, what is cached (section 7.1).
const CACHED_SHARE: f64 = 0.028;
/// How full buckets are, from 410 MB being 2.8% of the table for 1 TB (F13).
const BUCKET_FILL: f64 = 0.604;
const DUPLICATE_SHARE: f64 = 0.5;
const COMPRESSED_SHARE: f64 = 0.5;

/// What compressing takes of FPGAs.
pub static COMPRESSION_FPGA_DOLLARS: Parameter = Parameter::fitted(
    "FPGAs for compression",
    190.0,
    "$ for each GB/s of clients",
    "on the savings at 25 and 75 GB/s",
);

/// What reduction costs, part by part.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bill {
    /// Data SSDs without reduction.
    pub without: Dollars,
    /// Data SSDs that are left.
    pub data_ssds: Dollars,
    /// SSDs for tables.
    pub table_ssds: Dollars,
    /// DRAM for the table cache.
    pub dram: Dollars,
    /// Processors.
    pub cpus: Dollars,
    /// FPGAs: NIC, cache engine, compression.
    pub fpgas: Dollars,
}

impl Bill {
    /// With reduction.
    #[must_use]
    pub fn total(&self) -> Dollars {
        self.data_ssds + self.table_ssds + self.dram + self.cpus + self.fpgas
    }
}

/// Of data that clients see, half of it duplicates, compressed to half.
#[must_use]
pub fn bill(effective: Bytes, rate: GbPerSecond) -> Bill {
    let logical_gb = effective.gigabytes();
    let unique = Bytes((effective.0 as f64 * (1.0 - DUPLICATE_SHARE)) as u64);
    let sizes = TableSizes::of(effective, unique);
    let hash_pbn_gb = hash_pbn_bytes(unique).gigabytes() / BUCKET_FILL;
    let tables_gb = hash_pbn_gb + sizes.lba_pbn.gigabytes() + sizes.pbn_pba.gigabytes();
    let cores = rate * core_cost(Design::FOUR_UPDATES, &WRITES_PROFILED).total();
    let nics = rate.0 / NIC_GB_PER_SECOND * NIC_UTILISATION;
    let fpgas = (nics + CACHE_ENGINE_UTILISATION) / FPGA_USABLE;
    Bill {
        without: Dollars(logical_gb * SSD_DOLLARS_PER_GB),
        data_ssds: Dollars(unique.gigabytes() * COMPRESSED_SHARE * SSD_DOLLARS_PER_GB),
        table_ssds: Dollars(tables_gb * SSD_DOLLARS_PER_GB),
        dram: Dollars(hash_pbn_gb * CACHED_SHARE * DRAM_DOLLARS_PER_GB),
        cpus: Dollars(cores.0 / CPU_CORES * CPU_DOLLARS),
        fpgas: Dollars(fpgas * FPGA_DOLLARS + rate.0 * COMPRESSION_FPGA_DOLLARS.value),
    }
}

/// What reduction saves, in percent of the cost without.
#[must_use]
pub fn saving_percent(effective: Bytes, rate: GbPerSecond) -> f64 {
    let bill = bill(effective, rate);
    100.0 * (bill.without - bill.total()).0 / bill.without.0
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Dollars, GbPerSecond, bill, saving_percent};

    #[test]
    fn half_duplicates_at_half_the_size_leave_a_quarter_of_the_ssds() {
        let bill = bill(Bytes(500_000_000_000_000), GbPerSecond(25.0));
        assert_eq!(bill.without, Dollars(250_000.0));
        assert_eq!(bill.data_ssds, Dollars(62_500.0));
    }

    #[test]
    fn more_data_at_the_same_rate_saves_more() {
        let saved = |terabytes: u64| {
            saving_percent(Bytes(terabytes * 1_000_000_000_000), GbPerSecond(75.0))
        };
        assert!(saved(100) < saved(250) && saved(250) < saved(500) && saved(500) < saved(1000));
    }
}
