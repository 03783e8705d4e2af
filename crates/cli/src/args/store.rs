//! The store itself: made, made larger, set.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use format::detection::{Detection, FilterBlocks, FingerprintKind};
use format::units::{Codec, Compression};

use super::options::Format;
use super::values::{parse_chunk_size, parse_filter_bits, parse_fingerprint};
use crate::size::parse_size;

/// Make a store: a directory in which volumes can be created
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis init /srv/store --capacity 500G
  tamis init /srv/store --data /dev/sdb --data /dev/sdc \\
      --tables /dev/nvme0n1p4 --journal /dev/nvme0n1p5 --compression zstd:3
  tamis init /srv/store --fingerprint sha256
The second puts the data on two disks, used whole, and tables and journal on a
fast one.

Tables and journal take their room at once. A data file takes a step now, 1/64
of its size (64 MiB to 4 GiB), and the next one before that is used up. Where
its file system has no room for the next, writes fail with \"no space\" until it
has; --preallocate takes all the room now.

Which --fingerprint, for as long as the store lives:
  blake3      the fastest that is strong; right unless you know better
  sha256      for those whose rules say SHA-2; fast with SHA instructions or
              AVX-512
  sha512-256, sha3-256, blake2b
              strong as well, 7 to 27 times the time of blake3
  xxh3        a third of the time of blake3, but every duplicate is read and
              compared: where few chunks repeat and the disk reads fast
  ecc-crc64, ecc-bch
              codes that flash devices make themselves, as in EaD; here they
              take longer than blake3
  md5, sha1   to compare with, no more
Two chunks may share a fingerprint of the last three lines, and anybody can make
such chunks: these need --verify. With a strong one --verify rules out that a
hash collision maps a chunk to other data.")]
pub(crate) struct InitArgs {
    /// Directory of the store; made if it is not there
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) shape: StoreShape,
    #[command(flatten)]
    pub(crate) making: Making,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// What a store is made like.
#[derive(Debug, Args)]
pub(crate) struct StoreShape {
    /// Room for data, after deduplication and compression, at least 64M [default: 100G, or half of
    /// the free space when that is less]
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
    #[arg(long, value_name = "CODEC", value_parser = Compression::from_str, default_value = "lz4")]
    pub(crate) compression: Compression,
    /// What tells that a chunk is stored already: blake3, sha256, sha3-256, sha512-256 or blake2b;
    /// with --verify also sha1, md5, xxh3, ecc-bch or ecc-crc64
    #[arg(long, value_name = "KIND", value_parser = parse_fingerprint, default_value = "blake3")]
    pub(crate) fingerprint: FingerprintKind,
    /// Compare the bytes as well before a chunk counts as stored already
    #[arg(long)]
    pub(crate) verify: bool,
    /// Size of the filter in memory, 2 to 27 bits for each stored chunk, beside --memory; it
    /// answers most look-ups of new chunks without reading tables: 10 are wrong once in a hundred,
    /// 16 once in a thousand
    #[arg(long, value_name = "BITS", value_parser = parse_filter_bits, default_value = "10")]
    pub(crate) filter_bits: FilterBlocks,
}

/// How a store is made.
#[derive(Debug, Args)]
pub(crate) struct Making {
    /// Take all the room of data files now, instead of a step ahead of what is written
    #[arg(long)]
    pub(crate) preallocate: bool,
    /// Do not ask before a store is made in a directory that has other files in it
    #[arg(long, short)]
    pub(crate) yes: bool,
}

impl StoreShape {
    pub(crate) fn detection(&self) -> Detection {
        let (kind, verify, filter) = (self.fingerprint, self.verify, self.filter_bits);
        Detection { kind, verify, filter, ..Detection::default() }
    }

    /// Every place that is named for a part of the store.
    pub(crate) fn places(&self) -> Vec<&Path> {
        let named = self.data.iter().chain(&self.tables).chain(&self.journal);
        named.map(PathBuf::as_path).collect()
    }

    /// A store in one directory with all the defaults.
    pub(crate) fn with_capacity(capacity: Option<u64>) -> Self {
        Self {
            capacity,
            data: Vec::new(),
            tables: None,
            journal: None,
            chunk_size: 4096,
            compression: Compression { codec: Codec::Lz4, level: 0 },
            fingerprint: FingerprintKind::default(),
            verify: false,
            filter_bits: FilterBlocks::default(),
        }
    }
}

/// Make a store larger, also while it is being served
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis grow /srv/store --capacity 800G  lengthen the last data file
  tamis grow /srv/store --data /dev/sdd  add a disk, used whole
  tamis grow /srv/store                  use what the last data device has grown by
Volumes stay as they are: `tamis volume resize` makes them larger. While the
store is served its server does the work, so what is added must be the server's
to use.")]
pub(crate) struct GrowArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Room for data in all that the store is to have; needed where a file grows or is added,
    /// not where a device is; files that are added share what it adds
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) capacity: Option<u64>,
    /// Where more data is kept: a file to be made, or a block device, which is used whole; may be
    /// given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Change settings of a store
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis set /srv/store --compression zstd:3
What is stored stays as it is; what is written from now on is compressed so, but
for volumes with a codec of their own (`tamis volume set --compression`). Works
while the store is being served.")]
pub(crate) struct SetArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// lz4, zstd, zstd:LEVEL (-7 to 22) or none
    #[arg(long, value_name = "CODEC", value_parser = Compression::from_str, required = true)]
    pub(crate) compression: Compression,
    #[command(flatten)]
    pub(crate) format: Format,
}
