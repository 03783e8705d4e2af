//! Making room now.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use format::units::Compression;

use super::options::Format;
use super::values::{Rate, parse_percent, parse_rate};

/// Make room now: reclaim what is overwritten or deleted, and compress harder if asked to
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis collect /srv/store
      moves what is in use out of every container of which a sixteenth or more
      is garbage
  tamis collect /srv/store --to 80%
      stops as soon as no more than 80% of the room for data is taken
  tamis collect /srv/store --recompress zstd:9 --rate 50M
      goes through every container, the oldest first, and stores what becomes
      shorter by it anew

A store collects by itself when its room becomes scarce; this does so before, at
night for example. Garbage, which was overwritten or deleted, takes room until
it is reclaimed. So what is taken is never less than what `tamis stats` calls
used, and the same once nothing else is worth moving. Ctrl-C ends it after the
container it is at; nothing is lost. While the store is being served clients go
on. --recompress takes one codec for all that it moves, also of volumes that
have one of their own. What is written later is compressed as `tamis set` and
`tamis volume set` say. Exit code 10 means that --to could not be reached:
nothing else is worth moving.")]
pub(crate) struct CollectArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Stop when no more than this part of the room for data is taken, by data in use or garbage
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) to: Option<u8>,
    /// Compress what is moved with lz4, zstd or zstd:LEVEL, and move all that becomes shorter by it
    #[arg(long, value_name = "CODEC", value_parser = Compression::from_str)]
    pub(crate) recompress: Option<Compression>,
    /// How much to read a second: a size, or unlimited [default: 100M while the store is being
    /// served, else unlimited]
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    pub(crate) rate: Option<Rate>,
    #[command(flatten)]
    pub(crate) format: Format,
}
