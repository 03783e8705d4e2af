//! What a run is told on the command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::source::CHUNK_BYTES;

/// Measures Tamis beside its rivals on this machine.
#[derive(Debug, Parser)]
#[command(name = "bench", after_help = "Build the server first: cargo build --release -p cli")]
pub(crate) struct Args {
    /// What to measure.
    #[arg(value_enum)]
    pub(crate) mode: Mode,
    /// Rounds; every figure is their median.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// MiB that one sequential run writes or reads.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    pub(crate) size_mib: u64,
    /// Seconds of one random run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// What the engine and the server get as --memory, in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(64..1 << 20))]
    pub(crate) memory_mib: u64,
    /// Folder on the disk to measure; everything in it is made in a folder of its own and removed.
    #[arg(long, default_value = "target/bench")]
    pub(crate) dir: PathBuf,
    /// The server to measure.
    #[arg(long, default_value = "target/release/tamis")]
    pub(crate) tamis: PathBuf,
    /// `overwrite`: room of the store, in MiB.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u64).range(256..))]
    pub(crate) capacity_mib: u64,
    /// `overwrite`: how full the store is, frames of living chunks by room.
    #[arg(long, default_value = "85%", value_parser = percent)]
    pub(crate) fill: u64,
    /// `overwrite`: how many times the store's room is written, counted in frames.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..1000))]
    pub(crate) times: u64,
    /// `overwrite`: which chunks are written again.
    #[arg(long, value_enum, default_value = "uniform")]
    pub(crate) pattern: Pattern,
    /// `overwrite`: how much of each chunk is zeros.
    #[arg(long, default_value = "50%", value_parser = percent)]
    pub(crate) compressible: u64,
    /// `overwrite`: decides every address and every byte.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// `cores`: measured with so many workers, and as many clients.
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,2,4,8,16",
        value_parser = count)]
    pub(crate) workers: Vec<usize>,
    /// `cores`: modelled for machines with so many processors.
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,2,4,8,16,32,64",
        value_parser = count)]
    pub(crate) cpus: Vec<usize>,
    /// `cores`: what the disk writes a second, in 10^9 bytes.
    #[arg(long, default_value = "2.9", value_parser = rate)]
    pub(crate) disk_gb: f64,
    /// `cores`: what memory reads and writes a second, in 10^9 bytes; measured unless said.
    #[arg(long, value_parser = rate)]
    pub(crate) bandwidth_gb: Option<f64>,
    /// `allocations`: operations of each kind that are counted.
    #[arg(long, default_value_t = 16 << 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) operations: u64,
    /// Print JSON instead of Markdown.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where `report` writes its tables.
    #[arg(long, default_value = "docs/measurements/002-first-figures.md")]
    pub(crate) out: PathBuf,
    /// `whole`: these systems only, by name; `fullness` is the store at several levels.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// `whole`, `cores`: writes the tables to this page, and the plots into a folder beside it that
    /// is called by the page's number.
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

/// What to measure.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The engine without sockets, beside its kernels.
    InProcess,
    /// The server by fio, beside nbdkit and a raw file.
    Nbd,
    /// A store that is nearly full is written over at random: bytes that reach the device for each
    /// byte stored.
    Overwrite,
    /// What makes fingerprints, kind by kind.
    Kinds,
    /// What makes frames, codec by codec.
    Codecs,
    /// Tamis in its modes beside nbdkit, qemu-nbd, btrfs and ZFS, by one client on one disk.
    Whole,
    /// What a written chunk costs, what more processors would give, and what more threads do give.
    Cores,
    /// Who allocates how often for an operation; built with --features allocations.
    Allocations,
    /// The first two, written to --out.
    Report,
}

/// Which chunks are written again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// Each as likely as any other.
    Uniform,
    /// Nine writes of ten go to a tenth of the chunks.
    HotCold,
}

/// `85` or `85%`.
fn percent(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse();
    number.ok().filter(|percent| *percent < 100).ok_or_else(|| "less than 100%".to_owned())
}

/// Threads or processors.
fn count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|count| (1..=1024).contains(count));
    number.ok_or_else(|| "a number from 1 to 1024".to_owned())
}

/// More than nothing.
fn rate(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    number.ok_or_else(|| "a number greater than 0".to_owned())
}

impl Args {
    /// Bytes of one sequential run.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_mib << 20
    }

    /// `whole`: whether the system of this name is asked for.
    pub(crate) fn takes_part(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// `allocations`: chunks of the volume, of --size-mib but a power of two.
    pub(crate) fn volume_chunks(&self) -> u64 {
        (self.size_bytes() / CHUNK_BYTES as u64).next_power_of_two()
    }

    /// Bytes of memory of the engine.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_mib << 20
    }
}
