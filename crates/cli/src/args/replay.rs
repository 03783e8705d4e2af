//! Replaying: what clients did once, done again.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use traces::WorkloadKind;

use super::options::{EngineArgs, Format, memory_as_serve};
use super::values::{
    parse_chunk_size, parse_count, parse_requests, parse_whole_percent, parse_workload,
};
use crate::size::parse_size;

/// Drive a store with a trace or a made workload, and say what it found and what its tables cost
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["trace", "workload"])))]
#[command(after_help = "\
Examples:
  tamis replay --workload write-m --requests 5000000 --memory 64M
      FIDR's Write-M in a new store under the current directory, which is
      removed afterwards
  zcat homes.blkparse.gz | tamis replay - --compressible 30% --verify
      a trace of FIU's IODedup; its contents are made from their digests
  tamis replay mail.blkparse --chunk-size 4K,8K,16K,32K,64K
      what large chunks lose: read-modify-write behind a request buffer of 4
      MiB, and duplicates
  tamis replay --workload write-l --requests 100000 --to write-l.trace
      writes the requests to a file in FIU's format and replays nothing

A trace has a request a line: time, process number, process, address, sectors, W
or R, two numbers of the device, and the MD5 of each 4096 or each 512 bytes.
Requests are made one after the other, as fast as the store takes them. Every
read is compared with what was written before it; the duplicates that were found
with those that are there, unless it is into a --store, which may hold other
chunks. Where that does not agree the exit code is 5. A cached part of the
tables of about 3% is what FIDR measured with: choose --memory so.")]
#[command(mut_arg("memory", memory_as_serve))]
pub(crate) struct ReplayArgs {
    /// The trace, in the format of FIU's IODedup; - for standard input
    pub(crate) trace: Option<PathBuf>,
    /// Make the requests: write-h, write-m, write-l or read-mixed, as FIDR's Table 3 has them
    #[arg(long, value_name = "NAME", value_parser = parse_workload)]
    pub(crate) workload: Option<WorkloadKind>,
    /// How many requests [default: all of a trace, a million of a workload]
    #[arg(long, value_name = "N", value_parser = parse_requests)]
    pub(crate) requests: Option<u64>,
    /// Decides every address and every content of a workload
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_count)]
    pub(crate) seed: u64,
    /// Replay into this store, which must not be served [default: a new one, removed afterwards]
    #[arg(long, value_name = "STORE", conflicts_with_all = ["chunk_size", "capacity", "dir"])]
    pub(crate) store: Option<PathBuf>,
    /// The volume that is made for it in that store, and stays
    #[arg(long, value_name = "NAME", default_value = "replay")]
    pub(crate) volume: String,
    /// Where the new store is made
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Room for data of the new store [default: what a workload needs; for a trace 8G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) capacity: Option<u64>,
    /// Chunk sizes of the new store; with several, one run for each [default: 4K]
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_size, value_delimiter = ',')]
    pub(crate) chunk_size: Vec<u32>,
    /// Gather writes in a buffer of this size, and write what is in it in the order of addresses,
    /// then flush [default: none; with several chunk sizes 4M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) request_buffer: Option<u64>,
    /// How much of each content goes away when it is compressed
    #[arg(long, value_name = "PERCENT", value_parser = parse_whole_percent, default_value = "50%")]
    pub(crate) compressible: u8,
    /// Read everything back at the end and compare it
    #[arg(long)]
    pub(crate) verify: bool,
    /// Write the requests to this file in FIU's format, - for standard output, and replay nothing
    #[arg(long, value_name = "FILE", requires = "workload")]
    #[arg(conflicts_with_all = ["trace", "store", "verify"])]
    pub(crate) to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) format: Format,
}
