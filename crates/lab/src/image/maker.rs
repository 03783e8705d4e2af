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
use engine::{Codec, Compression, Detection, NewVolume, OpenVolume, SnapshotRequest, control};
use store::{CreateOptions, Store};

use super::{ImageError, open};
use crate::dice::Dice;

const CHUNK_BYTES: usize = 16 << 10;
const DATA_BYTES: u64 = 32 << 20;
const LZ4: Compression = Compression { codec: Codec::Lz4, level: 0 };

/// A disk with the store of an image on it that finds duplicates so, as a kill of its process left
/// it.
///
/// # Errors
/// [`ImageError`] when the engine says no.
pub fn make(detection: Detection) -> Result<MemoryDisk, ImageError> {
    let disk = empty_store(detection)?;
    let life = open(&disk)?;
    first_life(&life)?;
    life.close()?;
    let life = open(&disk)?;
    let domain = (detection != Detection::default()).then_some("tenant");
    second_life(&life, domain)?;
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
    client.ask(NewVolume { name, size_bytes: 3 << 20, read_only: false, domain })?;
    client.ask(control::SetCompression {
        compression: Compression { codec: Codec::Raw, level: 0 },
    })?;
    write(life, &client.open_volume("late", crate::opener())?, 5, (90..100).map(packable))
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
