//! One of the two servers: a disk, and a store on it while it lives.

use std::collections::BTreeMap;
use std::sync::Arc;

use disk::MemoryDisk;
use engine::{Detection, NewVolume, VolumeKind, control};
use format::objects::VALUES_START_BYTES;
use format::objects::replica::REPLICA_STATE_AT_BYTES;
use objects::volume::BucketVolume;
use replication::{ReplicaState, ReplicaVolume, VolumeIdentity, read_state, write_state};

use crate::dice::mixed;
use crate::failure::Broken;
use crate::objects::step_volume::{StepVolume, Stepped};
use crate::oracle::CHUNK_BYTES;
use crate::script::{End, Script, Shape};
use crate::simulation::aside::check_crashed;
use crate::simulation::new_store;
use crate::simulation::opening::Opening;
use crate::simulation::tap::{Ear, Watch, leave};

/// Writes for each flush that nobody waits for: with few of them a crash loses much, with many it
/// falls between any two writes.
const FLUSH_ONE_IN: [u64; 3] = [4, 16, 80];
/// The bucket's volume.
const VOLUME: &str = "v0";
/// Of the bucket's value space.
const SPACE_BYTES: u64 = 1 << 30;
/// When a run is, in milliseconds since 1970.
pub(super) const NOW_MS: u64 = 1_700_000_000_000;

/// One of them.
pub(super) struct Side {
    disk: MemoryDisk,
    shape: Shape,
    openings: u64,
    volume: Option<Arc<StepVolume>>,
}

impl Side {
    /// A new store with an empty volume.
    pub(super) fn new(seed: u64) -> Result<Self, Broken> {
        let shape = Shape {
            seed,
            zones: 1,
            containers: 24,
            tables_bytes: 16 << 20,
            journal_bytes: 4 << 20,
            cache_pages: 4096,
            dirty_pages_max: 48,
            young_max: 200,
            contents: 1000,
            tight: false,
            copies_above: 0,
            detection: Detection::default(),
            domains: 0,
            varies: seed.is_multiple_of(2),
        };
        let disk = new_store(&Script { shape: shape.clone(), lives: Vec::new() })?;
        let mut side = Self { disk, shape, openings: 0, volume: None };
        let opening = side.open()?;
        let stepped = Stepped::new(opening, seed, NOW_MS);
        let size_bytes = VALUES_START_BYTES + SPACE_BYTES;
        let (name, kind) = (VOLUME.to_owned(), VolumeKind::Bucket);
        let new = NewVolume { name, size_bytes, kind, ..NewVolume::default() };
        stepped.administer(new).map_err(Broken::Request)?;
        side.take_volume(&stepped)?;
        Ok(side)
    }

    fn open(&mut self) -> Result<Opening, Broken> {
        self.openings += 1;
        let ear = Ear::new(Watch::Nothing, mixed(self.shape.seed, self.openings), 0);
        Opening::new(&self.disk, &self.shape, ear)
    }

    fn take_volume(&mut self, stepped: &Arc<Stepped>) -> Result<(), Broken> {
        stepped.flush_one_in(FLUSH_ONE_IN[self.shape.seed as usize / 2 % 3]);
        let open = control::Open { name: VOLUME.to_owned(), opener: crate::opener() };
        let open = stepped.administer(open).map_err(Broken::Request)?;
        self.volume = Some(StepVolume::new(stepped, Arc::new(open)));
        Ok(())
    }

    /// Opens what the last life has left.
    pub(super) fn start(&mut self) -> Result<(), Broken> {
        check_crashed(&self.disk)?;
        let opening = self.open()?;
        let stepped = Stepped::new(opening, mixed(self.shape.seed, self.openings), NOW_MS);
        self.take_volume(&stepped)
    }

    /// It dies so.
    pub(super) fn die(&mut self, end: End) {
        self.volume = None;
        if let Some(left) = leave(&self.disk, end) {
            self.disk = left;
        }
    }

    /// The volume of the bucket.
    pub(super) fn volume(&self) -> Result<Arc<StepVolume>, Broken> {
        self.volume.clone().ok_or_else(|| Broken::Machine("a dead server was asked".to_owned()))
    }

    /// Which volume its state is to name.
    pub(super) fn identity(&self) -> Result<VolumeIdentity, Broken> {
        let store = u128::from(self.shape.seed).to_le_bytes();
        Ok(VolumeIdentity { store, number: self.volume()?.open().id().0 })
    }

    /// How the bucket is replicated.
    pub(super) fn state(&self) -> Result<ReplicaState, Broken> {
        let state = read_state(&*self.volume()?, self.identity()?);
        let state = state.map_err(|error| Broken::Objects { what: error.to_string() })?;
        state.ok_or_else(|| Broken::Objects { what: "a copy has lost its state".to_owned() })
    }

    /// Fingerprints of the chunks that are not zeros, but for the one that says what a copy is.
    pub(super) fn chunks(&self) -> Result<BTreeMap<u64, blake3::Hash>, Broken> {
        let volume = self.volume()?;
        let (mut at, size) = (0, volume.size_bytes());
        let mut chunks = BTreeMap::new();
        while at < size {
            let run = volume.run_at(at, size - at).map_err(Broken::Request)?;
            if !run.is_hole {
                let mut bytes = vec![0; run.length_bytes as usize];
                volume.read_at(at, &mut bytes).map_err(Broken::Request)?;
                let places = (at..).step_by(CHUNK_BYTES);
                let stored = places.zip(bytes.chunks(CHUNK_BYTES));
                let written = stored.filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 0));
                chunks.extend(written.map(|(at, chunk)| (at, blake3::hash(chunk))));
            }
            at += run.length_bytes;
        }
        chunks.remove(&REPLICA_STATE_AT_BYTES);
        Ok(chunks)
    }

    /// Writes it, durable.
    pub(super) fn set_state(&self, state: &ReplicaState) -> Result<(), Broken> {
        let volume = self.volume()?;
        write_state(&*volume, state).map_err(Broken::Request)?;
        volume.flush().map_err(Broken::Request)
    }
}
