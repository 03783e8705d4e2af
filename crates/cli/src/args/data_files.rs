//! Data files of a store: listed, replaced, removed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::Format;
use super::values::{Rate, parse_rate};

/// List, replace and remove the files and disks that hold a store's data
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  tamis data list /srv/store
  tamis data replace /srv/store data.0 /dev/sdd
  tamis data remove /srv/store data.1
All of them also work while the store is being served. `tamis grow --data` adds
a file or a disk.")]
pub(crate) enum DataCommand {
    List(DataListArgs),
    Replace(DataReplaceArgs),
    Remove(DataRemoveArgs),
}

/// List the data files of a store
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis data list /srv/store
A file that was removed keeps its number, and an empty file keeps its name in
the store's directory: leave that there.")]
pub(crate) struct DataListArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Move what a data file holds into the others, and take it out of the store
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis data remove /srv/store data.1
  tamis data remove /srv/store /dev/sdc --rate 50M
The others must have room for what is in use in it. Clients go on, and nothing
new is placed in it meanwhile. Ctrl-C ends it after the container it is at: the
file is used again, and what was moved has moved. After a kill the same command
goes on. At the end the file is cut and deleted; a disk is blanked at its start,
so that it can be used for something else. A frame in it that is damaged keeps
it in the store: see `tamis scrub`.")]
pub(crate) struct DataRemoveArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Its name in `tamis data list`, or its path
    pub(crate) file: PathBuf,
    /// How much to read a second: a size, or unlimited [default: 100M while the store is being
    /// served, else unlimited]
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    pub(crate) rate: Option<Rate>,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Add a data file, and move what another holds into it and the rest
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis data replace /srv/store data.0 /dev/sdd
  tamis data replace /srv/store data.1 /mnt/new/tamis --rate 50M
Does what `tamis grow --data NEW` and `tamis data remove OLD` do one after the
other: a file that is made gets the room that OLD has, a disk is used whole.
What was moved may lie in any of the other files. After a kill, or when it was
ended, the same command goes on.")]
pub(crate) struct DataReplaceArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// The one that goes: its name in `tamis data list`, or its path
    pub(crate) old: PathBuf,
    /// The one that comes: a file to be made, or a block device, which is used whole
    pub(crate) new: PathBuf,
    /// How much to read a second: a size, or unlimited [default: 100M while the store is being
    /// served, else unlimited]
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    pub(crate) rate: Option<Rate>,
    #[command(flatten)]
    pub(crate) format: Format,
}
