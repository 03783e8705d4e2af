//! The most that a machine carries of a kind of demand, and what stops it.

use serde::Serialize;

use crate::costs::{CHUNK_BYTES, StageCosts};
use crate::demand::Demand;
use crate::needs::{core_ns, dram_per_byte, tables_ns};
use crate::offload::Offload;

/// The cores that a plan goes through.
pub const CORES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// What a machine has besides cores; None where it is no bound.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// DRAM bandwidth.
    pub dram_bytes_per_second: Option<f64>,
    /// What data devices write.
    pub data_write_bytes_per_second: Option<f64>,
    /// What data devices read.
    pub data_read_bytes_per_second: Option<f64>,
}

/// What is saturated first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The cores.
    Cores,
    /// The one thread that owns the tables.
    CoreThread,
    /// DRAM bandwidth.
    Dram,
    /// Writing to data devices.
    DataWrites,
    /// Reading from them.
    DataReads,
}

impl Bottleneck {
    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::CoreThread => "the tables' thread",
            Self::Dram => "DRAM",
            Self::DataWrites => "device writes",
            Self::DataReads => "device reads",
        }
    }
}

/// What a number of cores carries.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Carried {
    /// How many.
    pub cores: u32,
    /// Of clients, each second.
    pub bytes_per_second: f64,
    /// What stops more.
    pub bottleneck: Bottleneck,
}

/// Of demands of this kind, however large.
#[must_use]
pub fn carried(
    demand: &Demand,
    costs: &StageCosts,
    machine: &Machine,
    offload: Offload,
    cores: u32,
) -> Carried {
    let per_second = |ns: f64| CHUNK_BYTES * 1e9 / ns;
    let stored = demand.unique_share() * demand.compressed_share;
    let fetched = demand.read_share * demand.compressed_share;
    let device = |bound: Option<f64>, share: f64| match bound {
        Some(bound) if share > 0.0 => bound / share,
        _ => f64::INFINITY,
    };
    let bounds = [
        (f64::from(cores) * per_second(core_ns(demand, costs, offload)), Bottleneck::Cores),
        (per_second(tables_ns(demand, costs, offload)), Bottleneck::CoreThread),
        (device(machine.dram_bytes_per_second, dram_per_byte(demand, offload)), Bottleneck::Dram),
        (device(machine.data_write_bytes_per_second, stored), Bottleneck::DataWrites),
        (device(machine.data_read_bytes_per_second, fetched), Bottleneck::DataReads),
    ];
    let least = bounds.into_iter().min_by(|one, other| one.0.total_cmp(&other.0));
    let (bytes_per_second, bottleneck) = least.unwrap_or((0.0, Bottleneck::Cores));
    Carried { cores, bytes_per_second, bottleneck }
}

#[cfg(test)]
mod tests {
    use super::{Bottleneck, CORES, Machine, carried};
    use crate::{Demand, Offload, StageCosts, needs};

    const DEMAND: Demand = Demand {
        bytes_per_second: 1e9,
        read_share: 0.25,
        duplicate_share: 0.5,
        compressed_share: 0.5,
        request_bytes: 65_536.0,
        capacity_bytes: 1e13,
    };

    fn of(machine: &Machine, cores: u32) -> super::Carried {
        carried(&DEMAND, &StageCosts::CALIBRATED, machine, Offload::None, cores)
    }

    #[test]
    fn more_cores_never_carry_less_and_at_last_the_thread_of_the_tables_stops_them() {
        let all = CORES.map(|cores| of(&Machine::default(), cores));
        assert!(all.windows(2).all(|pair| pair[0].bytes_per_second <= pair[1].bytes_per_second));
        assert_eq!(all[0].bottleneck, Bottleneck::Cores);
        assert_eq!(all[6].bottleneck, Bottleneck::CoreThread);
    }

    #[test]
    fn what_is_carried_needs_what_there_is() {
        let machine = Machine { data_write_bytes_per_second: Some(1e8), ..Machine::default() };
        let carried = of(&machine, 64);
        assert_eq!(carried.bottleneck, Bottleneck::DataWrites);
        let demand = Demand { bytes_per_second: carried.bytes_per_second, ..DEMAND };
        let needs = needs(&demand, &StageCosts::CALIBRATED, Offload::None);
        assert!((needs.data_write_bytes_per_second - 1e8).abs() < 1.0);
    }
}
