//! What a demand costs with reduction and without.

use serde::Serialize;

use crate::demand::Demand;
use crate::needs::Needs;
use crate::offload::Offload;
use crate::prices::Prices;

const GIGABYTE: f64 = 1e9;

/// In dollars.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Bill {
    /// Devices that hold everything as it is.
    pub without_dollars: f64,
    /// Devices that hold what is left.
    pub data_dollars: f64,
    /// Devices that hold tables.
    pub tables_dollars: f64,
    /// Memory.
    pub memory_dollars: f64,
    /// Cores.
    pub cores_dollars: f64,
    /// Accelerators.
    pub accelerators_dollars: f64,
    /// All with reduction.
    pub with_dollars: f64,
    /// What is saved of the price without, in percent; negative where reduction costs more.
    pub saved_percent: f64,
}

/// Of a demand and what it needs.
#[must_use]
pub fn bill(demand: &Demand, needs: &Needs, prices: &Prices, offload: Offload) -> Bill {
    let ssd = |bytes: f64| bytes / GIGABYTE * prices.ssd_dollars_per_gb;
    let rate = demand.bytes_per_second / GIGABYTE;
    let is = |used: bool, dollars: f64| if used { dollars } else { 0.0 };
    let hashed = rate * demand.write_share() * prices.hashing_dollars_per_gb_per_second;
    let compressed = rate * prices.compression_dollars_per_gb_per_second;
    let accelerators = is(offload.hashes(), hashed)
        + is(offload.compresses(), compressed)
        + is(offload.finds_buckets(), prices.table_cache_dollars);
    let mut bill = Bill {
        without_dollars: ssd(demand.capacity_bytes),
        data_dollars: ssd(needs.data_bytes),
        tables_dollars: ssd(needs.tables_bytes),
        memory_dollars: needs.memory_bytes / GIGABYTE * prices.dram_dollars_per_gb,
        cores_dollars: needs.cores * prices.core_dollars,
        accelerators_dollars: accelerators,
        with_dollars: 0.0,
        saved_percent: 0.0,
    };
    bill.with_dollars = bill.data_dollars
        + bill.tables_dollars
        + bill.memory_dollars
        + bill.cores_dollars
        + bill.accelerators_dollars;
    if bill.without_dollars > 0.0 {
        bill.saved_percent = 100.0 * (1.0 - bill.with_dollars / bill.without_dollars);
    }
    bill
}

#[cfg(test)]
mod tests {
    use super::bill;
    use crate::{Demand, Offload, Prices, StageCosts, needs};

    #[test]
    fn what_cannot_be_reduced_costs_more_with_reduction() {
        let demand = Demand {
            bytes_per_second: 1e9,
            read_share: 0.0,
            duplicate_share: 0.0,
            compressed_share: 1.0,
            request_bytes: 65_536.0,
            capacity_bytes: 1e13,
        };
        let saved = |demand: &Demand| {
            let needs = needs(demand, &StageCosts::CALIBRATED, Offload::None);
            bill(demand, &needs, &Prices::default(), Offload::None).saved_percent
        };
        assert!(saved(&demand) < 0.0);
        assert!(saved(&Demand { duplicate_share: 0.5, ..demand }) > 30.0);
    }
}
