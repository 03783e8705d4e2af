//! What a server carries: the least of what its resources do, and which one that is.

use crate::parameter::Parameter;
use crate::units::{Cores, GbPerSecond};

use super::cores::core_cost;
use super::design::Design;
use super::dram::dram_traffic;
use super::pcie::pcie_traffic;
use super::table_engine::table_engine_gb;
use super::workload::Workload;

/// Section 7.5: a high-end processor.
pub static SOCKET_CORES: Parameter = Parameter::stated("cores of a socket", 22.0, "", "7.5");
/// Section 3.2.1.
pub(super) static DRAM_GB: Parameter =
    Parameter::stated("DRAM of a socket", 170.0, "GB/s", "3.2.1");
/// Section 3.2: each way.
pub(super) static PCIE_GB: Parameter =
    Parameter::stated("PCIe of a socket, each way", 128.0, "GB/s", "3.2");

/// What is saturated first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// The processor.
    Cores,
    /// DRAM bandwidth.
    Dram,
    /// The engine of the table cache.
    TableEngine,
    /// PCIe's root complex.
    Pcie,
}

impl Bottleneck {
    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Dram => "DRAM",
            Self::TableEngine => "table engine",
            Self::Pcie => "PCIe",
        }
    }
}

/// What each resource would carry if it were alone; no engine, no figure.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Limits {
    /// The processor.
    pub cores: GbPerSecond,
    /// DRAM bandwidth.
    pub dram: GbPerSecond,
    /// PCIe's root complex.
    pub pcie: GbPerSecond,
    /// The engine of the table cache.
    pub table_engine: Option<GbPerSecond>,
}

/// Of a socket with a design under a workload.
#[must_use]
pub fn limits(design: Design, workload: &Workload) -> Limits {
    let traffic = pcie_traffic(design, workload);
    let ways = [traffic.to_host, traffic.from_host].map(|way| GbPerSecond(PCIE_GB.value) / way);
    Limits {
        cores: Cores(SOCKET_CORES.value) / core_cost(design, workload).total(),
        dram: GbPerSecond(DRAM_GB.value) / dram_traffic(design, workload).total(),
        pcie: GbPerSecond(ways[0].0.min(ways[1].0)),
        table_engine: match design {
            Design::HardwareCache { updates } => Some(table_engine_gb(workload, updates)),
            _ => None,
        },
    }
}

impl Limits {
    /// The least, and whose it is.
    #[must_use]
    pub fn least(&self) -> (GbPerSecond, Bottleneck) {
        let mut least = (self.cores, Bottleneck::Cores);
        let others = [
            (Some(self.dram), Bottleneck::Dram),
            (self.table_engine, Bottleneck::TableEngine),
            (Some(self.pcie), Bottleneck::Pcie),
        ];
        for (limit, bottleneck) in others {
            if let Some(limit) = limit.filter(|limit| *limit < least.0) {
                least = (limit, bottleneck);
            }
        }
        least
    }

    /// The least.
    #[must_use]
    pub fn throughput(&self) -> GbPerSecond {
        self.least().0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{READ_MIXED, WRITE_H, WRITE_L, WRITE_M};
    use super::{Bottleneck, Design, limits};

    #[test]
    fn the_baseline_is_bound_by_cores_and_the_engine_by_updates() {
        for workload in [WRITE_H, WRITE_M, WRITE_L, READ_MIXED] {
            let (_, bottleneck) = limits(Design::CidrPlus, &workload).least();
            assert_eq!(bottleneck, Bottleneck::Cores, "{workload:?}");
        }
        let (_, bottleneck) = limits(Design::ONE_UPDATE, &WRITE_L).least();
        assert_eq!(bottleneck, Bottleneck::TableEngine);
    }

    #[test]
    fn taking_a_task_off_the_host_never_lowers_what_its_cores_and_dram_carry() {
        for workload in [WRITE_H, WRITE_M, WRITE_L, READ_MIXED] {
            for pair in Design::LADDER.windows(2) {
                let (before, after) = (limits(pair[0], &workload), limits(pair[1], &workload));
                assert!(after.cores >= before.cores && after.dram >= before.dram);
            }
        }
    }
}
