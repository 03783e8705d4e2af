//! An opened store of the simulator: its buckets, its snapshots, its block volume.

use std::collections::BTreeMap;
use std::sync::Arc;

use disk::MemoryDisk;
use engine::{NewVolume, OpenVolume, RequestError, VolumeKind, WriteOptions, WriteRoom, control};
use format::objects::VALUES_START_BYTES;
use objects::volume::BucketVolume;

use crate::dice::mixed;
use crate::failure::Broken;
use crate::objects::bucket::Bucket;
use crate::objects::failures::broken;
use crate::objects::history::{Contents, State};
use crate::objects::kinds;
use crate::objects::step_volume::{StepVolume, Stepped};
use crate::oracle::CHUNK_BYTES;
use crate::script::Shape;
use crate::simulation::opening::Opening;
use crate::simulation::tap::Ear;

/// Volumes of these numbers are buckets.
pub(crate) const BUCKETS: u32 = 2;
/// That of this number competes with them for room.
pub(crate) const BLOCK: u32 = 2;
/// Snapshots have numbers from here on.
pub(crate) const SNAPSHOTS: u32 = 10;
/// Chunks of the block volume.
pub(crate) const BLOCK_CHUNKS: u64 = 4096;
/// Of a bucket's value space.
const SPACE_BYTES: u64 = 4 << 30;
/// Chunks of the block volume that are written: in a tight store they fill it.
pub(crate) fn block_chunks_used(shape: &Shape) -> u64 {
    if shape.tight { 1700 } else { 200 }
}

/// Room that is left alone for releases in a tight store, in chunks and writes.
const KEPT: (u64, u64) = (160, 40);

/// A running store and what is open of it.
pub(crate) struct Store {
    pub(crate) stepped: Arc<Stepped>,
    pub(crate) buckets: BTreeMap<u32, Box<dyn Bucket>>,
    block_chunks_used: u64,
}

impl Store {
    /// Opens what is on a disk, and the buckets of it.
    pub(crate) fn open(
        disk: &MemoryDisk,
        shape: &Shape,
        ear: Ear,
        now_ms: u64,
    ) -> Result<Self, Broken> {
        let seed = ear.heard().number();
        let opening = Opening::new(disk, shape, ear)?;
        if shape.tight {
            opening.client.keep_for_release(WriteRoom::of_chunks(KEPT.0, KEPT.1));
        }
        let (stepped, buckets) = (Stepped::new(opening, seed, now_ms), BTreeMap::new());
        let mut store = Self { stepped, buckets, block_chunks_used: block_chunks_used(shape) };
        for bucket in 0..BUCKETS {
            store.open_bucket(bucket)?;
        }
        Ok(store)
    }

    fn handle(&self, volume: u32) -> Option<Arc<OpenVolume>> {
        self.stepped.opening().volumes.get(&volume).cloned()
    }

    pub(crate) fn volume(&self, volume: u32) -> Option<Arc<StepVolume>> {
        Some(StepVolume::new(&self.stepped, self.handle(volume)?))
    }

    /// Opens the bucket in a volume, if there is one.
    pub(crate) fn open_bucket(&mut self, number: u32) -> Result<(), Broken> {
        let Some(volume) = self.volume(number) else { return Ok(()) };
        let opened = kinds::open(number, &volume, false);
        let opened = opened.map_err(|error| broken("the opening of a bucket", &error))?;
        if let Some(bucket) = opened {
            self.buckets.insert(number, bucket);
        }
        self.stepped.take_stuck()
    }

    pub(crate) fn open_volume(&self, number: u32, name: String) -> Result<(), Broken> {
        let open = control::Open { name, opener: crate::opener() };
        let volume = self.stepped.administer(open).map_err(Broken::Request)?;
        self.stepped.opening().volumes.insert(number, Arc::new(volume));
        Ok(())
    }

    /// Makes a volume that is not there.
    pub(crate) fn create_volume(&self, number: u32) -> Result<(), RequestError> {
        let (kind, size_bytes) = match number < BUCKETS {
            true => (VolumeKind::Bucket, VALUES_START_BYTES + SPACE_BYTES),
            false => (VolumeKind::Block, BLOCK_CHUNKS * CHUNK_BYTES as u64),
        };
        let name = format!("v{number}");
        let request = NewVolume { name, size_bytes, kind, ..NewVolume::default() };
        self.stepped.administer(request).map(drop)
    }

    /// Writes a chunk of the block volume.
    pub(crate) fn write_block(&self, chunk: u64, content: u64) -> Result<(), RequestError> {
        let Some(volume) = self.volume(BLOCK) else { return Ok(()) };
        let bytes = chunk_of(content);
        let at_bytes = chunk * CHUNK_BYTES as u64;
        volume.write_vectored_at(&[(at_bytes, &bytes)], WriteOptions::default())
    }

    /// All that it holds.
    pub(crate) fn find(&self) -> Result<State, Broken> {
        let mut state = State::default();
        for (&number, bucket) in &self.buckets {
            let contents = bucket.contents();
            let contents = contents.map_err(|error| broken("reading a bucket", &error))?;
            state.buckets.insert(number, contents);
        }
        let volumes = self.stepped.opening().volumes.clone();
        for (number, open) in volumes {
            if number >= SNAPSHOTS {
                let name = open.name();
                let of = crate::simulation::opening::volume_of_name(
                    name.split('@').next().unwrap_or_default(),
                );
                let of = of.unwrap_or(u32::MAX);
                let contents = self.find_snapshot(of, open)?;
                state.snapshots.insert(number, (of, contents));
            } else if number == BLOCK {
                state.block = self.find_block()?;
            }
        }
        self.stepped.take_stuck()?;
        Ok(state)
    }

    fn find_snapshot(&self, of: u32, open: Arc<OpenVolume>) -> Result<Option<Contents>, Broken> {
        let volume = StepVolume::new(&self.stepped, open);
        let bucket = kinds::open(of, &volume, true);
        let bucket = bucket.map_err(|error| broken("the opening of a snapshot", &error))?;
        let contents = bucket.map(|bucket| bucket.contents()).transpose();
        contents.map_err(|error| broken("reading a snapshot", &error))
    }

    fn find_block(&self) -> Result<BTreeMap<u64, u64>, Broken> {
        let Some(volume) = self.volume(BLOCK) else { return Ok(BTreeMap::new()) };
        let mut bytes = vec![0; self.block_chunks_used as usize * CHUNK_BYTES];
        volume.read_at(0, &mut bytes).map_err(Broken::Request)?;
        let mut found = BTreeMap::new();
        for (chunk, bytes) in (0..).zip(bytes.chunks_exact(CHUNK_BYTES)) {
            let Some((content, _)) = bytes.split_first_chunk() else { continue };
            let content = u64::from_le_bytes(*content);
            if content != 0 && chunk_of(content) == bytes {
                found.insert(chunk, content);
            } else if bytes.iter().any(|byte| *byte != 0) {
                return Err(Broken::WrongBytes { volume: format!("v{BLOCK}"), lba: chunk });
            }
        }
        Ok(found)
    }

    /// Invariants of the buckets: chunks are in one state, counted right; with `thoroughly` the
    /// index is whole, and when all is trimmed that can be, nothing is stored that nobody names.
    pub(crate) fn check_buckets(&self, thoroughly: bool) -> Result<(), Broken> {
        for (number, bucket) in &self.buckets {
            Self::check_bucket(&**bucket, thoroughly).map_err(|broken| match broken {
                Broken::Objects { what } => {
                    Broken::Objects { what: format!("bucket {number}: {what}") }
                }
                broken => broken,
            })?;
        }
        self.stepped.take_stuck()
    }

    fn check_bucket(bucket: &dyn Bucket, thoroughly: bool) -> Result<(), Broken> {
        bucket.recount()?;
        if !thoroughly {
            return Ok(());
        }
        bucket.check()?;
        match bucket.trim_all() {
            Err(error) if error.is_no_space() => return Ok(()),
            trimmed => trimmed.map_err(|error| broken("trimming", &error))?,
        }
        let counted = bucket.recount()?;
        let (first, end) = (VALUES_START_BYTES, bucket.volume().size_bytes());
        let mapped = bucket.volume().mapped_bytes(first, end).map_err(Broken::Request)?;
        let mapped = mapped / CHUNK_BYTES as u64;
        if (mapped, counted.to_free) == (counted.named, 0) {
            return Ok(());
        }
        let what = format!(
            "{mapped} chunks are stored, {} of values are named and {} are still to be freed",
            counted.named, counted.to_free
        );
        Err(Broken::Objects { what })
    }
}

/// The chunk of a content that is not 0: its number, and bytes that follow from it.
fn chunk_of(content: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CHUNK_BYTES);
    bytes.extend_from_slice(&content.to_le_bytes());
    let words = CHUNK_BYTES as u64 / 8;
    (1..words).for_each(|at| bytes.extend_from_slice(&mixed(content, at).to_le_bytes()));
    bytes
}
