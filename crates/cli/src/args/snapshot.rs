//! Snapshots, and clones made from them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::{Confirm, Force, Format};
use super::values::{SnapshotName, parse_snapshot};

/// Take, list and delete snapshots, and go back to them
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  tamis snapshot create /srv/store vm1@monday
  tamis snapshot list /srv/store vm1
A snapshot is what its volume held at one moment: it is taken at once however
large the volume is, takes room only for what the volume overwrites later, and
does not change. It is read over NBD, or with `tamis export`, under its full
name, and `tamis clone` makes a volume of it. All of them also work while the
store is being served.")]
pub(crate) enum SnapshotCommand {
    Create(SnapshotCreateArgs),
    List(SnapshotListArgs),
    Delete(SnapshotDeleteArgs),
    Rollback(SnapshotRollbackArgs),
}

/// Take a snapshot of a volume, or of several at one moment
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis snapshot create /srv/store vm1@monday
  tamis snapshot create /srv/store data@monday log@monday
  tamis snapshot create /srv/store --group data,log --name monday
The second and the third do the same: both volumes as they were at one moment.
It holds all that was acknowledged before; what programs and file systems keep
back themselves is not in it (`sync`, or fsfreeze, brings that out first). The
time that `snapshot list` shows is when it was asked for: where the store has no
room for it yet it is taken when there is some, as the volume is then.")]
pub(crate) struct SnapshotCreateArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Volume, and name of its snapshot; of several the name is the same
    #[arg(
        value_name = "VOLUME@NAME",
        value_parser = parse_snapshot,
        required_unless_present = "group",
        conflicts_with_all = ["group", "name"]
    )]
    pub(crate) snapshots: Vec<SnapshotName>,
    /// The volumes, separated by commas
    #[arg(long, value_name = "VOLUME", value_delimiter = ',', requires = "name")]
    pub(crate) group: Vec<String>,
    /// Name of each of their snapshots
    #[arg(long, requires = "group")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// List snapshots, of one volume or of all
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis snapshot list /srv/store vm1")]
pub(crate) struct SnapshotListArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the volume
    pub(crate) volume: Option<String>,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Delete snapshots; what nothing else uses comes back in the background
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis snapshot delete /srv/store vm1@monday vm1@tuesday
Volumes and clones keep what they hold. At a terminal it asks first; elsewhere
it needs --yes. While clients have a snapshot open it is refused and names them;
--force disconnects them first.")]
pub(crate) struct SnapshotDeleteArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Volume and snapshot
    #[arg(value_name = "VOLUME@NAME", value_parser = parse_snapshot, required = true)]
    pub(crate) snapshots: Vec<SnapshotName>,
    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Roll a volume back to a snapshot
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis snapshot rollback /srv/store vm1@monday
What vm1 holds now is lost, unless a snapshot holds it; all snapshots stay. At a
terminal it asks first; elsewhere it needs --yes. While clients have the volume
open it is refused and names them; --force disconnects them first.")]
pub(crate) struct SnapshotRollbackArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Volume and snapshot
    #[arg(value_name = "VOLUME@NAME", value_parser = parse_snapshot)]
    pub(crate) snapshot: SnapshotName,
    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Make a volume that begins as a snapshot, at once; it takes no room until it is written
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis clone /srv/store vm1@monday vm2
From then on vm2 is a volume like any other: both change, and neither sees the
other's changes.")]
pub(crate) struct CloneArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Volume and snapshot
    #[arg(value_name = "VOLUME@NAME", value_parser = parse_snapshot)]
    pub(crate) snapshot: SnapshotName,
    /// Name of the new volume
    pub(crate) new_name: String,
    #[command(flatten)]
    pub(crate) format: Format,
}
