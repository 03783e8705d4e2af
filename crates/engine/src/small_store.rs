//! A small store in memory, for tests that look inside of an engine.

use std::sync::Mutex;

use disk::{Doorbell, MemoryDisk};
use format::superblock::Geometry;
use format::units::{Codec, Compression};
use mutants::Mutant;

use crate::core::Core;
use crate::devices::Ended;
use crate::engine::Engine;
use crate::{Client, Completions, CreateOptions, Detection, Options, Reply, RequestError};

pub(crate) const MIB: u64 = 1 << 20;

const COMPRESSION: Compression = Compression { codec: Codec::Raw, level: 0 };

/// Of a small store that detects duplicates so.
pub(crate) fn small_geometry(detection: Detection) -> Geometry {
    crate::plan(&CreateOptions {
        capacity_bytes: vec![128 * MIB],
        chunk_bytes: 4096,
        compression: COMPRESSION,
        tables_bytes: None,
        journal_bytes: None,
        uuid: [3; 16],
        bucket_seed: [5; 16],
        detection,
    })
    .unwrap()
}

/// A new store that detects duplicates so, opened.
pub(crate) fn store(detection: Detection) -> (Engine, Client) {
    let geometry = small_geometry(detection);
    let zones: Vec<_> = geometry.zones().collect();
    let disk = MemoryDisk::new(&zones, 1);
    crate::create(Box::new(disk.clone()), &geometry, COMPRESSION).unwrap();
    let options =
        Options { memory_bytes: 64 * MIB, worker_threads: 0, sync: false, ..Default::default() };
    let (engine, client, _) =
        crate::open(Box::new(disk), Doorbell::new().unwrap(), &options).unwrap();
    (engine, client)
}

/// Outcomes, in the order in which they came.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<(u64, Result<Reply, RequestError>)>>);

impl Completions for Told {
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>) {
        self.0.lock().unwrap().push((tag, outcome));
    }
}

impl Told {
    pub(crate) fn take(&self) -> Vec<(u64, Result<Reply, RequestError>)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// What has ended on the disk of a core that no engine steps.
pub(crate) fn ended(core: &mut Core) -> Vec<Ended> {
    let mut ended = Vec::new();
    core.devices.poll(&mut ended);
    ended
}

/// A bug that lives until this is dropped.
pub(crate) struct Alive;

impl Alive {
    pub(crate) fn let_live(mutant: Mutant) -> Self {
        mutants::let_live(Some(mutant));
        Self
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        mutants::let_live(None);
    }
}

/// A blocking call, made on a thread of its own while the engine is stepped.
pub(crate) fn beside<T: Send>(
    engine: &mut Engine,
    client: &Client,
    call: impl FnOnce(&Client) -> T + Send,
) -> T {
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| call(client));
        while !caller.is_finished() {
            if !engine.step() {
                engine.tick();
                std::thread::yield_now();
            }
        }
        caller.join().unwrap()
    })
}
