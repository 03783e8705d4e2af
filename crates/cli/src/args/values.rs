//! Values of options: what they may be, and what is said of those that may not.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use admin::Segments;
use disk::ZoneName;
use format::catalog::Dedup;
use format::detection::{FilterBlocks, FingerprintKind};
use format::units::{Compression, CompressionNameError, Zone};
use images::{ForeignFormat, ImageFormat};
use memcached_door::Address;
use threads::MemoryLimit;
use traces::WorkloadKind;

use crate::size::{human_bytes, parse_size};

/// The slowest rate that a scrub or a collection keeps: a step of them takes some megabytes.
const RATE_BYTES_MIN: u64 = 64 << 10;
/// What `--memory auto` is at most.
const MEMORY_BYTES_AUTO: u64 = 1 << 30;
/// The same of an estimate.
const ESTIMATE_MEMORY_BYTES_AUTO: u64 = 256 << 20;
/// Threads that do one kind of work.
const THREADS_MAX: u16 = 1024;
/// Microseconds for which a thread polls.
const POLL_US_MAX: u32 = 1000;

/// The longest time that an object may stay before it expires.
const EXPIRY_SECONDS_MAX: u64 = 100 * 366 * 24 * 60 * 60;

/// Chunk sizes that a store can be made with.
pub(crate) const CHUNK_SIZES: [u32; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Port of S3 where none is named.
const S3_PORT: u16 = 9000;

/// Port of memcached where none is named.
const MEMCACHED_PORT: u16 = 11211;
/// The shortest bound of a value over memcached: shorter ones have clients that expect them.
const ITEM_BYTES_MIN: u64 = 1 << 10;

/// Where buckets are served over S3.
pub(crate) fn parse_s3_address(text: &str) -> Result<SocketAddr, String> {
    let Some(host) = text.strip_prefix("tcp:").filter(|host| !host.is_empty()) else {
        return Err("S3 is served at tcp:HOST or tcp:HOST:PORT".to_owned());
    };
    parse_host(host, S3_PORT)
}

/// Where buckets are served over memcached.
pub(crate) fn parse_memcached_address(text: &str) -> Result<Address, String> {
    match text.split_once(':') {
        Some(("tcp", host)) if !host.is_empty() => {
            parse_host(host, MEMCACHED_PORT).map(Address::Tcp)
        }
        Some(("unix", path)) if !path.is_empty() => Ok(Address::Unix(path.into())),
        _ => Err("memcached is served at unix:PATH, tcp:HOST or tcp:HOST:PORT".to_owned()),
    }
}

/// How long a value may be over memcached.
pub(super) fn parse_item_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    match (ITEM_BYTES_MIN..=memcached_door::VALUE_BYTES_MAX).contains(&bytes) {
        true => Ok(bytes),
        false => Err("a value has at most 1G, and a bound of it is at least 1K".to_owned()),
    }
}

/// The first address of `HOST:PORT`, or of `HOST` at this port.
fn parse_host(host: &str, port: u16) -> Result<SocketAddr, String> {
    let found = match host.to_socket_addrs() {
        Err(_) => (host.trim_matches(['[', ']']), port).to_socket_addrs(),
        found => found,
    };
    let mut found = found.map_err(|error| format!("{host} is no host and port: {error}"))?;
    found.next().ok_or_else(|| format!("{host} has no address"))
}

/// How fast something may be read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    Unlimited,
    BytesPerSecond(u64),
}

/// The maximum of data that a volume may hold.
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

/// A rate that is set, or taken away.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<NonZeroU64>);

pub(super) fn parse_requests_rate(text: &str) -> Result<Limit, String> {
    parse_limit(text, |number| {
        number.parse().map_err(|_| "write a number of requests a second, as in 5000/s".to_owned())
    })
}

pub(super) fn parse_bytes_rate(text: &str) -> Result<Limit, String> {
    parse_limit(text, |size| parse_size(size).map_err(|error| error.to_string()))
}

fn parse_limit(
    text: &str,
    number: impl FnOnce(&str) -> Result<u64, String>,
) -> Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let number = number(text.strip_suffix("/s").unwrap_or(text))?;
    match NonZeroU64::new(number) {
        Some(number) => Ok(Limit(Some(number))),
        None => Err("a rate is at least 1 a second, or none".to_owned()),
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
        bytes if bytes < RATE_BYTES_MIN => {
            Err("use at least 64K a second, or unlimited: it goes in steps of some megabytes, and \
             waits between them"
                .to_owned())
        }
        bytes => Ok(Rate::BytesPerSecond(bytes)),
    }
}

/// What new data of a volume is compressed with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeCodec {
    /// What the store's new data is.
    OfStore,
    Own(Compression),
}

impl VolumeCodec {
    /// None: what the store's new data is.
    pub(crate) fn own(self) -> Option<Compression> {
        match self {
            Self::OfStore => None,
            Self::Own(compression) => Some(compression),
        }
    }
}

pub(super) fn parse_volume_codec(text: &str) -> Result<VolumeCodec, String> {
    match text {
        "store" | "default" => Ok(VolumeCodec::OfStore),
        _ => text.parse().map(VolumeCodec::Own).map_err(|error| match error {
            CompressionNameError::UnknownCodec => format!("{error}, or store to follow the store"),
            CompressionNameError::NoSuchLevel => error.to_string(),
        }),
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

/// `auto`, `fixed` or `cdc`.
pub(super) fn parse_segments(text: &str) -> Result<Segments, String> {
    match text {
        "auto" => Ok(Segments::Auto),
        "fixed" => Ok(Segments::Fixed),
        "cdc" => Ok(Segments::Cdc),
        _ => Err("use auto, fixed or cdc".to_owned()),
    }
}

/// `90s`, `15m`, `12h`, `30d` or `2w`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let refused = || "use a number and s, m, h, d or w, such as 30d".to_owned();
    let unit = text.chars().last().ok_or_else(refused)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(refused()),
    };
    let number = text.strip_suffix(unit).and_then(|number| number.parse().ok());
    let number: u64 = number.ok_or_else(refused)?;
    match number.checked_mul(seconds).filter(|seconds| (1..=EXPIRY_SECONDS_MAX).contains(seconds)) {
        Some(seconds) => Ok(Duration::from_secs(seconds)),
        None => Err("use at least 1s, and no more than 100 years".to_owned()),
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
    let limit = MemoryLimit::of_this_process();
    parse_memory_within(text, engine::MEMORY_BYTES_MIN, MEMORY_BYTES_AUTO, limit)
}

/// Memory of `tamis estimate`.
pub(super) fn parse_estimate_memory(text: &str) -> Result<u64, String> {
    let limit = MemoryLimit::of_this_process();
    parse_memory_within(text, estimate::MEMORY_BYTES_MIN, ESTIMATE_MEMORY_BYTES_AUTO, limit)
}

/// Memory of `tamis bench detect`.
pub(super) fn parse_bench_memory(text: &str) -> Result<u64, String> {
    let limit = MemoryLimit::of_this_process();
    parse_memory_within(text, estimate::MEMORY_BYTES_MIN, MEMORY_BYTES_AUTO, limit)
}

/// A size between what is needed and what there is; `auto` is `bytes_auto`, or half of what there
/// is where that is less.
fn parse_memory_within(
    text: &str,
    bytes_min: u64,
    bytes_auto: u64,
    limit: Option<MemoryLimit>,
) -> Result<u64, String> {
    if text == "auto" {
        let half = limit.map_or(u64::MAX, |limit| limit.bytes / 2);
        return Ok(bytes_auto.min(half).max(bytes_min));
    }
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    if bytes < bytes_min {
        return Err(format!("it must be at least {}M", bytes_min >> 20));
    }
    match limit {
        Some(MemoryLimit { bytes: there, group }) if bytes > there => {
            let whose = group.map_or("this machine has".to_owned(), |file| {
                format!("the control group of this process may use ({})", file.display())
            });
            let (asked, there) = (human_bytes(bytes), human_bytes(there));
            Err(format!("{asked} is more than the {there} of memory that {whose}"))
        }
        _ => Ok(bytes),
    }
}

/// A number of this range, which says so itself.
fn parse_number<N: FromStr + PartialOrd + Display>(
    text: &str,
    range: RangeInclusive<N>,
) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("use a number from {} to {}", range.start(), range.end()))
}

pub(super) fn parse_threads(text: &str) -> Result<u16, String> {
    parse_number(text, 1..=THREADS_MAX)
}

pub(super) fn parse_connections(text: &str) -> Result<u16, String> {
    parse_number(text, 1..=u16::MAX)
}

pub(super) fn parse_poll_us(text: &str) -> Result<u32, String> {
    parse_number(text, 0..=POLL_US_MAX)
}

/// Requests of a replay.
pub(super) fn parse_requests(text: &str) -> Result<u64, String> {
    parse_number(text, 1..=1 << 40)
}

/// A whole number from `least` to `most`.
pub(super) fn parse_whole(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| match most {
        u64::MAX => format!("use a number from {least} on"),
        most => format!("use a number from {least} to {most}"),
    })
}

/// A number of addresses that share a chunk.
pub(super) fn parse_copies(text: &str) -> Result<u32, String> {
    parse_whole(text, 0, u32::MAX.into()).map(|number| number as u32)
}

/// A number of something, or what a made workload begins with.
pub(super) fn parse_count(text: &str) -> Result<u64, String> {
    parse_whole(text, 0, u64::MAX)
}

/// How many durable writes are measured.
pub(super) fn parse_writes(text: &str) -> Result<usize, String> {
    parse_whole(text, 0, 1 << 40).map(|number| number as usize)
}

/// `50%`, or the number alone; nothing at all as well.
pub(super) fn parse_whole_percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let percent = number.filter(|percent| (0..=100).contains(percent));
    percent.ok_or_else(|| "use a percentage from 0% to 100%".to_owned())
}

/// One of FIDR's workloads.
pub(super) fn parse_workload(text: &str) -> Result<WorkloadKind, String> {
    let found = WorkloadKind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| "use write-h, write-m, write-l or read-mixed".to_owned())
}

pub(super) fn parse_codecs(text: &str) -> Result<Codecs, CompressionNameError> {
    if text == "all" { Ok(Codecs::All) } else { text.parse().map(Codecs::One) }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use threads::MemoryLimit;

    use super::{
        Rate, parse_memory_within, parse_poll_us, parse_rate, parse_requests, parse_threads,
    };

    const MIB: u64 = 1 << 20;

    #[test]
    fn memory_is_what_there_is_at_most() {
        let parse = |text: &str, limit: Option<MemoryLimit>| {
            parse_memory_within(text, 64 * MIB, 1024 * MIB, limit)
        };
        let machine = |mib: u64| Some(MemoryLimit { bytes: mib * MIB, group: None });
        let group = PathBuf::from("/sys/fs/cgroup/g/memory.max");
        let cgroup = Some(MemoryLimit { bytes: 140 * MIB, group: Some(group) });
        assert_eq!(parse("auto", None), Ok(1024 * MIB));
        assert_eq!(parse("auto", machine(23 << 10)), Ok(1024 * MIB));
        assert_eq!(parse("auto", machine(512)), Ok(256 * MIB));
        assert_eq!(parse("auto", cgroup.clone()), Ok(70 * MIB));
        assert_eq!(parse("auto", machine(100)), Ok(64 * MIB));
        assert_eq!(parse("140M", cgroup.clone()), Ok(140 * MIB));
        assert_eq!(parse("63M", None), Err("it must be at least 64M".to_owned()));
        let refused = parse("900G", machine(23 << 10)).unwrap_err();
        assert_eq!(refused, "900 GiB is more than the 23 GiB of memory that this machine has");
        let refused = parse("1G", cgroup).unwrap_err();
        for part in ["1 GiB", "140 MiB", "control group", "/sys/fs/cgroup/g/memory.max"] {
            assert!(refused.contains(part), "{part} in {refused}");
        }
    }

    #[test]
    fn numbers_out_of_range_say_the_range() {
        for refused in [parse_threads("0"), parse_threads("1025"), parse_threads("x")] {
            assert_eq!(refused, Err("use a number from 1 to 1024".to_owned()));
        }
        assert_eq!(parse_poll_us("1001"), Err("use a number from 0 to 1000".to_owned()));
        assert_eq!(parse_requests("0"), Err(format!("use a number from 1 to {}", 1_u64 << 40)));
        assert_eq!((parse_threads("8"), parse_poll_us("0")), (Ok(8), Ok(0)));
    }

    #[test]
    fn a_rate_that_is_not_kept_is_refused() {
        for text in ["0", "1", "63K"] {
            assert!(parse_rate(text).unwrap_err().contains("at least 64K a second"), "{text}");
        }
        assert_eq!(parse_rate("64K"), Ok(Rate::BytesPerSecond(64 << 10)));
        assert_eq!(parse_rate("unlimited"), Ok(Rate::Unlimited));
    }
}
