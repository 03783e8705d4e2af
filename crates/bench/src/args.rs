//! What a run is told on the command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::instructions::workload::Work;
use crate::source::CHUNK_BYTES;

/// Where `report` writes.
const REPORT: &str = "docs/measurements/034-report.md";

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
    /// MiB that `in-process` writes to each store before its clock runs: what a process touches
    /// first the kernel has to clear, and a server does that once.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(..1 << 20))]
    pub(crate) warm_mib: u64,
    /// `in-process`: no chunk repeats another, as new data do; else half of them do. A store whose
    /// tables are larger than its caches takes --size-mib 16384 --memory-mib 128.
    #[arg(long)]
    pub(crate) unique: bool,
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
    /// `instructions`: N, where N chunks and 2N are counted.
    #[arg(long, default_value_t = 8192, value_name = "N",
        value_parser = clap::value_parser!(u64).range(64..1 << 20))]
    pub(crate) counted_chunks: u64,
    /// The work that a process which callgrind watches does.
    #[arg(long, value_enum, hide = true)]
    pub(crate) counted: Option<Work>,
    /// `doors`: compare all that is read with what was written; slower, and without fio.
    #[arg(long)]
    pub(crate) verify: bool,
    /// `doors`: only the loads whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) load: Option<String>,
    /// Print JSON instead of Markdown.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write JSON to this file as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) json_file: Option<PathBuf>,
    /// `whole`: these systems and these tables only, by name. Tables: `fio`; `data`, sets of real
    /// data (--data); `pgbench`, PostgreSQL on six of the systems unless others are named;
    /// `fullness`, the store at several levels. Where systems are named, and no table, all but the
    /// last.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// `whole`: sets of real data, each a folder: of disk images, or any other tree. They are
    /// copied into every system and read back; a round of twelve systems takes about two minutes a
    /// set.
    #[arg(long, value_delimiter = ',', value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// `whole`: at most so many MiB of each set, of several images the same share.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    pub(crate) data_mib: u64,
    /// `whole`: seconds of pgbench's transactions; what is around them takes about twenty more.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) pgbench_seconds: u64,
    /// `whole`, `cores`, `report`: writes the tables to this page, and the plots into a folder
    /// beside it that is called by the page's number; `report` always does, to
    /// docs/measurements/034-report.md unless said.
    #[arg(long, value_name = "FILE", value_parser = page)]
    pub(crate) page: Option<PathBuf>,
}

/// What to measure.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The engine without sockets, beside its kernels.
    InProcess,
    /// A store that is nearly full is written over at random: bytes that reach the device for each
    /// byte stored.
    Overwrite,
    /// What makes fingerprints, kind by kind.
    Kinds,
    /// What makes frames, codec by codec.
    Codecs,
    /// Tamis in its modes beside nbdkit, qemu-nbd, btrfs and ZFS, by one client on one disk.
    /// With --seconds 1 and two sets of data a round takes ten to twenty minutes.
    Whole,
    /// What a written chunk costs, what more processors would give, and what more threads do give.
    Cores,
    /// Who allocates how often for an operation; built with --profile counting
    /// --features allocations.
    Allocations,
    /// Instructions of the engine for a chunk, counted by callgrind (package `valgrind`).
    Instructions,
    /// How long clients wait, one request at a time and beside what the store does in the
    /// background.
    Latency,
    /// Tamis through NBD, a server that does nothing and the engine in process under the same load,
    /// by a client of ours that batches, and fio beside it.
    Doors,
    /// All that is held to something (in-process, whole, cores, latency, doors), with the verdicts
    /// first, written to --page. With all systems it takes some hours; --only, --rounds and
    /// --seconds make it less.
    Report,
}

/// A part of `whole`, as `--only` names it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Fio,
    Data,
    Pgbench,
    Fullness,
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

/// A Markdown file: the folder of its plots is called as it is, without that.
fn page(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(extension) if extension == "md" => Ok(path),
        _ => Err("the name of a file that ends with .md".to_owned()),
    }
}

impl Mode {
    /// Whether this measures what `part` does.
    pub(crate) fn includes(self, part: Self) -> bool {
        let reported = [Self::InProcess, Self::Whole, Self::Cores, Self::Latency, Self::Doors];
        self == part || (self == Self::Report && reported.contains(&part))
    }

    /// Whether others' programs run for long, which a signal has to end.
    pub(crate) fn takes_long(self) -> bool {
        matches!(
            self,
            Self::Whole | Self::Latency | Self::Instructions | Self::Doors | Self::Report
        )
    }
}

impl Args {
    /// Where the page goes, if there is one.
    pub(crate) fn page(&self) -> Option<PathBuf> {
        let reported = (self.mode == Mode::Report).then(|| PathBuf::from(REPORT));
        let has_page = [Mode::Whole, Mode::Cores, Mode::Report].contains(&self.mode);
        self.page.clone().or(reported).filter(|_| has_page)
    }

    /// Bytes of one sequential run.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_mib << 20
    }

    /// `whole`: whether the system of this name is asked for.
    pub(crate) fn takes_part(&self, name: &str) -> bool {
        !self.names_systems() || self.only.iter().any(|only| only == name)
    }

    /// `whole`: whether systems are named at all.
    pub(crate) fn names_systems(&self) -> bool {
        self.only.iter().any(|name| Table::named(name).is_none())
    }

    /// `whole`: whether this table is asked for by name.
    pub(crate) fn names_table(&self, table: Table) -> bool {
        self.only.iter().any(|name| Table::named(name) == Some(table))
    }

    /// `whole`: whether this table is to be made.
    pub(crate) fn has_table(&self, table: Table) -> bool {
        let names_tables = self.only.iter().any(|name| Table::named(name).is_some());
        match names_tables {
            true => self.names_table(table),
            false => self.only.is_empty() || table != Table::Fullness,
        }
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

impl Table {
    const ALL: [Self; 4] = [Self::Fio, Self::Data, Self::Pgbench, Self::Fullness];

    /// As `--only` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::Data => "data",
            Self::Pgbench => "pgbench",
            Self::Fullness => "fullness",
        }
    }

    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser;

    use super::{Args, Table};

    /// Which tables, and whether systems `tamis` and `raw` take part.
    fn asked(only: &[&str]) -> (Vec<&'static str>, bool, bool) {
        let only = only.iter().map(|name| format!("--only={name}"));
        let args =
            Args::parse_from(["bench".to_owned(), "whole".to_owned()].into_iter().chain(only));
        let tables = Table::ALL.into_iter().filter(|table| args.has_table(*table));
        (tables.map(Table::name).collect(), args.takes_part("tamis"), args.takes_part("raw"))
    }

    #[test]
    fn systems_and_tables_are_chosen_by_name() {
        let all = ["fio", "data", "pgbench", "fullness"];
        assert_eq!(asked(&[]), (all.to_vec(), true, true));
        assert_eq!(asked(&["tamis"]), (all[..3].to_vec(), true, false));
        assert_eq!(asked(&["pgbench"]), (vec!["pgbench"], true, true));
        assert_eq!(asked(&["fullness,data,raw"]), (vec!["data", "fullness"], false, true));
    }

    #[test]
    fn only_a_report_has_a_page_unless_asked() {
        let page = |words: &[&str]| {
            Args::try_parse_from(["bench"].iter().chain(words)).map(|args| args.page())
        };
        assert_eq!(page(&["whole"]).unwrap(), None);
        assert_eq!(page(&["report"]).unwrap(), Some(PathBuf::from(super::REPORT)));
        for mode in ["whole", "cores", "report"] {
            assert_eq!(page(&[mode, "--page", "7-x.md"]).unwrap(), Some(PathBuf::from("7-x.md")));
        }
        assert!(page(&["whole", "--page", "7-x"]).is_err(), "its plots' folder would be that file");
    }
}
