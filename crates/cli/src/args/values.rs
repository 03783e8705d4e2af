//! Values of options: what they may be, and what is said of those that may not.

use disk::ZoneName;
use format::catalog::Dedup;
use format::detection::{FilterBlocks, FingerprintKind};
use format::units::{Compression, Zone};
use images::{ForeignFormat, ImageFormat};
use traces::WorkloadKind;

use crate::compression::{CompressionError, parse_compression};
use crate::size::parse_size;

/// Chunk sizes that a store can be made with.
pub(crate) const CHUNK_SIZES: [u32; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// How fast something may be read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    Unlimited,
    BytesPerSecond(u64),
}

/// What a volume may map at most.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Quota {
    None,
    Bytes(u64),
}

impl Quota {
    /// The same, as the engine takes it.
    pub(crate) fn bytes(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// What to compress with, where several may be tried.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Codecs {
    All,
    One(Compression),
}

/// A snapshot by its full name, `VOLUME@NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotName {
    pub(crate) volume: String,
    pub(crate) name: String,
}

impl std::fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.volume, self.name)
    }
}

pub(super) fn parse_fingerprint(text: &str) -> Result<FingerprintKind, String> {
    FingerprintKind::from_name(text).ok_or_else(|| {
        let names = FingerprintKind::ALL.map(FingerprintKind::name);
        format!("use one of {}", names.join(", "))
    })
}

pub(super) fn parse_chunk_size(text: &str) -> Result<u32, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    let found = CHUNK_SIZES.into_iter().find(|allowed| u64::from(*allowed) == bytes);
    found.ok_or_else(|| "use 4K, 8K, 16K, 32K or 64K".to_owned())
}

pub(super) fn parse_rate(text: &str) -> Result<Rate, String> {
    if text == "unlimited" {
        return Ok(Rate::Unlimited);
    }
    match parse_size(text).map_err(|error| error.to_string())? {
        0 => Err("it must be more than nothing, or unlimited".to_owned()),
        bytes => Ok(Rate::BytesPerSecond(bytes)),
    }
}

pub(super) fn parse_dedup(text: &str) -> Result<Dedup, String> {
    Dedup::from_name(text).ok_or_else(|| "use on, off or auto".to_owned())
}

/// What `--format` says of an image.
/// What `tamis import --format` names.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImportFormat {
    /// A disk.
    Image(ImageFormat),
    /// What `tamis export --stream` and `--from` write.
    Stream,
}

pub(super) fn parse_import_format(text: &str) -> Result<ImportFormat, String> {
    match text {
        "raw" => Ok(ImportFormat::Image(ImageFormat::Raw)),
        "qcow2" => Ok(ImportFormat::Image(ImageFormat::Qcow2)),
        "stream" => Ok(ImportFormat::Stream),
        other => match ForeignFormat::of_qemu(other) {
            Some(format) => Ok(ImportFormat::Image(ImageFormat::Foreign(format))),
            None => {
                Err("use raw, qcow2 or stream; vmdk, vhdx, vdi, vpc, qed, parallels, bochs and \
                         dmg are read through qemu-nbd"
                    .to_owned())
            }
        },
    }
}

pub(super) fn parse_quota(text: &str) -> Result<Quota, String> {
    if text == "none" {
        return Ok(Quota::None);
    }
    match parse_size(text).map_err(|error| error.to_string())? {
        0 => Err("it must be more than nothing, or none".to_owned()),
        bytes => Ok(Quota::Bytes(bytes)),
    }
}

/// `80%`, or the number alone.
pub(super) fn parse_percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let percent = number.filter(|percent| (1..=100).contains(percent));
    percent.ok_or_else(|| "use a percentage from 1% to 100%".to_owned())
}

/// A zone that a store can do without, as its file is called.
pub(super) fn parse_spare_zone(text: &str) -> Result<Zone, String> {
    match ZoneName::of_file(text) {
        Some(ZoneName(zone @ (Zone::Journal | Zone::Data(_)))) => Ok(zone),
        _ => Err("name a zone as its file: data, data.1, journal".to_owned()),
    }
}

/// `VOLUME@NAME`.
pub(super) fn parse_snapshot(text: &str) -> Result<SnapshotName, String> {
    match text.split_once('@') {
        Some((volume, name)) if !volume.is_empty() && !name.is_empty() => {
            Ok(SnapshotName { volume: volume.to_owned(), name: name.to_owned() })
        }
        _ => Err("name the volume and the snapshot as VOLUME@NAME".to_owned()),
    }
}

/// `@NAME`, or the name alone.
pub(super) fn parse_base(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('@').unwrap_or(text);
    match name.is_empty() || name.contains('@') {
        true => Err("name a snapshot of the same volume as @NAME".to_owned()),
        false => Ok(name.to_owned()),
    }
}

/// Bits of filter for each chunk.
pub(super) fn parse_filter_bits(text: &str) -> Result<FilterBlocks, String> {
    let blocks = text.parse().ok().and_then(FilterBlocks::nearest_to);
    blocks.ok_or_else(|| "use a number of bits from 2 to 27".to_owned())
}

pub(super) fn parse_memory(text: &str) -> Result<u64, String> {
    parse_at_least(text, engine::MEMORY_BYTES_MIN)
}

pub(super) fn parse_estimate_memory(text: &str) -> Result<u64, String> {
    parse_at_least(text, estimate::MEMORY_BYTES_MIN)
}

fn parse_at_least(text: &str, bytes_min: u64) -> Result<u64, String> {
    match parse_size(text).map_err(|error| error.to_string())? {
        bytes if bytes < bytes_min => Err(format!("it must be at least {}M", bytes_min >> 20)),
        bytes => Ok(bytes),
    }
}

/// `50%`, or the number alone; nothing at all as well.
pub(super) fn parse_compressible(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let percent = number.filter(|percent| (0..=100).contains(percent));
    percent.ok_or_else(|| "use a percentage from 0% to 100%".to_owned())
}

/// One of FIDR's workloads.
pub(super) fn parse_workload(text: &str) -> Result<WorkloadKind, String> {
    let found = WorkloadKind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| "use write-h, write-m, write-l or read-mixed".to_owned())
}

pub(super) fn parse_codecs(text: &str) -> Result<Codecs, CompressionError> {
    if text == "all" { Ok(Codecs::All) } else { parse_compression(text).map(Codecs::One) }
}
