//! A storage server by its resources: what each byte of a client takes of cores, DRAM bandwidth,
//! PCIe and the engine of the table cache, and so how much it carries and what it saturates first.
//!
//! ```text
//! workload.rs      what clients do: reads, duplicates, compressibility, hits of the table cache
//! design.rs        the ladder CIDR+, NIC hashing and peer-to-peer, hardware cache, four updates
//!   ├─ dram.rs         bytes of DRAM traffic for a byte of a client, path by path (Table 1)
//!   ├─ cores.rs        cores for a GB/s, task by task (Figure 5, Table 2)
//!   ├─ table_engine.rs updates of the tree a second, leaves read a second (Figure 13)
//!   └─ pcie.rs         bytes through the root complex and inside a group
//! large_chunks.rs  the rung below: CIDR with chunks of 32 KiB, completed by reading
//! limits.rs        the least of all: throughput and bottleneck (Figure 14)
//! rows.rs          the rows of `docs/reproduction.md`;  plots.rs  its figures
//! ```
//!
//! Five parameters are fitted and marked so. Everything else is the paper's or follows from it.

mod cores;
mod design;
mod dram;
mod large_chunks;
mod limits;
mod pcie;
mod plots;
mod rows;
mod table_engine;
mod workload;

pub use cores::{CoreCost, core_cost};
pub use design::Design;
pub use dram::{DramTraffic, dram_traffic};
pub use large_chunks::large_chunk_limits;
pub use limits::{Bottleneck, Limits, SOCKET_CORES, limits};
pub use pcie::{PcieTraffic, pcie_traffic};
pub use plots::plots;
pub use rows::{PARAMETERS, rows};
pub use table_engine::table_engine_gb;
pub use workload::{
    MIXED_PROFILED, READ_MIXED, WRITE_H, WRITE_L, WRITE_M, WRITES_PROFILED, Workload,
};
