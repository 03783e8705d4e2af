//! Schedules on which chance hardly comes: each makes one situation, again and again, in which a
//! slip of the engine would cost data. The canary runs them with the slip alive, a test without.

use disk::Loss;

use engine::Detection;
use format::map_page;

use crate::script::{End, Life, Request, Script, Shape, Verb};
use crate::simulation::trouble::Trouble;
use crate::workload::SECTORS;

/// Flushed writes of [`lapped_journal`], each a record of one block.
const LAPPING_WRITES: u64 = 1_950;
/// Those during which the tables' device does nothing: the first checkpoint lasts from a quarter of
/// the ring to the last block that may be used, the third until the ring has gone round.
const HELD: [std::ops::Range<u64>; 2] = [350..960, 1_340..1_950];
/// Writes after which the device is held up again, before it moves.
const HOLD_EVERY: u64 = 1;

fn shape() -> Shape {
    Shape {
        seed: 5,
        zones: 1,
        containers: 8,
        tables_bytes: 6 << 20,
        journal_bytes: 3 << 20,
        cache_pages: 4096,
        dirty_pages_max: 96,
        young_max: 200,
        contents: 1 << 40,
        tight: true,
        copies_above: 0,
        domains: 0,
        varies: false,
        detection: Detection::default(),
    }
}

fn request(verb: Verb, steps: u32) -> Request {
    Request { verb, steps }
}

fn create() -> Request {
    request(Verb::Create { volume: 0, sectors: 64_000, read_only: false }, 20)
}

/// Writes chunks whose bytes follow from `content`.
fn write(lba: u64, chunks: u64, content: u64, durable: bool) -> Verb {
    let (first, count) = (lba * SECTORS, chunks * SECTORS);
    Verb::Write { volume: 0, first, count, content, durable }
}

/// The journal laps under checkpoints that are held up, and then the newest root is lost: the older
/// one needs the journal from its own position on. The ring is so long that nothing less brings
/// the writer round to that position.
#[must_use]
pub fn lapped_journal() -> Script {
    let shape = Shape { journal_bytes: 6 << 20, contents: 60, tight: false, ..shape() };
    let mut requests = vec![create()];
    for number in 0..LAPPING_WRITES {
        if HELD.iter().any(|held| held.contains(&number)) && number.is_multiple_of(HOLD_EVERY) {
            // 1 stands for the tables' file.
            requests.push(request(Verb::Trouble { kind: Trouble::Slow, number: 1 }, 0));
        }
        requests.push(request(write(number % 64, 1, number, true), 12));
    }
    let life = Life { requests, end: End::Power(Loss::None, 1), root_lost: true };
    Script { shape, lives: vec![life] }
}

/// Small groups of known contents, none flushed: each is a record of one block that needs no frame,
/// and inside each a later write takes the place of one before its neighbour.
#[must_use]
pub fn groups_in_flight() -> Script {
    let shape = Shape { contents: 12, ..shape() };
    let mut lives = Vec::new();
    for life in 0..4 {
        let mut requests = vec![];
        if life == 0 {
            requests.push(create());
        }
        // All contents are stored, and so no group brings a frame.
        requests.push(request(write(100, 60, 1, true), 40));
        for number in 0..12 {
            let content = 50 * life + 3 * number;
            requests.push(request(write(0, 1, content, false), 0));
            requests.push(request(write(10 + number, 1, content + 1, false), 0));
            requests.push(request(write(0, 1, content + 2, false), 1));
            requests.extend([request(Verb::Tick, 2), request(Verb::Tick, 2)]);
        }
        lives.push(Life { requests, end: End::Power(Loss::Few, life), root_lost: false });
    }
    Script { shape, lives }
}

/// Chunks are stored, read until their frames are in memory, and die; and their names are given to
/// others, which are read as well.
#[must_use]
pub fn names_given_again() -> Script {
    let shape = Shape { cache_pages: 10, dirty_pages_max: 24, ..shape() };
    let mut requests = vec![create()];
    let rest = || [request(Verb::Flush, 40), request(Verb::Idle, 0)];
    for round in 0..8 {
        let parts = 0..8;
        for part in parts {
            requests.push(request(write(part * 200, 200, 100 * round + part, false), 30));
        }
        requests.extend(rest());
        // In sequence, so that what follows is read ahead.
        for first in (0..32).map(|part| part * 50 * SECTORS) {
            let read = Verb::Read { volume: 0, first, count: 50 * SECTORS };
            requests.push(request(read, 30));
        }
        let (first, count) = (0, 1600 * SECTORS);
        requests.push(request(Verb::Trim { volume: 0, first, count, durable: false }, 40));
        requests.extend(rest());
    }
    Script { shape, lives: vec![Life { requests, end: End::Close, root_lost: false }] }
}

/// Chunks are read until doors answer them by themselves, and written again in every way: each read
/// that follows comes before the core has seen the write, or just after.
#[must_use]
pub fn read_at_the_door() -> Script {
    let mut requests = vec![create(), request(write(0, 16, 1, false), 40)];
    let read = |steps| request(Verb::Read { volume: 0, first: 0, count: 8 * SECTORS }, steps);
    for round in 0..6 {
        requests.extend([request(Verb::Flush, 60), read(40), read(40), read(40), read(0)]);
        let trim = Verb::Trim { volume: 0, first: 0, count: 4 * SECTORS, durable: false };
        let sectors = Verb::Write { volume: 0, first: 3, count: 9, content: round, durable: false };
        let change = match round % 3 {
            0 => [request(write(0, 8, 50 + round, false), 0)],
            1 => [request(sectors, 40)],
            _ => [request(trim, 40)],
        };
        requests.extend(change);
        requests.extend([read(0), read(40)]);
    }
    Script { shape: shape(), lives: vec![Life { requests, end: End::Close, root_lost: false }] }
}

/// A part of a leaf is written again, and while that waits in the write buffer, so often is read
/// beside it that doors are shown the leaf.
#[must_use]
pub fn leaves_at_the_door() -> Script {
    let mut requests = vec![create(), request(write(0, 64, 1, false), 40)];
    let read = |first: u64, chunks: u64, steps| {
        let (first, count) = (first * SECTORS, chunks * SECTORS);
        request(Verb::Read { volume: 0, first, count }, steps)
    };
    for round in 1..7 {
        requests.extend([request(Verb::Flush, 60), read(0, 8, 40), read(0, 8, 40)]);
        requests.push(request(write(0, 8, 100 * round, false), 4));
        requests.extend((0..8).map(|chunk| read(8 * round + chunk, 1, 4)));
        requests.push(read(0, 8, 0));
    }
    Script { shape: shape(), lives: vec![Life { requests, end: End::Close, root_lost: false }] }
}

/// A place in a leaf of its own of the map of a sparse volume, the `number`th.
fn sparse(volume: u32, number: u64, content: u64) -> Verb {
    let first = number * 3 * map_page::SLOTS as u64 * SECTORS;
    Verb::Write { volume, first, count: SECTORS, content, durable: false }
}

/// A container of fresh chunks dies, and while it is collected four of them are written again, to
/// leaves of a map that have long left the cache: their group knows its chunks and waits.
#[must_use]
pub fn dead_chunks_come_back() -> Script {
    let shape = Shape {
        tables_bytes: 16 << 20,
        journal_bytes: 6 << 20,
        cache_pages: 10,
        dirty_pages_max: 24,
        ..shape()
    };
    let mut requests = vec![create()];
    requests.push(request(Verb::Create { volume: 1, sectors: 1 << 27, read_only: false }, 20));
    requests.extend((0..32).map(|leaf| request(sparse(1, leaf, 900_000 + leaf), 2)));
    requests.extend([request(Verb::Flush, 20), request(Verb::Idle, 0)]);
    for round in 0..8 {
        let content = 1000 + 10 * round;
        requests
            .extend((0..5).map(|part| request(write(part * 300, 300, content + part, false), 10)));
        requests.extend([request(Verb::Flush, 10), request(Verb::Idle, 0)]);
        let count = 1500 * SECTORS;
        // How soon the group is looked up decides whether it meets the collection: all are tried.
        let trim = Verb::Trim { volume: 0, first: 0, count, durable: false };
        requests.push(request(trim, 0));
        // The first chunk of each part, which is in another slice of the collection.
        requests.extend((0..4).map(|part| request(sparse(1, 4 * round + part, content + part), 0)));
        let steps = round as u32 % 4;
        requests.extend([request(Verb::Tick, 0), request(Verb::Tick, steps)]);
        requests.extend([request(Verb::Tick, 3), request(Verb::Tick, 20)]);
        requests.push(request(Verb::Flush, 10));
    }
    Script { shape, lives: vec![Life { requests, end: End::Close, root_lost: false }] }
}

/// A volume of many leaves and few pages in memory, and its first `leaves` leaves written.
fn sparse_store(leaves: u64) -> (Shape, Vec<Request>) {
    let shape = Shape {
        tables_bytes: 16 << 20,
        journal_bytes: 6 << 20,
        cache_pages: 24,
        dirty_pages_max: 24,
        tight: false,
        copies_above: 0,
        domains: 0,
        ..shape()
    };
    let create = Verb::Create { volume: 0, sectors: 1 << 27, read_only: false };
    let mut requests = vec![request(create, 20)];
    requests.extend((0..leaves).map(|leaf| request(sparse(0, leaf, leaf), 1)));
    requests.extend([request(Verb::Flush, 20), request(Verb::Idle, 0)]);
    (shape, requests)
}

/// The tables' device is slow to write from now on, and as quick to read as ever.
fn lagging_tables() -> Request {
    // 1 stands for the tables' file.
    request(Verb::Trouble { kind: Trouble::Lagging, number: 1 }, 0)
}

fn read_sparse(volume: u32, leaf: u64, steps: u32) -> Request {
    let first = leaf * 3 * map_page::SLOTS as u64 * SECTORS;
    request(Verb::Read { volume, first, count: SECTORS }, steps)
}

/// Buckets of the Hash-PBN table are on their way to the disk, more pages of a map are read than
/// the cache holds, and then the buckets are looked into again.
#[must_use]
pub fn buckets_read_again() -> Script {
    let leaves = 200;
    let (shape, mut requests) = sparse_store(leaves);
    // Far behind the sparse leaves: neighbours, in one leaf of the map each.
    let behind = 100_000;
    let fresh = |number: u64, chunks, steps| {
        request(write(behind + number * chunks, chunks, 1000 * (1 + number), false), steps)
    };
    requests.extend((0..40).map(|number| fresh(number, 90, 10)));
    requests.extend([request(Verb::Flush, 20), request(Verb::Idle, 0)]);
    for round in 0..3 {
        requests.push(lagging_tables());
        requests.extend([fresh(50 + 2 * round, 90, 0), request(Verb::Tick, 4)]);
        requests.push(request(Verb::Tick, 12));
        for leaf in 0..leaves {
            if leaf % 20 == 0 {
                // Held up again, before it moves.
                requests.push(lagging_tables());
            }
            requests.push(read_sparse(0, leaf, u32::from(leaf % 6 == 0)));
        }
        requests.push(lagging_tables());
        requests.extend([fresh(51 + 2 * round, 90, 0), request(Verb::Tick, 4)]);
        requests.extend([request(Verb::Tick, 40), request(Verb::Idle, 0)]);
    }
    Script { shape, lives: vec![Life { requests, end: End::Close, root_lost: false }] }
}

/// Leaves of a map are on their way to the disk when a snapshot is taken, and it is read at once.
#[must_use]
pub fn snapshot_of_pages_on_their_way() -> Script {
    let leaves = 30;
    let (shape, mut requests) = sparse_store(leaves);
    for snapshot in 1..4 {
        requests.push(lagging_tables());
        let content = 1000 * u64::from(snapshot);
        requests.extend((0..leaves).map(|leaf| request(sparse(0, leaf, content + leaf), 0)));
        requests.push(request(Verb::Tick, 3));
        requests.push(request(Verb::Snapshot { volume: 0, snapshot }, 0));
        requests.extend((0..leaves).map(|leaf| read_sparse(snapshot, leaf, 0)));
        requests.extend([request(Verb::Tick, 40), request(Verb::Idle, 0)]);
    }
    Script { shape, lives: vec![Life { requests, end: End::Close, root_lost: false }] }
}

/// A trim and a shrink, each over so many leaves of a map that they are cut off, and each from the
/// middle of a leaf on, of which something was mapped: a crash must leave what comes first done.
#[must_use]
pub fn unmaps_from_the_middle_of_a_leaf() -> Script {
    let leaf_chunks = map_page::SLOTS as u64;
    let (shape, mut requests) = sparse_store(0);
    for round in 0..2 {
        let content = |leaf| 1000 * (1 + round) + leaf;
        let written = (0..40).map(|leaf| write(leaf * leaf_chunks + 3, 1, content(leaf), false));
        requests.extend(written.map(|write| request(write, 10)));
        requests.extend([request(Verb::Flush, 100), request(Verb::Idle, 0)]);
        let (first, count) = (SECTORS, 40 * leaf_chunks * SECTORS);
        requests.push(match round {
            0 => request(Verb::Trim { volume: 0, first, count, durable: false }, 2),
            _ => request(Verb::Resize { volume: 0, sectors: first }, 2),
        });
        requests.push(request(Verb::Flush, 400));
    }
    Script { shape, lives: vec![Life { requests, end: End::Close, root_lost: false }] }
}

/// Half of the containers die and are collected, and so much is stored after that that the first
/// of them is written over; then the power goes. What it held is still needed until its freeing is
/// known to be durable: it may not be durable at all, or (`flushed`) durable without anything that
/// says so, and then an opening looks at its frames.
#[must_use]
pub fn freed_containers(flushed: bool) -> Script {
    // A little more than a group.
    const PART_CHUNKS: u64 = 520;
    let shape = Shape {
        containers: 14,
        tables_bytes: 16 << 20,
        journal_bytes: 16 << 20,
        dirty_pages_max: 4096,
        // Nothing is merged: a checkpoint for want of blocks would tell of what was freed.
        young_max: 100_000,
        ..shape()
    };
    let create = Verb::Create { volume: 0, sectors: 24_000 * SECTORS, read_only: false };
    let fill = |parts: std::ops::Range<u64>, content: u64| {
        let chunks = move |part| write(part * PART_CHUNKS, PART_CHUNKS, content + part, false);
        parts.map(move |part| request(chunks(part), 30))
    };
    let trim = |parts: std::ops::Range<u64>| {
        let part_sectors = PART_CHUNKS * SECTORS;
        let (first, end) = (parts.start * part_sectors, parts.end * part_sectors);
        Verb::Trim { volume: 0, first, count: end - first, durable: false }
    };
    let (dying, later) = (0..21, 21..40);
    let mut lives = Vec::new();
    for life in 0..4 {
        let mut requests = vec![];
        if life == 0 {
            requests.push(request(create.clone(), 20));
        }
        requests.push(request(trim(dying.start..later.end), 20));
        requests.extend([request(Verb::Flush, 40), request(Verb::Idle, 0)]);
        requests.extend(fill(dying.clone(), 1000 * (life + 1)));
        if !flushed {
            requests.extend([request(Verb::Flush, 40), request(Verb::Idle, 0)]);
        }
        // Alone in its place: a prefix without it is seen.
        requests.push(request(write(23_900, 1, 500 + life, false), 20));
        requests.push(request(trim(dying.clone()), 400));
        if flushed {
            requests.push(request(Verb::Flush, 400));
        }
        requests.extend(fill(later.clone(), 1000 * (life + 1)));
        lives.push(Life { requests, end: End::Power(Loss::Mixed, 1 + life), root_lost: false });
    }
    Script { shape, lives }
}

/// A frame of a life that was cut stands where the device lost the write of another one of the same
/// PBN: a finding (seed 500061).
///
/// # Panics
/// When the file of the finding holds no script.
#[must_use]
#[expect(clippy::expect_used, reason = "a file of this repository, which a test runs as well")]
pub fn stale_frame() -> Script {
    let found = include_str!("../tests/findings/a-stale-frame-of-a-cut-life.txt");
    found.parse().expect("a script")
}
