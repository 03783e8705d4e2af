//! What may be typed: every command, its options, and the help that teaches them.
//!
//! Only shapes and words here, a file for each family of commands; what a command does stands in
//! `commands/`.

mod account;
mod bench;
mod bucket;
mod collect;
mod data_files;
mod diff;
mod explain;
mod health;
mod images;
mod objects;
mod options;
mod plan;
mod replay;
mod serve;
mod snapshot;
mod store;
mod values;
mod volume;

use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use account::{
    AccountCommand, AccountCreateArgs, AccountDeleteArgs, AccountListArgs, AccountSetArgs,
    AccountStatsArgs,
};
pub(crate) use bench::{BenchCommand, BenchDetectArgs};
pub(crate) use bucket::{
    BucketBranchArgs, BucketCommand, BucketCreateArgs, BucketDeleteArgs, BucketDemoteArgs,
    BucketListArgs, BucketName, BucketPromoteArgs, BucketReplicateArgs, BucketSetArgs,
    BucketShowArgs, BucketSnapshotArgs,
};
pub(crate) use collect::CollectArgs;
pub(crate) use data_files::{DataCommand, DataListArgs, DataRemoveArgs, DataReplaceArgs};
pub(crate) use diff::DiffArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use health::{CheckArgs, ScrubArgs, StatsArgs};
pub(crate) use images::{EstimateArgs, ExportArgs, ImportArgs};
pub(crate) use objects::{CpArgs, GetArgs, LsArgs, PutArgs, RmArgs};
pub(crate) use options::{Confirm, EngineArgs, Force};
pub(crate) use plan::PlanArgs;
pub(crate) use replay::ReplayArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use snapshot::{
    CloneArgs, SnapshotCommand, SnapshotCreateArgs, SnapshotDeleteArgs, SnapshotListArgs,
    SnapshotRollbackArgs,
};
pub(crate) use store::{GrowArgs, InitArgs, Making, SetArgs, StoreShape};
pub(crate) use values::{
    CHUNK_SIZES, Codecs, ImportFormat, Quota, Rate, SnapshotName, VolumeCodec,
};
pub(crate) use volume::{
    VolumeCommand, VolumeCreateArgs, VolumeDeleteArgs, VolumeListArgs, VolumeName,
    VolumeRenameArgs, VolumeResizeArgs, VolumeSetArgs, VolumeShowArgs,
};

const OVERVIEW: &str = "\
Tamis stores disks so that every piece of data is kept once and compressed.

A store is a directory. Its volumes are thin disks: served over NBD they attach
to Linux, QEMU and libvirt. Every 4-KiB chunk that is written is fingerprinted,
deduplicated against everything stored, compressed, and appended to containers
on the disk.";

const OVERVIEW_EXAMPLES: &str = "\
Examples:
  tamis serve ./store --create      make a store with one volume and serve it
  tamis import ./store vm1 vm1.img  put a disk image in
  tamis stats ./store               see what was saved
  tamis estimate vm1.img            see what would be saved

Exit codes:
  0  done
  1  the operation failed; the message says why
  2  the command line is not understood or asks for what cannot be
  3  no such store, volume, snapshot, bucket, object, account, file to read, or
     directory to write into
  4  in use: the store, the device, the address or a scrub by another process,
     or the volume by a client
  5  damage was found, or what was compared is not the same
  6  no space, in the store or on the disk
  7  the store, volume, bucket, object, account or file exists already; or the
     volume to import into is in another domain, or has changed since the
     stream's base
  8  damage was found and repaired, and nothing is lost
  9  damage was found and repaired, and something is lost; it is named
  10 more of the room is in use than --warn says, or than `collect --to` asked
     for
  129, 130, 131, 143
     stopped by SIGHUP, SIGINT, SIGQUIT or SIGTERM before it was done

Sizes are bytes or have a unit: K, M, G, T and P, also as Ki or KiB, are powers
of 1024 (4K, 1.5Gi, 2TiB); KB, MB, GB, TB and PB are powers of 1000.

At a terminal headings are bold and problems red, unless NO_COLOR is set.";

/// Inline deduplication and compression for disks.
#[derive(Debug, Parser)]
#[command(
    name = "tamis",
    version,
    long_about = OVERVIEW,
    after_help = OVERVIEW_EXAMPLES,
    max_term_width = 80,
    propagate_version = false
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line.
    ///
    /// # Errors
    /// It asks for help or is not understood; the error has the text to print.
    pub(crate) fn parse_line() -> Result<Self, clap::Error> {
        let matches = with_negative_values(Self::command()).try_get_matches()?;
        Self::from_arg_matches(&matches)
    }
}

/// Whether a command line asks for JSON, also one that is not understood.
pub(crate) fn wants_json(words: impl Iterator<Item = OsString>) -> bool {
    words.take_while(|word| word != "--").any(|word| word == "--json")
}

/// What is wrong with a command line, without the help around it.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let told = error.to_string();
    let first = told.split("\n\n").next().unwrap_or_default();
    let words = first.strip_prefix("error: ").unwrap_or(first).split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// Lets every value begin with a hyphen: what is wrong with `--size -5G` is then said by who
/// reads sizes, and not by who looks for options.
fn with_negative_values(command: clap::Command) -> clap::Command {
    let takes_negative = |arg: &clap::Arg| {
        let is_number = arg.get_id() == "lba";
        is_number || !arg.is_positional() && arg.get_action().takes_values()
    };
    command
        .mut_args(|arg| {
            let takes = takes_negative(&arg);
            arg.allow_hyphen_values(takes)
        })
        .mut_subcommands(with_negative_values)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(InitArgs),
    Serve(ServeArgs),
    #[command(subcommand)]
    Volume(VolumeCommand),
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    Clone(CloneArgs),
    #[command(subcommand)]
    Bucket(BucketCommand),
    Put(PutArgs),
    Get(GetArgs),
    Ls(LsArgs),
    Rm(RmArgs),
    Cp(CpArgs),
    #[command(subcommand)]
    Account(AccountCommand),
    Diff(DiffArgs),
    Import(ImportArgs),
    Export(ExportArgs),
    Estimate(EstimateArgs),
    Plan(PlanArgs),
    #[command(subcommand)]
    Bench(BenchCommand),
    Replay(ReplayArgs),
    Stats(StatsArgs),
    Explain(ExplainArgs),
    Check(CheckArgs),
    Scrub(ScrubArgs),
    Collect(CollectArgs),
    Grow(GrowArgs),
    #[command(subcommand)]
    Data(DataCommand),
    Set(SetArgs),
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Complete(CompleteArgs),
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

/// Print what the last word of a command line can become; shells ask this
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis complete -- tamis volume show /srv/store vm")]
pub(crate) struct CompleteArgs {
    /// The words of the command line, its last one as far as it is typed
    #[arg(last = true, value_name = "WORD")]
    pub(crate) words: Vec<OsString>,
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
        assert!(found.len() >= 19, "{found:?}");
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
        assert_eq!(serve.warn, engine::WARN_PERCENT_DEFAULT);
        let cli = Cli::try_parse_from(["tamis", "check", "s"]).unwrap();
        let Command::Check(check) = cli.command else { panic!() };
        assert_eq!(check.memory, serve.engine.memory);
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
            "tamis check s --memory 1M",
            "tamis serve s --nbd 10809",
            "tamis serve s --capacity 1G",
            "tamis serve s --threads 0",
            "tamis serve s --warn 0%",
            "tamis serve s --warn 80%,101%",
            "tamis stats s --warn much",
            "tamis bench",
            "tamis bench detect",
            "tamis estimate",
            "tamis estimate x --memory 1M",
            "tamis estimate x --chunk-size 4K,5K",
            "tamis estimate x --compression lz4,gzip",
            "tamis explain s v",
            "tamis explain s v 1 --offset 4K",
            "tamis volume create s v",
            "tamis volume set s v",
            "tamis volume set s v --quota 0",
            "tamis volume set s v --compression gzip",
            "tamis volume create s v --size 1M --compression all",
            "tamis import s v i --compression zstd:99",
            "tamis snapshot create s",
            "tamis snapshot create s v",
            "tamis snapshot create s @a",
            "tamis snapshot create s v@",
            "tamis snapshot create s v@a --name b",
            "tamis snapshot create s --group v,w",
            "tamis snapshot create s --name b",
            "tamis snapshot create s v@a --group w --name a",
            "tamis snapshot delete s",
            "tamis snapshot delete s v",
            "tamis snapshot rollback s v",
            "tamis clone s v w",
            "tamis diff s v",
            "tamis export s v@b f --from @",
            "tamis export s v@b f --from v@a",
            "tamis export s v@b f --from @a --stream",
            "tamis replay",
            "tamis replay f --workload write-h",
            "tamis replay --workload write-x",
            "tamis replay f --compressible 101%",
            "tamis replay f --store s --chunk-size 8K",
            "tamis replay f --to g",
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
