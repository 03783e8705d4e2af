//! Questions about one address.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use engine::Address;

use super::options::Format;
use super::values::parse_count;
use crate::size::parse_size;

/// Walk one address of a volume through the tables, down to the bytes on disk
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis explain /srv/store vm1 262144
      chunk 262144 of the volume: the pages of its map, the chunk's name (PBN),
      where its frame is (PBA), how often it is referred to, its codec and
      fingerprint, and the bucket that holds it
  tamis explain /srv/store vm1 --offset 1GiB
      the chunk in which this byte lies
Works while the store is being served. Exit code 5 means that the chunk is
damaged.")]
#[command(override_usage = "tamis explain [OPTIONS] <STORE> <VOLUME> <LBA|--offset <SIZE>>")]
#[command(group(ArgGroup::new("address").required(true).args(["lba", "offset"])))]
pub(crate) struct ExplainArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the volume
    pub(crate) volume: String,
    /// Number of the chunk, counted from 0 in units of the chunk size
    #[arg(value_parser = parse_count)]
    lba: Option<u64>,
    /// A byte of the chunk
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    offset: Option<u64>,
    #[command(flatten)]
    pub(crate) format: Format,
}

impl ExplainArgs {
    /// What is asked about.
    pub(crate) fn address(&self) -> Address {
        match (self.lba, self.offset) {
            (Some(lba), _) => Address::Lba(lba),
            (None, offset) => Address::OffsetBytes(offset.unwrap_or(0)),
        }
    }
}
