//! What a store is asked of itself: figures, and whether it is sound.

use std::path::PathBuf;

use clap::Args;
use format::units::Zone;

use super::options::Format;
use super::values::{Rate, parse_memory, parse_percent, parse_rate, parse_spare_zone};

/// Show what a store holds and what was saved
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis stats /srv/store
  tamis stats /srv/store --json | jq .reduction_ratio
  tamis stats /srv/store --volumes
      reads the maps of all volumes, and shows what is unique to each and what
      deleting it frees
  tamis stats /srv/store --warn 80%
The UUID in its last line is what messages call the store by that find its disks
elsewhere. While the store is being served the rates of half a second are shown
as well. With --warn the exit code is 10 when more of the room for data or for
tables is used: for timers and monitors.")]
pub(crate) struct StatsArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Exit code 10 when so much of the room for data or tables is used that does not come back by
    /// collection
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) warn: Option<u8>,
    /// Show for every volume and snapshot what is unique to it, what it shares, and what deleting
    /// it frees
    #[arg(long)]
    pub(crate) volumes: bool,
    /// Show tables, caches, what was written, and where time goes, too; of a store that is served
    #[arg(long, conflicts_with = "json")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Verify every invariant of a store that is not being served, and mend it if asked to
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis check /srv/store
  tamis check /srv/store --repair
  tamis check /srv/store --repair --without-zone data.1
      the device of data.1 is lost, and another one is in its place; with
      journal, what was flushed since the last checkpoint is lost, even if that
      journal is found later: the store goes on with the other one
  tamis check /srv/store --repair --without-volume huge
      more of a volume is lost than the tables have room to say: it goes, and
      the others are mended
  tamis check /srv/store --undo /srv/store/repair.undo
      the store is as it was before the repair that wrote this file, even if
      that was cut off; not once it has been opened since
Reads all tables, containers and counts, and the indexes of all buckets, and
changes nothing. Exit code 0 means sound, 5 means that damage was found; each
piece is named with what it affects: volumes, chunks and bytes. With --repair
the tables are made again from what is intact: reference counts, Hash-PBN and
PBN-PBA tables, free PBNs, container table, directories, roots, and files that
were cut short. Chunks that nothing can bring back stay errors when they are
read, until they are written again. Nothing is overwritten before all is written
again, and what stood there is kept in a file. A bucket with faults gets a new
index of all records that can be read, and what is lost is named. Exit code 8
means that all is well again, 9 that something is lost, 5 that damage is left
which no repair mends, or that the store could not be repaired and is as it was
(but that a file which was cut short has its length again).")]
pub(crate) struct CheckArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Mend what can be mended
    #[arg(long)]
    pub(crate) repair: bool,
    /// Repair although what stands in this zone (data, data.1, journal) is not what the store wrote
    /// there, and abandon what it held; may be given several times
    #[arg(long, value_name = "ZONE", requires = "repair", value_parser = parse_spare_zone)]
    pub(crate) without_zone: Vec<Zone>,
    /// Abandon this volume with its snapshots, or this snapshot, where the tables have no room to
    /// say what of it is lost; may be given several times
    #[arg(long, value_name = "VOLUME[@SNAPSHOT]", requires = "repair")]
    pub(crate) without_volume: Vec<String>,
    /// Where a repair keeps what it overwrites; the file must not be there [default: repair.undo in
    /// the store's directory, or the next such name]
    #[arg(long, value_name = "FILE", requires = "repair")]
    pub(crate) undo_file: Option<PathBuf>,
    /// Take the repair back that wrote this file
    #[arg(long, value_name = "FILE", conflicts_with = "repair")]
    pub(crate) undo: Option<PathBuf>,
    /// Memory for pages of the tables, at least 64M: a check is faster where all of them fit;
    /// auto is 1G, or half of what the machine or its control group has where that is less;
    /// beside it come about 50 bytes for each stored chunk, twice that where there is damage
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, default_value = "auto")]
    pub(crate) memory: u64,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Read and verify all that is stored, and heal what can be healed; also while it is served
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis scrub /srv/store
      reads every frame, directory, page of tables and copy in the superblock;
      what has a second copy heals, the rest is named with the volumes and
      chunks it affects
  tamis scrub /srv/store --fingerprint --rate 50M
      recomputes every fingerprint as well, and reads 50 MiB a second
  tamis scrub /srv/store --status

Ctrl-C pauses it: the next `tamis scrub` goes on where it was. A chunk that is
damaged heals as well when a client writes the same content again. Exit code 0
means sound or healed, 5 that damage is left.")]
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
