//! The store of a stored image: small when packed, and with every structure of the format in it.
//!
//! Two data files, sealed containers and an open one, chunks of all codecs, duplicates, dead
//! chunks, volumes that were renamed, resized, made read-only by birth and deleted; one life that
//! was closed cleanly, then one that was killed and leaves a journal to be replayed.
//!
//! A container is full after 4 MiB of frames, and 4 MiB that cannot be compressed would not fit
//! into a repository. So most chunks share their random bytes but for a number in front: a frame
//! of one alone does not become smaller, the image of all does.

use disk::MemoryDisk;
use engine::{
    Codec, Compression, Detection, FingerprintKind, NewVolume, OpenVolume, SnapshotRequest,
    VolumeKind, control,
};
use store::{CreateOptions, Store};

use super::{ImageError, open};
use crate::dice::Dice;

const CHUNK_BYTES: usize = 16 << 10;
const DATA_BYTES: u64 = 32 << 20;
const LZ4: Compression = Compression { codec: Codec::Lz4, level: 0 };

/// What the store of an image has, so that it is of the version that the image stands for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Recipe {
    /// How it finds duplicates. Where that is not what version 2 did, a volume is in a domain.
    pub detection: Detection,
    /// Whether one of its volumes is a bucket.
    pub bucket: bool,
}

impl Recipe {
    /// What a store of this version has; none for a version that this program does not write.
    #[must_use]
    pub fn of_version(version: u32) -> Option<Self> {
        let sha256 = Detection { kind: FingerprintKind::Sha256, ..Default::default() };
        match version {
            2 => Some(Self { detection: Detection::default(), bucket: false }),
            3 => Some(Self { detection: sha256, bucket: false }),
            4 => Some(Self { detection: sha256, bucket: true }),
            _ => None,
        }
    }
}

/// A disk with the store of an image on it, as a kill of its process left it.
///
/// # Errors
/// [`ImageError`] when the engine says no.
pub fn make(recipe: Recipe) -> Result<MemoryDisk, ImageError> {
    let Recipe { detection, bucket } = recipe;
    let disk = empty_store(detection)?;
    let life = open(&disk)?;
    first_life(&life)?;
    life.close()?;
    let life = open(&disk)?;
    let domain = (detection != Detection::default()).then_some("tenant");
    second_life(&life, domain)?;
    if bucket {
        bucket_life(&life)?;
    }
    life.client().flush_blocking()?;
    // The power goes: what was flushed is there, and the engine never learns of it.
    Ok(disk.crash(1))
}

fn empty_store(detection: Detection) -> Result<MemoryDisk, ImageError> {
    let options = CreateOptions {
        capacity_bytes: vec![DATA_BYTES; 2],
        chunk_bytes: CHUNK_BYTES as u32,
        compression: LZ4,
        detection,
        uuid: Some(*b"a stored image!!"),
        bucket_seed: Some(*b"and its own seed"),
        ..CreateOptions::new(DATA_BYTES)
    };
    Ok(store::create_in_memory(&options, 1)?)
}

fn first_life(life: &Store) -> Result<(), ImageError> {
    let client = life.client();
    for (name, size_bytes) in [("system", 16 << 20), ("scratch", 4 << 20), ("doomed", 2 << 20)] {
        client.create_volume(name, size_bytes, false)?;
    }
    client.create_volume("sealed", 1 << 20, true)?;
    let system = client.open_volume("system", crate::opener())?;
    write(life, &system, 0, (0..600).map(unpackable))?;
    write(life, &system, 700, (0..40).map(packable))?;
    write(life, &client.open_volume("doomed", crate::opener())?, 0, (0..30).map(unpackable))?;
    client.ask(control::SetCompression {
        compression: Compression { codec: Codec::Zstd, level: 3 },
    })?;
    write(life, &client.open_volume("scratch", crate::opener())?, 0, (40..90).map(packable))?;
    client.flush_blocking()?;
    client.trim_blocking(&system, 100 * CHUNK_BYTES as u64 + 512, 64 * CHUNK_BYTES as u64)?;
    client.delete_volume("doomed")?;
    snapshot(life, "first")
}

fn snapshot(life: &Store, name: &str) -> Result<(), ImageError> {
    let (volumes, name) = (vec!["system".to_owned()], name.to_owned());
    let request = SnapshotRequest { volumes, name, taken_unix_s: 1_795_000_000 };
    Ok(life.client().ask(request)?)
}

fn second_life(life: &Store, domain: Option<&str>) -> Result<(), ImageError> {
    let client = life.client();
    let system = client.open_volume("system", crate::opener())?;
    // Overwrites, duplicates, sectors, and a long trim, all of which replay has to apply again.
    write(life, &system, 20, (600..640).map(unpackable))?;
    write(life, &system, 300, (0..40).map(packable))?;
    client.write_at(&system, 12_345 * 512, &unpackable(999)[..1536])?;
    client.trim_blocking(&system, 400 * CHUNK_BYTES as u64, 200 * CHUNK_BYTES as u64)?;
    snapshot(life, "second")?;
    client.clone_volume("system@first", "twin")?;
    write(life, &client.open_volume("twin", crate::opener())?, 1, (640..650).map(unpackable))?;
    client.rename_volume("scratch", "renamed")?;
    client.resize_volume("renamed", 6 << 20)?;
    let (name, domain) = ("late".to_owned(), domain.map(str::to_owned));
    client.ask(NewVolume {
        name,
        size_bytes: 3 << 20,
        read_only: false,
        domain,
        ..NewVolume::default()
    })?;
    client.ask(control::SetCompression {
        compression: Compression { codec: Codec::Raw, level: 0 },
    })?;
    write(life, &client.open_volume("late", crate::opener())?, 5, (90..100).map(packable))
}

/// The journal makes the bucket, a snapshot and a branch of it again.
fn bucket_life(life: &Store) -> Result<(), ImageError> {
    let client = life.client();
    let (name, kind) = ("bucket".to_owned(), VolumeKind::Bucket);
    client.ask(NewVolume { name, size_bytes: 2 << 20, kind, ..NewVolume::default() })?;
    write(life, &client.open_volume("bucket", crate::opener())?, 3, (100..110).map(packable))?;
    let (volumes, name) = (vec!["bucket".to_owned()], "then".to_owned());
    client.ask(SnapshotRequest { volumes, name, taken_unix_s: 1_796_000_000 })?;
    client.clone_volume("bucket@then", "branch")?;
    write(life, &client.open_volume("branch", crate::opener())?, 4, (110..115).map(packable))
}

fn write(
    life: &Store,
    volume: &OpenVolume,
    first: u64,
    chunks: impl Iterator<Item = Vec<u8>>,
) -> Result<(), ImageError> {
    for (lba, chunk) in (first..).zip(chunks) {
        life.client().write_at(volume, lba * CHUNK_BYTES as u64, &chunk)?;
    }
    Ok(())
}

/// Random bytes that all such chunks share, but for the number in front.
fn unpackable(number: u64) -> Vec<u8> {
    let mut dice = Dice::new(1);
    let random = std::iter::repeat_with(|| dice.roll().to_le_bytes());
    let mut bytes: Vec<u8> = random.take(CHUNK_BYTES / 8).flatten().collect();
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// A short text, again and again.
fn packable(number: u64) -> Vec<u8> {
    let text = format!("chunk {number} of a stored image. ");
    text.bytes().cycle().take(CHUNK_BYTES).collect()
}
