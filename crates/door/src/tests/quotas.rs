//! Writers that are held up for their volume's quota. The engine is stepped by the test, so that
//! what would be given back is not, for as long as the test likes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use disk::{Completion, Disk, Doorbell, Io, IoKind, MemoryDisk};
use engine::control::GetStats;
use engine::{ChunkBuf, Client, Completions, Done, Engine, OpenVolume, Options, Zone};
use store::CreateOptions;

use super::fake::{Answer, Fake, FakeReader, MIB, connection, finish, open, request, writer};
use crate::{Admission, Hangup, Operation, Outcome};

const CHUNK: u64 = 4096;
/// Chunks of a leaf of a map.
const LEAF_CHUNKS: u64 = 677;
/// Of so many leaves what a trim covers is cut off, and given back in the background.
const LEAVES: u64 = 40;
const LEAF_DATA_BYTES: u64 = 96 * CHUNK;

/// A memory disk of whose tables nothing is read while the gate is shut.
struct Gated {
    disk: MemoryDisk,
    is_shut: Arc<AtomicBool>,
    held: Mutex<Vec<Io>>,
}

impl Disk for Gated {
    fn submit(&mut self, io: Io) {
        let is_read = matches!(io.kind, IoKind::Read { .. });
        if is_read && io.zone == Zone::Tables && self.is_shut.load(Ordering::Acquire) {
            return self.held.lock().unwrap().push(io);
        }
        self.disk.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        if !self.is_shut.load(Ordering::Acquire) {
            self.held.lock().unwrap().drain(..).for_each(|io| self.disk.submit(io));
        }
        self.disk.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.disk.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.held.lock().unwrap().len()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}

fn step_until(engine: &mut Engine, mut is_over: impl FnMut() -> bool) {
    while !is_over() {
        if !engine.step() {
            engine.tick();
            thread::yield_now();
        }
    }
}

/// A blocking call, made on a thread of its own while the engine is stepped.
fn beside<V: Send>(
    engine: &mut Engine,
    client: &Client,
    call: impl FnOnce(&Client) -> V + Send,
) -> V {
    thread::scope(|scope| {
        let caller = scope.spawn(|| call(client));
        step_until(engine, || caller.is_finished());
        caller.join().unwrap()
    })
}

struct Nobody;

impl Completions for Nobody {
    fn complete(&self, _tag: u64, _outcome: Outcome) {}
}

fn write(client: &Client, volume: &OpenVolume, offset_bytes: u64, number: u64, length: u64) {
    let mut buf: ChunkBuf = client.buffer(offset_bytes, usize::try_from(length).unwrap());
    for (at, chunk) in buf.bytes_mut().chunks_mut(8).enumerate() {
        let unique = (number << 32 | at as u64).to_le_bytes();
        chunk.copy_from_slice(&unique[..chunk.len()]);
    }
    let _ = client.write(volume, offset_bytes, buf, false, Done::new(Arc::new(Nobody), 0));
}

/// How many trims and deleted volumes have data to give back. No thread waits for the answer, so
/// that the deletions advance by as many steps on a busy machine as on a quiet one.
fn deletions(engine: &mut Engine, client: &Client) -> u64 {
    let (done, stats) = Done::pending();
    client.administer(GetStats {}, done);
    loop {
        engine.step();
        if let Some(stats) = stats.try_take() {
            return stats.unwrap().deletions;
        }
    }
}

/// An engine whose volume `v` holds its writers up: it is at its quota, and what a trim gives back
/// waits behind the gate.
fn held_up() -> (Engine, Client, OpenVolume, Arc<AtomicBool>) {
    let disk = store::create_in_memory(&CreateOptions::new(64 * MIB), 1).unwrap();
    let options = Options { memory_bytes: 64 * MIB, worker_threads: 0, ..Options::default() };
    let load = |disk: Box<dyn Disk>| {
        let (engine, client, _) = engine::open(disk, Doorbell::new().unwrap(), &options).unwrap();
        (engine, client)
    };
    let (mut engine, client) = load(Box::new(disk.clone()));
    let size_bytes = LEAVES * LEAF_CHUNKS * CHUNK;
    let volume = beside(&mut engine, &client, |client| {
        client.create_volume("v", size_bytes, false).unwrap();
        open(client)
    });
    for leaf in 0..LEAVES {
        write(&client, &volume, leaf * LEAF_CHUNKS * CHUNK, leaf, LEAF_DATA_BYTES);
        while engine.step() {}
    }
    drop(volume);
    beside(&mut engine, &client, |client| client.close().unwrap());
    drop(engine);

    let is_shut = Arc::<AtomicBool>::default();
    let gate = Gated { disk, is_shut: Arc::clone(&is_shut), held: Mutex::default() };
    let (mut engine, client) = load(Box::new(gate));
    let volume = beside(&mut engine, &client, |client| {
        client.set_quota("v", Some(LEAVES * LEAF_DATA_BYTES + MIB / 2)).unwrap();
        open(client)
    });
    client.trim(&volume, 0, size_bytes, false, Done::new(Arc::new(Nobody), 0));
    while deletions(&mut engine, &client) == 0 {}
    is_shut.store(true, Ordering::Release);
    while engine.step() {}
    for number in 0..8 {
        write(&client, &volume, number * MIB, 100 + number, MIB);
        while engine.step() {}
        if volume.holds_writers_up() {
            return (engine, client, volume, is_shut);
        }
    }
    panic!("its writers are not held up");
}

/// One write of a chunk meets a volume that holds its writers up; what `meanwhile` does before the
/// gate is opened, and what the write comes to.
fn write_held_up(
    meanwhile: impl FnOnce(&Client, &Fake),
) -> (Result<(), Hangup>, Vec<(u64, Answer)>) {
    let (mut engine, client, volume, is_shut) = held_up();
    let connection = connection();
    let writer = writer(&connection);
    let mut reader = FakeReader::new(&connection);
    let sends = Arc::clone(&reader.sends);
    let served = thread::scope(|scope| {
        let serves = scope.spawn(|| {
            let mut admission = Admission::new(&client, volume, connection.clone());
            reader.received.extend([9; 4096]);
            admission.serve(&mut reader, request(Operation::Write, 0, 4096))
        });
        while sends.load(Ordering::Acquire) == 0 {
            assert!(!serves.is_finished(), "it waits");
            thread::yield_now();
        }
        meanwhile(&client, connection.transport());
        is_shut.store(false, Ordering::Release);
        step_until(&mut engine, || serves.is_finished());
        serves.join().unwrap()
    });
    step_until(&mut engine, || !connection.is_busy());
    let answers = finish(&connection, &mut reader, writer);
    beside(&mut engine, &client, |client| client.close().unwrap());
    (served, answers)
}

#[test]
fn a_write_that_its_quota_holds_up_takes_no_credits_until_it_goes_on() {
    let (served, answers) = write_held_up(|client, _| {
        assert!(client.try_buffer(0, 8 << 20).is_some(), "all of the write buffer is there");
    });
    assert_eq!((served, answers), (Ok(()), vec![(0, Answer::Done)]));
}

#[test]
fn a_client_that_ends_while_its_quota_holds_it_up_has_written_nothing_more() {
    let (served, answers) =
        write_held_up(|_, transport| transport.has_left.store(true, Ordering::Release));
    assert_eq!((served, answers), (Err(Hangup), vec![]));
}
