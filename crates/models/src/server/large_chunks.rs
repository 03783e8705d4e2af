//! The rung below the ladder: CIDR with chunks of 32 KiB, whose tables fit in DRAM (FIDR, section
//! 3.1).
//!
//! What clients write a block of 4 KiB at a time is put together to large chunks first. So for each
//! byte that they write, a trace says how many bytes of large chunks are hashed, how many of them
//! were read back and expanded, and how many are new (`cidr/large_chunks.rs`). In exchange there is
//! a look-up for eight blocks, and no table cache, table SSD or tree. A guess of the predictor is
//! one for a chunk. All parameters are those of CIDR+; none is fitted here.

use crate::cidr::BlockIo;
use crate::units::{BytesPerByte, Cores, CoresPerGbPerSecond, GbPerSecond};

use super::cores::{PREDICTOR, PROFILED, READ, REPLACEMENT, TABLE_CACHE, TABLE_SSD, TREE};
use super::dram::{BUCKET_FILL, THROUGH_DRAM};
use super::limits::{DRAM_GB, Limits, PCIE_GB, SOCKET_CORES};
use super::workload::Workload;

/// Blocks of a large chunk.
const CHUNK_BLOCKS: f64 = 8.0;

/// What a socket carries with chunks of 32 KiB, of a workload whose writes are a trace's.
#[must_use]
pub fn large_chunk_limits(workload: &Workload, io: &BlockIo) -> Limits {
    let of_asked = |blocks: u64| workload.write_share * blocks as f64 / io.asked.max(1) as f64;
    let (hashed, read_back) = (of_asked(io.put_together), of_asked(io.read));
    let stored = of_asked(io.written) * workload.compressed_share;
    let expanded = workload.read_share() + read_back;
    let fetched = expanded * workload.compressed_share;
    let lookups = hashed / CHUNK_BLOCKS;

    let moved = TREE.value + REPLACEMENT.value + TABLE_SSD.value;
    let others = 1.0 - PREDICTOR.value - TABLE_CACHE.value * moved;
    let writes = PREDICTOR.value * lookups + others * workload.write_share;
    let cores = PROFILED.value * writes + READ.value * expanded;

    let through_dram = stored * THROUGH_DRAM.value;
    let predicted = hashed;
    let accelerator = hashed + through_dram + fetched + expanded;
    let dram = 1.0 + predicted + accelerator + lookups * BUCKET_FILL.value + through_dram + fetched;

    let to_host = workload.write_share + stored + fetched + expanded;
    let from_host = hashed + stored + fetched + workload.read_share();
    Limits {
        cores: Cores(SOCKET_CORES.value) / CoresPerGbPerSecond(cores),
        dram: GbPerSecond(DRAM_GB.value) / BytesPerByte(dram),
        pcie: GbPerSecond(PCIE_GB.value) / BytesPerByte(to_host.max(from_host)),
        table_engine: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bottleneck, WRITE_H};
    use super::{BlockIo, large_chunk_limits};

    #[test]
    fn whole_chunks_cost_less_than_blocks_that_have_to_be_completed() {
        let whole = BlockIo { asked: 8, put_together: 8, read: 0, written: 8 };
        let single = BlockIo { asked: 1, put_together: 8, read: 7, written: 8 };
        let [whole, single] = [whole, single].map(|io| large_chunk_limits(&WRITE_H, &io));
        assert!(whole.cores > single.cores && whole.dram > single.dram && whole.pcie > single.pcie);
        assert!(whole.throughput().0 > 4.0 * single.throughput().0, "{whole:?} {single:?}");
        assert_ne!(single.least().1, Bottleneck::TableEngine);
    }
}
