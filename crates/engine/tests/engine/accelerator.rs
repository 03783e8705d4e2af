//! An accelerator changes when chunks are compressed, and nothing that is stored: a store that was
//! written with one is the other's twin, byte for byte.

use std::ops::Range;
use std::thread;

use disk::MemoryDisk;
use engine::{
    AcceleratorFigures, Codec, Compression, EmulatedSettings, OpenVolume, Reply, Zone, control,
};
use format::superblock::{GEOMETRY_BLOCKS, Geometry};
use proptest::prelude::*;

use crate::stand::{CHUNK, Hand, MIB, Opens, Stand, Wish, cases, check_clean, fresh, packed};

const CHUNKS: u64 = 2048;

/// What a client does; volumes are two, and contents few enough to come again.
#[derive(Clone, Debug)]
enum Op {
    Write {
        volume: usize,
        first: u64,
        contents: Vec<u8>,
    },
    /// Some bytes of a chunk.
    Patch {
        volume: usize,
        chunk: u64,
        content: u8,
    },
    Trim {
        volume: usize,
        first: u64,
        chunks: u64,
    },
    /// Which of three codecs the first volume has from now on.
    SetCodec(usize),
    Flush,
    Steps(u64),
}

/// From `ALIKE` on chunks differ from earlier ones where no sample looks.
const ALIKE: u8 = 50;

fn content(number: u8) -> Vec<u8> {
    match number {
        0 => vec![0; CHUNK as usize],
        1..ALIKE => packed(number.into()),
        ALIKE..100 => {
            let mut chunk = packed((number - ALIKE + 1).into());
            chunk[100] = 1;
            chunk
        }
        _ => fresh(number.into(), CHUNK),
    }
}

/// The outcome of a request, without a tick: how many there are would say what is flushed when.
fn outcome(hand: &mut Hand, tag: u64) -> Reply {
    for _ in 0..100_000 {
        if let Some(outcome) = hand.outcome(tag) {
            return outcome.unwrap();
        }
        hand.steps(1);
    }
    panic!("it never comes");
}

fn op() -> impl Strategy<Value = Op> {
    let contents = prop::collection::vec(any::<u8>(), 1..200);
    let write = (0_usize..2, 0..CHUNKS, contents).prop_map(|(volume, first, contents)| Op::Write {
        volume,
        first,
        contents,
    });
    let patch = (0_usize..2, 0..CHUNKS, any::<u8>())
        .prop_map(|(volume, chunk, content)| Op::Patch { volume, chunk, content });
    let trim = (0_usize..2, 0..CHUNKS, 1_u64..600).prop_map(|(volume, first, chunks)| Op::Trim {
        volume,
        first,
        chunks,
    });
    prop_oneof![
        8 => write,
        2 => patch,
        1 => trim,
        1 => (0_usize..3).prop_map(Op::SetCodec),
        2 => Just(Op::Flush),
        2 => (1_u64..6).prop_map(Op::Steps),
    ]
}

fn devices() -> impl Strategy<Value = EmulatedSettings> {
    let word = (64_usize..513, 1_usize..12, 1_usize..5, 1_usize..5);
    word.prop_map(|(batch, queue, hash, compress)| {
        let text = format!("emulated:batch={batch},queue={queue},hash={hash},compress={compress}");
        text.parse().unwrap()
    })
}

fn wish(accelerator: Option<EmulatedSettings>) -> Wish {
    let mut wish = Wish::default();
    wish.options.accelerator = accelerator;
    wish
}

/// A store with two volumes, the second with a codec of its own.
fn made() -> MemoryDisk {
    let stand = wish(None).stand();
    drop(["a", "b"].map(|name| stand.volume(name, CHUNKS * CHUNK)));
    let zstd = Compression { codec: Codec::Zstd, level: 1 };
    stand.client.set_volume_compression("b", Some(zstd)).unwrap();
    stand.close()
}

fn within(first: u64, chunks: u64) -> u64 {
    chunks.min(CHUNKS - first)
}

fn apply(hand: &mut Hand, volumes: &[OpenVolume; 2], op: &Op) {
    let wait = |hand: &mut Hand, tag: Option<u64>| {
        if let Some(tag) = tag {
            outcome(hand, tag);
        }
    };
    match op {
        Op::Write { volume, first, contents } => {
            let bytes: Vec<u8> = contents.iter().flat_map(|number| content(*number)).collect();
            let length = within(*first, contents.len() as u64) * CHUNK;
            let tag = hand.write(&volumes[*volume], first * CHUNK, &bytes[..length as usize]);
            wait(hand, tag);
        }
        Op::Patch { volume, chunk, content } => {
            let tag = hand.write(&volumes[*volume], chunk * CHUNK + 512, &[*content; 1024]);
            wait(hand, tag);
        }
        Op::Trim { volume, first, chunks } => {
            let length = within(*first, *chunks) * CHUNK;
            let tag = hand.trim(&volumes[*volume], first * CHUNK, length);
            wait(hand, Some(tag));
        }
        Op::SetCodec(which) => {
            let codec = [Codec::Raw, Codec::Lz4, Codec::Zstd][*which];
            let compression = Some(Compression { codec, level: 1 });
            let (tag, done) = hand.done();
            let name = "a".to_owned();
            hand.client.administer(control::SetVolumeCompression { name, compression }, done);
            wait(hand, Some(tag));
        }
        Op::Flush => {
            let tag = hand.flush();
            wait(hand, Some(tag));
        }
        Op::Steps(count) => hand.steps(*count),
    }
}

/// What a client's operations leave on the disk.
fn written(
    disk: MemoryDisk,
    accelerator: Option<EmulatedSettings>,
    ops: &[Op],
) -> (MemoryDisk, Option<AcceleratorFigures>) {
    let mut hand = Hand::open(&wish(accelerator), disk);
    let client = hand.client.clone();
    let opening = thread::spawn(move || ["a", "b"].map(|name| client.volume(name).unwrap()));
    hand.step_until("volumes", || opening.is_finished());
    let volumes = opening.join().unwrap();
    for op in ops {
        apply(&mut hand, &volumes, op);
        hand.settle();
    }
    let flushed = hand.flush();
    outcome(&mut hand, flushed);
    let (tag, done) = hand.done();
    hand.client.administer(control::GetStats {}, done);
    let Reply::Stats(stats) = outcome(&mut hand, tag) else { panic!("no figures") };
    drop(volumes);
    let (tag, done) = hand.done();
    hand.client.administer(control::Close {}, done);
    outcome(&mut hand, tag);
    (hand.disk, stats.accelerator)
}

/// Every byte of every zone.
fn bytes(disk: &MemoryDisk) -> Vec<(Zone, Vec<u8>)> {
    let block = disk.peek(Zone::Superblock, GEOMETRY_BLOCKS[0] * 4096, 4096);
    let geometry = Geometry::decode(&block).unwrap();
    let zones: Vec<_> = geometry.zones().collect();
    zones.into_iter().map(|(zone, length)| (zone, disk.peek(zone, 0, length as usize))).collect()
}

fn differs(one: &MemoryDisk, other: &MemoryDisk) -> Option<Zone> {
    let pairs = bytes(one).into_iter().zip(bytes(other));
    let mut differing = pairs.filter(|(one, other)| one != other);
    differing.next().map(|((zone, _), _)| zone)
}

/// Writes of which a quarter are new, so that there are guesses of each kind.
fn half_duplicate() -> Vec<Op> {
    let contents = |round: u64| (0..200).map(|n| ((n * 7 + round * 50) % 256) as u8).collect();
    let op = |round: u64| Op::Write {
        volume: (round % 2) as usize,
        first: round * 100 % (CHUNKS - 200),
        contents: contents(round),
    };
    (0..24).map(op).collect()
}

#[test]
fn guesses_are_counted_and_none_of_them_is_stored() {
    let disk = made();
    let (plain, none) = written(disk.restart(1), None, &half_duplicate());
    assert_eq!(none, None);
    let settings: EmulatedSettings = "emulated:queue=2,hash=1,compress=1".parse().unwrap();
    let (twin, figures) = written(disk.restart(1), Some(settings), &half_duplicate());
    assert_eq!(differs(&plain, &twin), None);
    check_clean(&twin);
    let figures = figures.unwrap();
    assert_eq!(figures.device, settings.to_string());
    // Contents are 255 beside zeros, of which 50 look like others. None is forgotten.
    assert_eq!(figures.chunks_hashed, 24 * 200);
    assert_eq!(figures.predicted_new + figures.sent_twice, 255, "{figures:?}");
    assert_eq!((figures.sent_twice, figures.compressed_in_vain), (49, 0), "{figures:?}");
    assert!(figures.predicted_duplicate > 4000 && figures.held_max == 2, "{figures:?}");
    assert!(figures.predicted_ratio > 0.9 && figures.predicted_ratio < 1.0, "{figures:?}");
    // The first chunk of zeros as well: nobody knows before it is hashed.
    assert_eq!(figures.chunks_compressed, 256);
    // After a restart nothing is remembered: what is stored is taken for new.
    let (_, figures) = written(twin, Some(settings), &half_duplicate()[..6]);
    let figures = figures.unwrap();
    assert!(figures.compressed_in_vain > 200 && figures.predicted_new == 0, "{figures:?}");
    assert_eq!(figures.in_vain_bytes, figures.compressed_in_vain * CHUNK);
}

#[test]
fn a_new_chunk_that_is_taken_for_a_duplicate_is_sent_twice_and_stored() {
    let disk = made();
    let write =
        |first, contents: Range<u8>| Op::Write { volume: 1, first, contents: contents.collect() };
    let ops = [write(0, 1..41), Op::Flush, write(100, ALIKE..ALIKE + 40)];
    let (plain, _) = written(disk.restart(1), None, &ops);
    let (twin, figures) = written(disk.restart(1), Some(EmulatedSettings::default()), &ops);
    assert_eq!(differs(&plain, &twin), None);
    check_clean(&twin);
    let figures = figures.unwrap();
    assert_eq!((figures.predicted_new, figures.sent_twice), (40, 40), "{figures:?}");
    assert_eq!((figures.chunks_hashed, figures.chunks_compressed), (80, 80));
}

/// With threads, and several groups under way, everything is read back.
#[test]
fn what_threads_do_for_a_device_is_read_back() {
    let mut wish = wish(Some("emulated:queue=3,hash=2,compress=1".parse().unwrap()));
    wish.options.worker_threads = 3;
    let stand: Stand = wish.stand();
    let volume = stand.volume("v", 24 * MIB);
    let piece = |at: u64| [fresh(at % 9, MIB / 2), packed(at).repeat(128)].concat();
    (0..24).for_each(|at| stand.write(&volume, at * MIB, &piece(at)));
    stand.flush();
    (0..24).for_each(|at| assert!(stand.read(&volume, at * MIB, MIB) == piece(at), "{at}"));
    let figures = stand.stats().accelerator.unwrap();
    assert_eq!(figures.chunks_hashed, 24 * 256);
    assert!(figures.held_max <= 3 && figures.submissions >= 24 * 4, "{figures:?}");
    drop(volume);
    check_clean(&stand.close());
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn a_store_written_with_an_accelerator_is_the_others_twin(
        ops in prop::collection::vec(op(), 1..40),
        settings in devices(),
    ) {
        let disk = made();
        let (plain, _) = written(disk.restart(1), None, &ops);
        let (again, _) = written(disk.restart(1), None, &ops);
        prop_assert_eq!(differs(&plain, &again), None, "the test itself");
        let (twin, _) = written(disk.restart(1), Some(settings), &ops);
        prop_assert_eq!(differs(&plain, &twin), None);
        check_clean(&twin);
    }
}
