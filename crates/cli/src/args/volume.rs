//! Volumes.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use engine::Dedup;

use super::options::{Confirm, Force, Format};
use super::values::{Quota, VolumeCodec, parse_dedup, parse_quota, parse_volume_codec};
use crate::size::parse_size;

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
    Set(VolumeSetArgs),
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
Examples:
  tamis volume create /srv/store vm1 --size 40G --quota 10G
  tamis volume create /srv/store vm2 --size 40G --domain tenantA
  tamis volume create /srv/store logs --size 40G --compression zstd:9
A domain begins with its first volume and ends with its last volume or snapshot;
`volume list` names them. Chunks are shared inside a domain only; volumes
without --domain share with each other. No volume ever changes its domain;
snapshots and clones are in that of what they came from.")]
pub(crate) struct VolumeCreateArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Logical size, a multiple of 512 bytes, up to 1P
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: u64,
    /// Refuse all writes to it
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Maximum data that the volume may hold, as `tamis volume set --quota`
    #[arg(long, value_name = "SIZE", value_parser = parse_quota)]
    pub(crate) quota: Option<Quota>,
    /// Room that is its own, as `tamis volume set --reservation`
    #[arg(long, value_name = "SIZE", value_parser = parse_quota)]
    pub(crate) reservation: Option<Quota>,
    /// Deduplication domain: its chunks are shared inside the domain only, and times tell nothing
    /// of it outside
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// Whether duplicates are looked for among its chunks: on, off or auto (`tamis volume set`)
    #[arg(long, value_name = "on|off|auto", value_parser = parse_dedup)]
    pub(crate) dedup: Option<Dedup>,
    /// Look for no duplicates among its chunks: --dedup off
    #[arg(long, conflicts_with = "dedup")]
    pub(crate) no_dedup: bool,
    /// What its data is compressed with: lz4, zstd, zstd:LEVEL, none, or store (`tamis volume set`)
    /// [default: store]
    #[arg(long, value_name = "CODEC", value_parser = parse_volume_codec)]
    pub(crate) compression: Option<VolumeCodec>,
}

/// Change what a volume may take of the store, and how its data is stored
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis volume set /srv/store vm1 --quota 10G
  tamis volume set /srv/store vm1 --quota none
  tamis volume set /srv/store vm1 --reservation 8G
  tamis volume set /srv/store vm1 --dedup off
  tamis volume set /srv/store vm1 --compression zstd:9
  tamis volume set /srv/store vm1 --compression store
A quota bounds what the volume maps, as `tamis volume list` shows it: each chunk
in full, before deduplication and compression, so that it is the most that the
volume can take of the store; without its snapshots. Writes that would map more
fail with no-space, for this volume only; writing over what is mapped, trims and
reads go on. Each write to a volume with a quota is acknowledged later than to
one without: its latency is higher. A reservation is room of the volume's own:
what it does not map yet of so much of it counts as taken for everybody else,
each chunk in full, as if nothing were stored already or could be compressed,
and with what a flush behind each may pad (in a store of 4-KiB chunks, twice the
data). So a write of new data to it finds room however full the store is. It is
refused where that room is not free now. What is written over what the volume
maps takes room as in any volume, and gives back what it replaces unless a
snapshot or another volume holds that. A reservation is no more than the size
and the quota; deleting the volume ends it. With --dedup off, what is written to
the volume from now on is not looked up in the store's tables, and later writes
do not find it: for data that is known to have no duplicates, such as encrypted
disks, it saves the look-up and the table's entry. It is still compressed and
checked. What the volume holds stays as it is, and shared where it is. With
--dedup auto it is so only while the volume brings hardly any: every 1024 new
chunks (4 MiB of 4-KiB chunks) the choice is made again from the duplicates
among an eighth of them, which are looked up always; fewer than one in 64, and
the others are not. When duplicates come back all are looked up again; what was
stored meanwhile is found only if it was in that eighth. The first volume with
off or auto makes the store on-disk format 3. With --compression, what the
volume brings from now on is compressed so, whatever `tamis set` says; store, or
default, follows the store again. What is stored stays as it is, and a chunk
that some volume has stored already is shared as that one stored it. Snapshots
and clones have the codec of their volume; `tamis collect --recompress` moves
all data with one codec. The first volume with a codec or a reservation makes
the store on-disk format 4, which older programs refuse.")]
#[command(override_usage = "tamis volume set [OPTIONS] <STORE> <NAME>")]
#[command(group(
    ArgGroup::new("what")
        .required(true)
        .multiple(true)
        .args(["quota", "reservation", "dedup", "compression"])
))]
pub(crate) struct VolumeSetArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Maximum data that the volume may hold, or none
    #[arg(long, value_name = "SIZE", value_parser = parse_quota)]
    pub(crate) quota: Option<Quota>,
    /// Room that nobody else takes, for what it does not map yet of so much of it, or none
    #[arg(long, value_name = "SIZE", value_parser = parse_quota)]
    pub(crate) reservation: Option<Quota>,
    /// Whether duplicates are looked for among what is written to it from now on: on, off or auto
    #[arg(long, value_name = "on|off|auto", value_parser = parse_dedup)]
    pub(crate) dedup: Option<Dedup>,
    /// What is written to it from now on is compressed with: lz4, zstd, zstd:LEVEL (-7 to 22),
    /// none, or store, as the store's
    #[arg(long, value_name = "CODEC", value_parser = parse_volume_codec)]
    pub(crate) compression: Option<VolumeCodec>,
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

/// Show what a volume or snapshot holds, and what deleting it would free
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis volume show /srv/store vm1
      what of it is unique, which no other volume or snapshot holds and which
      its deletion frees, what is shared, its compression, and how often its
      chunks are referred to
  tamis volume show /srv/store vm1@monday --json
  tamis volume show /srv/store vm1 --quick
      only what is known without going through its map
Works while the store is being served. Figures are exact if nothing is written
meanwhile.")]
pub(crate) struct VolumeShowArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Do not go through the map
    #[arg(long)]
    pub(crate) quick: bool,
}

/// Change the size of a volume
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis volume resize /srv/store vm1 --size 80G
  tamis volume resize /srv/store vm1 --size 20G --shrink
The second cuts off what lies beyond 20 GiB, for good. It is refused while
clients have the volume open, unless --force disconnects them; at a terminal it
asks first, elsewhere it needs --yes. A volume grows while clients have it open;
they see the new size when they connect again. Without --shrink nothing is ever
cut off, even if another command has just made the volume larger than the size
asked for.")]
pub(crate) struct VolumeResizeArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Logical size from now on, a multiple of 512 bytes, up to 1P
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: u64,
    /// Allow a smaller size; what lies beyond it is lost
    #[arg(long)]
    pub(crate) shrink: bool,
    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
}

/// Give a volume another name
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis volume rename /srv/store vm1 web-server
Clients that have it open go on. One that connects again asks for the old name.")]
pub(crate) struct VolumeRenameArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Its name from now on
    pub(crate) new_name: String,
}

/// Delete a volume and all that it holds; clones of its snapshots stay
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis volume delete /srv/store vm1
  tamis volume delete /srv/store vm1 --with-snapshots
At a terminal it asks first; elsewhere, in a script, it needs --yes. Only what
was asked about is deleted: if another volume has the name by the time of the
answer, or there are further snapshots, nothing is. While clients have the
volume open, or one of the snapshots that go with it, it is refused and names
them; --force disconnects them first.")]
pub(crate) struct VolumeDeleteArgs {
    #[command(flatten)]
    pub(crate) of: VolumeName,
    /// Delete its snapshots as well
    #[arg(long)]
    pub(crate) with_snapshots: bool,
    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
}
