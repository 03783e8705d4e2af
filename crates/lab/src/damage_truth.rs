//! What a store that is damaged was told to hold, and what reading all of it comes to.

use std::collections::{BTreeMap, BTreeSet};

use crate::damage_driver::{ChunkRead, Driver};
use crate::dice::Dice;
use crate::oracle::CHUNK_BYTES;

/// Number of a volume, and a chunk in it.
pub(crate) type Place = (usize, u64);

/// Chunks of a volume.
pub(crate) const VOLUME_CHUNKS: u64 = 2500;
pub(crate) const VOLUMES: usize = 4;
/// How many chunks are read at once, as long as all of them can be.
const CHUNKS_AT_ONCE: u64 = 50;
const _: () = assert!(VOLUME_CHUNKS.is_multiple_of(CHUNKS_AT_ONCE));

/// How many bytes of content `number` are random; the rest is zeros.
fn random_bytes(number: u64) -> usize {
    match number {
        0 => 0,
        _ if number.is_multiple_of(4) => CHUNK_BYTES,
        _ => CHUNK_BYTES / 2,
    }
}

/// Bytes of content `number`; 0 is zeros.
pub(crate) fn content(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; CHUNK_BYTES];
    let mut dice = Dice::new(number);
    for word in bytes[..random_bytes(number)].chunks_exact_mut(8) {
        word.copy_from_slice(&dice.roll().to_le_bytes());
    }
    bytes
}

/// Whether a chunk is content `number`.
pub(crate) fn is_content(number: u64, chunk: &[u8]) -> bool {
    let (random, zeros) = chunk.split_at(random_bytes(number));
    let mut dice = Dice::new(number);
    random.chunks(8).all(|word| word == dice.roll().to_le_bytes())
        && zeros.iter().all(|&byte| byte == 0)
}

/// Name of a volume.
pub(crate) fn volume_name(volume: usize) -> String {
    format!("v{volume}")
}

/// Every version of every chunk.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    /// The contents that each chunk had, newest last; absent: zeros always.
    pub(crate) versions: BTreeMap<Place, Vec<u64>>,
    /// Chunks whose newest version was never flushed, or whose write failed.
    pub(crate) loose: BTreeSet<Place>,
}

/// What reading a whole store came to.
#[derive(Default)]
pub(crate) struct Reading {
    /// Chunks whose reads are errors.
    pub(crate) failed: BTreeSet<Place>,
    /// What the first of them said.
    pub(crate) error: String,
    /// Chunks that read as they were once.
    pub(crate) older: BTreeSet<Place>,
    /// What must not be, in sentences.
    pub(crate) wrong: Vec<String>,
}

impl Truth {
    /// A chunk was written.
    pub(crate) fn write(&mut self, place: Place, number: u64) {
        self.versions.entry(place).or_default().push(number);
    }

    /// Chunks of a volume were trimmed.
    pub(crate) fn trim(&mut self, volume: usize, lbas: std::ops::Range<u64>) {
        for lba in lbas {
            if let Some(versions) = self.versions.get_mut(&(volume, lba)) {
                versions.push(0);
            }
        }
    }

    /// Whether a chunk may hold nothing.
    pub(crate) fn may_be_hole(&self, place: Place) -> bool {
        let newest = self.versions.get(&place).and_then(|versions| versions.last());
        newest.is_none_or(|&number| number == 0) || self.loose.contains(&place)
    }

    /// Whether the bytes are the chunk's newest, or what it held before; None: neither.
    fn version(&self, place: Place, bytes: &[u8]) -> Option<bool> {
        let versions = self.versions.get(&place).map_or(&[][..], Vec::as_slice);
        let newest = versions.last().copied().unwrap_or(0);
        if is_content(newest, bytes) {
            return Some(true);
        }
        let older = versions.iter().copied().chain([0]);
        older.into_iter().any(|version| is_content(version, bytes)).then_some(false)
    }

    /// Reads every chunk; `may_be_older`: what each held once is right as well.
    pub(crate) fn read_all(&self, driver: &mut Driver, may_be_older: bool) -> Reading {
        let mut reading = Reading::default();
        for volume in 0..VOLUMES {
            let Some(handle) = driver.volume(&volume_name(volume)) else {
                // There was a time before it was made.
                if !may_be_older {
                    reading.wrong.push(format!("volume v{volume} is gone"));
                }
                continue;
            };
            for first in (0..VOLUME_CHUNKS).step_by(CHUNKS_AT_ONCE as usize) {
                let places = (first..first + CHUNKS_AT_ONCE).map(|lba| (volume, lba));
                let read = driver.read_chunks(&handle, first, CHUNKS_AT_ONCE);
                if let ChunkRead::Bytes(bytes) = read {
                    for (place, chunk) in places.zip(bytes.chunks(CHUNK_BYTES)) {
                        self.look_at(place, chunk, may_be_older, &mut reading);
                    }
                    continue;
                }
                for place in places {
                    match driver.read(&handle, place.1) {
                        ChunkRead::Hangs => {
                            reading.wrong.push(format!("the read of {place:?} hangs"));
                            return reading;
                        }
                        ChunkRead::Failed(error) => {
                            if reading.failed.is_empty() {
                                reading.error = error;
                            }
                            reading.failed.insert(place);
                        }
                        ChunkRead::Bytes(chunk) => {
                            self.look_at(place, &chunk, may_be_older, &mut reading);
                        }
                    }
                }
            }
        }
        reading
    }

    fn look_at(&self, place: Place, chunk: &[u8], may_be_older: bool, reading: &mut Reading) {
        match self.version(place, chunk) {
            Some(true) => {}
            Some(false) if may_be_older || self.loose.contains(&place) => {
                reading.older.insert(place);
            }
            of => {
                let kind = of.map_or("wrong", |_| "old");
                reading.wrong.push(format!("{kind} bytes in chunk {} of v{}", place.1, place.0));
            }
        }
    }
}
