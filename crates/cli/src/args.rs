//! What may be typed: every command, its options, and the help that teaches them.
//!
//! Only shapes and words here; what a command does stands in `commands/`.

mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use format::units::{Codec, Compression};
use nbd::Listen;

use crate::compression::parse_compression;
use crate::size::parse_size;
pub(crate) use values::{CHUNK_SIZES, Codecs, Rate};
use values::{parse_chunk_size, parse_codecs, parse_estimate_memory, parse_memory, parse_rate};

const OVERVIEW: &str = "\
Tamis stores disks so that every piece of data is kept once and compressed.

A store is a directory. Its volumes are thin disks: served over NBD they attach to Linux, QEMU and
libvirt. Every 4-KiB chunk that is written is fingerprinted, deduplicated against everything
stored, compressed, and appended to containers on the disk.";

const OVERVIEW_EXAMPLES: &str = "\
Examples:
  tamis serve ./store --create             make a store with one volume and serve it
  tamis import ./store vm1 vm1.img         put a raw disk image in
  tamis stats ./store                      see what was saved
  tamis estimate vm1.img                   see what would be saved

Exit codes:
  0  done
  1  the operation failed; the message says why
  2  the command line is not understood or asks for what cannot be
  3  no such store or volume
  4  the store is in use by another process
  5  damage was found
  6  no space, in the store or on the disk
  7  the store, volume or file exists already
  8  damage was found and repaired, and nothing is lost
  9  damage was found and repaired, and something is lost; it is named
  130, 143  stopped by SIGINT or SIGTERM before it was done

Sizes are bytes or have a unit: 4K, 1.5G and 2TiB are powers of 1024; KB, MB, GB and TB are powers
of 1000.";

/// Inline deduplication and compression for disks.
#[derive(Debug, Parser)]
#[command(
    name = "tamis",
    version,
    long_about = OVERVIEW,
    after_help = OVERVIEW_EXAMPLES,
    max_term_width = 100,
    propagate_version = false
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(InitArgs),
    Serve(ServeArgs),
    #[command(subcommand)]
    Volume(VolumeCommand),
    Import(ImportArgs),
    Export(ExportArgs),
    Estimate(EstimateArgs),
    Stats(StatsArgs),
    Check(CheckArgs),
    Scrub(ScrubArgs),
    Grow(GrowArgs),
    Set(SetArgs),
    Completions(CompletionsArgs),
}

/// How results are printed.
#[derive(Debug, Args)]
pub(crate) struct Format {
    /// Print the result as JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a store: a directory in which volumes can be created
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis init /srv/store --capacity 500G
  tamis init /srv/store --data /dev/sdb --data /dev/sdc --tables /dev/nvme0n1p4 \\
      --journal /dev/nvme0n1p5 --compression zstd:3
The second puts the data on two disks, used whole, and tables and journal on a fast one.")]
pub(crate) struct InitArgs {
    /// Directory of the store; made if it is not there
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) shape: StoreShape,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// What a store is made like.
#[derive(Debug, Args)]
pub(crate) struct StoreShape {
    /// Room for data, after deduplication and compression [default: 100G, or half of the free
    /// space when that is less]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) capacity: Option<u64>,
    /// Where data is kept: a file to be made, or a block device, which is used whole; may be
    /// given several times [default: files inside STORE]
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Where tables are kept: a file to be made or a block device, best on a fast SSD [default: a
    /// file inside STORE]
    #[arg(long, value_name = "PATH")]
    pub(crate) tables: Option<PathBuf>,
    /// Where the journal is kept: a file to be made or a block device [default: a file inside
    /// STORE]
    #[arg(long, value_name = "PATH")]
    pub(crate) journal: Option<PathBuf>,
    /// Unit of deduplication: 4K, 8K, 16K, 32K or 64K; larger ones need less memory and find less
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_size, default_value = "4K")]
    pub(crate) chunk_size: u32,
    /// lz4, zstd, zstd:LEVEL (-7 to 22) or none; `tamis set` changes it later
    #[arg(long, value_name = "CODEC", value_parser = parse_compression, default_value = "lz4")]
    pub(crate) compression: Compression,
}

impl StoreShape {
    /// A store in one directory with all the defaults.
    pub(crate) fn with_capacity(capacity: Option<u64>) -> Self {
        Self {
            capacity,
            data: Vec::new(),
            tables: None,
            journal: None,
            chunk_size: 4096,
            compression: Compression { codec: Codec::Lz4, level: 0 },
        }
    }
}

/// Make a store larger, which is not being served
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis grow /srv/store --capacity 800G        lengthen the last data file
  tamis grow /srv/store --data /dev/sdd        add a disk, used whole
  tamis grow /srv/store                        use what the last data device has grown by
Volumes stay as they are: `tamis volume resize` makes them larger.")]
pub(crate) struct GrowArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Room for data in all that the store is to have; needed where files grow, and shared by
    /// those that are added
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) capacity: Option<u64>,
    /// Where more data is kept: a file to be made, or a block device, which is used whole; may be
    /// given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Serve the volumes of a store over NBD until SIGINT or SIGTERM
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis serve ./store --create
      makes the store and a volume disk0 when they are not there, and serves it on a unix socket
  tamis serve /srv/store --nbd tcp:127.0.0.1:10809 --memory 8G
      serves it to NBD clients on this machine by TCP
  tamis serve /srv/store --sync
      acknowledges a write only when it is durable, as a disk without a write cache does

While a store is served, `tamis volume`, `tamis stats` and `tamis set` reach it through its control
socket. Ctrl-C writes everything out and ends; a second Ctrl-C ends at once, and the next start
recovers.")]
pub(crate) struct ServeArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Make the store if there is none, and a volume disk0 if there is no volume
    #[arg(long)]
    pub(crate) create: bool,
    /// Room for data when the store is made [default: 100G, or half of the free space when that
    /// is less]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "create")]
    pub(crate) capacity: Option<u64>,
    /// Size of disk0 when it is made; it is thin and takes no room until written [default: four
    /// times the capacity]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "create")]
    pub(crate) size: Option<u64>,
    /// Address to serve at: unix:PATH or tcp:HOST:PORT; may be given several times [default:
    /// unix:STORE/nbd.sock]
    #[arg(long, value_name = "ADDRESS", value_parser = Listen::parse)]
    pub(crate) nbd: Vec<Listen>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Acknowledge a write only when it is durable
    #[arg(long)]
    pub(crate) sync: bool,
    /// Say on standard error when a checkpoint or the collection of a container begins and ends
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Print one line of JSON when the store is being served, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// What an engine may use.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// Memory for table cache, write buffer and reads together, at least 64M
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, default_value = "1G")]
    pub(crate) memory: u64,
    /// Threads that fingerprint and compress [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

/// Create, list and change volumes
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  tamis volume create /srv/store vm1 --size 40G
  tamis volume list /srv/store
All of them also work while the store is being served.")]
pub(crate) enum VolumeCommand {
    Create(VolumeCreateArgs),
    List(VolumeListArgs),
    Show(VolumeShowArgs),
    Resize(VolumeResizeArgs),
    Rename(VolumeRenameArgs),
    Delete(VolumeDeleteArgs),
}

/// A volume and how it is spoken of.
#[derive(Debug, Args)]
pub(crate) struct VolumeName {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the volume
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Create a volume; it is thin and takes no room until it is written
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis volume create /srv/store vm1 --size 40G")]
pub(crate) struct VolumeCreateArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Logical size, a multiple of 512 bytes
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: u64,
    /// Refuse all writes to it
    #[arg(long)]
    pub(crate) read_only: bool,
}

/// List all volumes
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis volume list /srv/store --json")]
pub(crate) struct VolumeListArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Show one volume
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis volume show /srv/store vm1")]
pub(crate) struct VolumeShowArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
}

/// Change the size of a volume
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis volume resize /srv/store vm1 --size 80G
  tamis volume resize /srv/store vm1 --size 20G --shrink
The second cuts off what lies beyond 20 GiB, for good.")]
pub(crate) struct VolumeResizeArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Logical size from now on, a multiple of 512 bytes
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: u64,
    /// Allow a smaller size; what lies beyond it is lost
    #[arg(long)]
    pub(crate) shrink: bool,
}

/// Give a volume another name
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis volume rename /srv/store vm1 web-server")]
pub(crate) struct VolumeRenameArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Its name from now on
    pub(crate) new_name: String,
}

/// Delete a volume and all that it holds
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis volume delete /srv/store vm1
At a terminal it asks first, unless --yes is given.")]
pub(crate) struct VolumeDeleteArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Copy a raw or qcow2 disk image into a volume
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis import /srv/store vm1 vm1.img
      creates volume vm1 with the size of the image if it is not there; holes stay holes
  zstd -dc vm1.img.zst | tamis import /srv/store vm1 -
  tamis import /srv/store vm1 /dev/sdb --overwrite
      replaces all that vm1 held

A volume that is made for the image is called NAME.importing until it is complete. The store must
not be served; for one that is, use the qemu-img line that `tamis serve` prints.")]
pub(crate) struct ImportArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the volume; created if it is not there
    pub(crate) volume: String,
    /// The image: a raw or qcow2 file, a block device, or - for standard input, which is raw
    pub(crate) file: PathBuf,
    /// Replace what the volume holds
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Copy a volume out as a raw disk image
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis export /srv/store vm1 vm1.img
      writes a sparse file, which appears under its name only when it is complete
  tamis export /srv/store vm1 - | zstd > vm1.img.zst
  tamis export /srv/store vm1 /dev/sdb --overwrite

The store must not be served; for one that is, use `nbdcopy` with the URI that `tamis serve`
prints.")]
pub(crate) struct ExportArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the volume
    pub(crate) volume: String,
    /// The image: a file to be made, a block device, or - for standard output
    pub(crate) file: PathBuf,
    /// Replace the file if it is there, or what the block device holds
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Say what a store would save for files, directories, devices and images, before there is one
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis estimate vm1.qcow2 vm2.qcow2 /dev/sdb
      the disks in raw and qcow2 images, and on a device; at every chunk size, with lz4
  tamis estimate /srv/backups --chunk-size 4K,64K --compression all --json
      every file in a directory as it is (a qcow2 image in it as well), links not followed

Nothing is written. Each disk and each file is cut into chunks from its own start. Holes count as
zeros. Figures are exact while the fingerprints of all chunks fit into --memory, about 24 bytes for
each unique chunk; beyond that they come from a sample, and their standard errors are told. What
cannot be read is listed at the end, and the exit code is then 1.")]
pub(crate) struct EstimateArgs {
    /// Files, directories, block devices, raw and qcow2 images
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Chunk sizes to try, separated by commas [default: all, 4K to 64K]
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_size, value_delimiter = ',')]
    pub(crate) chunk_size: Vec<u32>,
    /// What to compress with: lz4, zstd, zstd:LEVEL or none, separated by commas, or all, which is
    /// lz4, zstd and none
    #[arg(
        long,
        value_name = "CODEC",
        value_parser = parse_codecs,
        value_delimiter = ',',
        default_value = "lz4"
    )]
    pub(crate) compression: Vec<Codecs>,
    /// Memory for fingerprints and buffers, at least 16M
    #[arg(long, value_name = "SIZE", value_parser = parse_estimate_memory, default_value = "256M")]
    pub(crate) memory: u64,
    /// Threads that fingerprint and compress [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Show what a store holds and what was saved
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis stats /srv/store
  tamis stats /srv/store --json | jq .reduction_ratio
While the store is being served the rates of half a second are shown as well.")]
pub(crate) struct StatsArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Verify every invariant of a store that is not being served, and mend it if asked to
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis check /srv/store
  tamis check /srv/store --repair
Reads all tables, containers and counts and changes nothing. Exit code 0 means sound, 5 means that
damage was found; each piece is named with what it affects: volumes, chunks and bytes.
With --repair the tables are made again from what is intact: reference counts, Hash-PBN and PBN-PBA
tables, free PBNs, container table, directories, roots, and files that were cut short. Chunks that
nothing can bring back stay errors when they are read, until they are written again. Nothing is
overwritten before all is written anew. Exit code 8 means that all is well again, 9 that something
is lost, 5 that the store could not be repaired and is as it was.")]
pub(crate) struct CheckArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Mend what can be mended
    #[arg(long)]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Read and verify all that is stored, and heal what can be healed; also while it is served
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis scrub /srv/store
      reads every frame, directory, page of tables and copy in the superblock; what has a second
      copy heals, the rest is named with the volumes and chunks it affects
  tamis scrub /srv/store --fingerprint --rate 50M
      recomputes every fingerprint as well, and reads 50 MiB a second
  tamis scrub /srv/store --status

Ctrl-C pauses it: the next `tamis scrub` goes on where it was. A chunk that is damaged heals as well
when a client writes the same content again. Exit code 0 means sound or healed, 5 that damage is
left.")]
pub(crate) struct ScrubArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Expand every chunk and compare its fingerprint with the Hash-PBN table
    #[arg(long)]
    pub(crate) fingerprint: bool,
    /// How much to read a second: a size, or unlimited [default: 100M while the store is being
    /// served, else unlimited]
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    pub(crate) rate: Option<Rate>,
    /// Begin again, even if an earlier scrub was paused
    #[arg(long)]
    pub(crate) restart: bool,
    /// Only show how far a scrub has come and what the last one found
    #[arg(long, conflicts_with_all = ["fingerprint", "rate", "restart"])]
    pub(crate) status: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Change settings of a store
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis set /srv/store --compression zstd:3
What is stored stays as it is; what is written from now on is compressed so. Works while the store
is being served.")]
pub(crate) struct SetArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// lz4, zstd, zstd:LEVEL (-7 to 22) or none
    #[arg(long, value_name = "CODEC", value_parser = parse_compression, required = true)]
    pub(crate) compression: Compression,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis completions bash > ~/.local/share/bash-completion/completions/tamis")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Cli, Command, StoreShape};

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Every command that does something, with its path of names.
    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        for child in command.get_subcommands() {
            let path = format!("{path} {}", child.get_name());
            let help = child.get_after_help().map(ToString::to_string).unwrap_or_default();
            found.push((path.clone(), help));
            leaves(child, &path, found);
        }
    }

    #[test]
    fn every_command_teaches_by_an_example_of_itself() {
        let mut found = Vec::new();
        leaves(&Cli::command(), "tamis", &mut found);
        assert!(found.len() >= 14, "{found:?}");
        for (path, help) in found {
            assert!(help.contains("Example"), "{path}");
            assert!(help.contains(&format!("{path} ")), "{path}: {help}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_help() {
        let cli = Cli::try_parse_from(["tamis", "init", "s"]).unwrap();
        let Command::Init(init) = cli.command else { panic!() };
        let shape = StoreShape::with_capacity(None);
        assert_eq!(init.shape.chunk_size, shape.chunk_size);
        assert_eq!(init.shape.compression, shape.compression);
        let cli = Cli::try_parse_from(["tamis", "serve", "s"]).unwrap();
        let Command::Serve(serve) = cli.command else { panic!() };
        assert_eq!(serve.engine.memory, 1 << 30);
        assert!(serve.nbd.is_empty() && !serve.sync && !serve.create);
    }

    #[test]
    fn what_cannot_be_is_a_usage_error() {
        for line in [
            "tamis",
            "tamis init",
            "tamis init s --chunk-size 5K",
            "tamis init s --chunk-size 128K",
            "tamis init s --capacity lots",
            "tamis init s --compression gzip",
            "tamis serve s --memory 1M",
            "tamis serve s --nbd 10809",
            "tamis serve s --capacity 1G",
            "tamis serve s --threads 0",
            "tamis estimate",
            "tamis estimate x --memory 1M",
            "tamis estimate x --chunk-size 4K,5K",
            "tamis estimate x --compression lz4,gzip",
            "tamis volume create s v",
            "tamis scrub s --rate 0",
            "tamis scrub s --status --restart",
            "tamis set s",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn a_dash_stands_for_standard_input() {
        assert!(Cli::try_parse_from(["tamis", "import", "s", "v", "-"]).is_ok());
    }
}
