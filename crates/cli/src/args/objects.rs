//! Objects of buckets.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::options::{Confirm, Format};
use super::values::parse_duration;

/// Put a file into a bucket, as an object
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis put cat.jpg /srv/store/photos/2026/cat.jpg
  tamis put cat.jpg /srv/store/photos/2026/
      a target that ends in / takes the name of the file
  pg_dump db | tamis put - /srv/store/dumps/db.sql --expires-in 30d
  tamis put -r ./site /srv/store/www/
      all files below the directory; their paths become their keys
STORE is the longest leading path that is a store, BUCKET the next part, and all
behind it is the key. It is durable when the command ends, and replaces what the
key held in one step; if it fails nothing has changed. Links are followed where
they are named, and left out below a directory.")]
pub(crate) struct PutArgs {
    /// The file, - for standard input, or with -r a directory
    pub(crate) file: PathBuf,
    /// Where it goes
    #[arg(value_name = "STORE/BUCKET/KEY")]
    pub(crate) target: OsString,
    /// Put all files below a directory
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Put it only if the key has no object; else the exit code is 7
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// How long the object stays: a number and s, m, h, d or w
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) expires_in: Option<Duration>,
    /// What kind of content it is, such as text/plain
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Get an object out of a bucket, as a file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis get /srv/store/photos/2026/cat.jpg
      into cat.jpg
  tamis get /srv/store/photos@monday/2026/cat.jpg old.jpg
  tamis get /srv/store/dumps/db.sql - | psql db
  tamis get -r /srv/store/www/ ./site
      all objects whose keys begin so, below the directory
A file has its name when it is whole: of an object that is damaged none is made.
With -r a key that leads out of the directory is refused by name.")]
pub(crate) struct GetArgs {
    /// What to get
    #[arg(value_name = "STORE/BUCKET/KEY")]
    pub(crate) source: OsString,
    /// The file, - for standard output, or with -r a directory [default: the last part of the key]
    pub(crate) file: Option<PathBuf>,
    /// Get all objects whose keys begin so
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// List the objects of a bucket
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis ls /srv/store/photos
  tamis ls -l /srv/store/photos/2026/
  tamis ls -r /srv/store/photos@monday
Keys are listed in the order of their bytes, up to the next /; with -r all of
them. They are printed as they come, however many there are. With --json each is
a line with a document of its own.")]
pub(crate) struct LsArgs {
    /// The bucket, and what keys begin with
    #[arg(value_name = "STORE/BUCKET[/PREFIX]")]
    pub(crate) source: OsString,
    /// Show size, time (UTC) and ETag
    #[arg(long, short)]
    pub(crate) long: bool,
    /// Do not stop at /
    #[arg(long, short)]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Delete objects
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis rm /srv/store/photos/2026/cat.jpg
  tamis rm -r /srv/store/photos/2026/
The second deletes all objects whose keys begin so: at a terminal it asks first;
elsewhere, in a script, it needs --yes. A delete is durable when the command
ends; snapshots keep what they hold.")]
pub(crate) struct RmArgs {
    /// What to delete
    #[arg(value_name = "STORE/BUCKET/KEY", required = true)]
    pub(crate) targets: Vec<OsString>,
    /// Delete all objects whose keys begin so
    #[arg(long, short)]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Copy an object inside a store
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis cp /srv/store/photos/cat.jpg /srv/store/photos/kitten.jpg
  tamis cp /srv/store/photos@monday/cat.jpg /srv/store/photos/
Inside a bucket no bytes move, however large the object is. A target that ends
in / takes the last part of the key. What the target held is replaced.")]
pub(crate) struct CpArgs {
    /// What to copy
    #[arg(value_name = "STORE/BUCKET/KEY")]
    pub(crate) source: OsString,
    /// Where the copy goes
    #[arg(value_name = "STORE/BUCKET/KEY")]
    pub(crate) target: OsString,
    /// Copy it only if the target has no object; else the exit code is 7
    #[arg(long)]
    pub(crate) if_absent: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}
