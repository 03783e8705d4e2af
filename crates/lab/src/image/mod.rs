//! Stored images: stores that a release made once, kept in the repository for all later ones.
//!
//! A format is kept when what it wrote is still read. `lab image FOLDER` makes a store with today's
//! code ([`make`]), packs its zones ([`pack`]) into `vN.image`, and records beside it, in `vN.txt`,
//! every volume with its size, whether it is read-only, and a hash of its contents ([`record`]).
//! `tests/lab/stored_images.rs` opens every image there is with the code of its day.
//!
//! ```text
//! vN.image: Zstandard over  zones u16, then zone u32, size u64 each;
//!                           then runs: zone u32, offset u64, length u32, bytes    (little-endian)
//! ```
//!
//! Zones that hold data files have the number of the file, the others count down from the largest
//! number: superblock, journal, tables. Blocks of zeros are left out.

mod maker;

use std::fmt::Write;

use disk::{AlignedBuf, Disk, Io, IoKind, MemoryDisk};
use engine::{DomainSecret, RequestError, VolumeKind, Zone};
use store::{CloseError, CreateError, OpenError, Options, Store};
use thiserror::Error;

pub use maker::{Recipe, make};

const BLOCK_BYTES: usize = format::BLOCK_BYTES;
/// Blocks of one run at most.
const RUN_BLOCKS_MAX: usize = 256;
/// Zstandard's level: an image is packed once.
const LEVEL: i32 = 19;
/// Bytes of an image when it is unpacked, at most: what a small store holds.
const UNPACKED_BYTES_MAX: usize = 256 << 20;
const FIXED: [(u32, Zone); 3] =
    [(u32::MAX, Zone::Superblock), (u32::MAX - 1, Zone::Journal), (u32::MAX - 2, Zone::Tables)];

/// Why an image could not be made, packed or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The bytes are not an image.
    #[error("this is no stored image: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
    },
    /// Zstandard says no.
    #[error("the image cannot be packed or unpacked: {0}")]
    Packing(#[from] std::io::Error),
    /// The store on it cannot be made.
    #[error("the store of the image cannot be made: {0}")]
    Create(#[from] CreateError),
    /// The store on it does not open.
    #[error("the store on the image does not open: {0}")]
    Open(#[from] OpenError),
    /// The store on it does not close.
    #[error("the store on the image cannot be closed: {0}")]
    Close(#[from] CloseError),
    /// A request failed.
    #[error("a request to the store on the image failed: {0}")]
    Request(#[from] RequestError),
}

/// Opens the store on `disk`.
///
/// # Errors
/// [`ImageError::Open`] when it does not open.
pub fn open(disk: &MemoryDisk) -> Result<Store, ImageError> {
    let engine =
        engine::Options { memory_bytes: 64 << 20, worker_threads: 0, ..Default::default() };
    let domain_secret = Some(DomainSecret(*b"secret of all domains of images."));
    Ok(Store::open_in_memory(disk, Options { engine, domain_secret, ..Default::default() })?)
}

/// What the store on `disk` holds, a line per volume: name, size, access, BLAKE3 of its bytes, and
/// the domain if it is in one, and its kind if it is no block volume.
///
/// # Errors
/// [`ImageError`] when it cannot be opened or read.
pub fn record(disk: &MemoryDisk) -> Result<String, ImageError> {
    let store = open(disk)?;
    let mut text = String::new();
    for info in store.client().volumes()? {
        let volume = store.client().open_volume(&info.name, crate::opener())?;
        let mut bytes = vec![0; info.size_bytes as usize];
        store.client().read_at(&volume, 0, &mut bytes)?;
        let access = if info.read_only { "read-only" } else { "read-write" };
        let hash = blake3::hash(&bytes);
        let domain = info.domain.map(|domain| format!(" {domain}")).unwrap_or_default();
        let kind = match info.kind {
            VolumeKind::Block => String::new(),
            other => format!(" {other}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {} {access} {hash}{domain}{kind}", info.name, info.size_bytes);
    }
    store.close()?;
    Ok(text)
}

/// Packs the zones of a disk.
///
/// # Errors
/// [`ImageError::Packing`].
pub fn pack(disk: &MemoryDisk) -> Result<Vec<u8>, ImageError> {
    let data = (0..).map(|number| (u32::from(number), Zone::Data(number)));
    let data = data.take_while(|&(_, zone)| disk.size_bytes(zone) > 0);
    let zones: Vec<(u32, Zone)> = FIXED.into_iter().chain(data).collect();
    let mut plain = (zones.len() as u16).to_le_bytes().to_vec();
    for &(number, zone) in &zones {
        plain.extend(number.to_le_bytes());
        plain.extend(disk.size_bytes(zone).to_le_bytes());
    }
    for &(number, zone) in &zones {
        pack_zone(disk, number, zone, &mut plain);
    }
    Ok(zstd::bulk::compress(&plain, LEVEL)?)
}

fn pack_zone(disk: &MemoryDisk, number: u32, zone: Zone, plain: &mut Vec<u8>) {
    let blocks = disk.size_bytes(zone) / BLOCK_BYTES as u64;
    let read = |block: u64| disk.peek(zone, block * BLOCK_BYTES as u64, BLOCK_BYTES);
    let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    let mut block = 0;
    while block < blocks {
        let mut run = Vec::new();
        let first = block;
        while block < blocks && run.len() < RUN_BLOCKS_MAX * BLOCK_BYTES {
            let bytes = read(block);
            if is_zero(&bytes) {
                break;
            }
            run.extend(bytes);
            block += 1;
        }
        if run.is_empty() {
            block += 1;
            continue;
        }
        plain.extend(number.to_le_bytes());
        plain.extend((first * BLOCK_BYTES as u64).to_le_bytes());
        plain.extend((run.len() as u32).to_le_bytes());
        plain.extend(run);
    }
}

/// A disk that holds what was packed, all of it durable.
///
/// # Errors
/// [`ImageError`] when these are not the bytes of an image.
pub fn unpack(packed: &[u8]) -> Result<MemoryDisk, ImageError> {
    let plain = zstd::bulk::decompress(packed, UNPACKED_BYTES_MAX)?;
    let mut bytes = Bytes(&plain);
    let count = u16::from_le_bytes(bytes.take()?);
    let mut zones = Vec::new();
    for _ in 0..count {
        zones.push((zone_of(bytes.take()?)?, u64::from_le_bytes(bytes.take()?)));
    }
    let mut disk = MemoryDisk::new(&zones, 1);
    while !bytes.0.is_empty() {
        let zone = zone_of(bytes.take()?)?;
        let offset_bytes = u64::from_le_bytes(bytes.take()?);
        let length_bytes = u32::from_le_bytes(bytes.take()?) as usize;
        let buf = AlignedBuf::padded(bytes.take_slice(length_bytes)?);
        let kind = IoKind::Write { buf: buf.into(), durable: false };
        finish(&mut disk, Io { zone, offset_bytes, kind, tag: 0 })?;
    }
    for (zone, _) in zones {
        finish(&mut disk, Io { zone, offset_bytes: 0, kind: IoKind::Sync, tag: 0 })?;
    }
    Ok(disk)
}

/// Submits one operation and waits for it.
fn finish(disk: &mut MemoryDisk, io: Io) -> Result<(), ImageError> {
    let mut done = Vec::new();
    disk.submit(io);
    disk.wait(&mut done);
    let ok = done.iter().all(|completion| completion.result.is_ok());
    if ok { Ok(()) } else { Err(ImageError::Malformed { what: "a run lies outside its zone" }) }
}

fn zone_of(number: [u8; 4]) -> Result<Zone, ImageError> {
    let number = u32::from_le_bytes(number);
    let fixed = FIXED.iter().find(|(of, _)| *of == number).map(|(_, zone)| *zone);
    let data = || u16::try_from(number).ok().map(Zone::Data);
    fixed.or_else(data).ok_or(ImageError::Malformed { what: "no such zone" })
}

/// What is left to read of an unpacked image.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ImageError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn take_slice(&mut self, length_bytes: usize) -> Result<&'a [u8], ImageError> {
        let (taken, rest) = self.0.split_at_checked(length_bytes).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }
}

const SHORT: ImageError = ImageError::Malformed { what: "it ends too early" };
