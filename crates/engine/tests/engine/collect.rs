//! Room made on request: container by container, as it is or compressed harder.

use engine::{
    Codec, CollectPosition, CollectRequest, CollectStep, Compression, Problem, RequestError, Zone,
    control,
};
use format::units::CONTAINER_BYTES;

use crate::stand::{CHUNK, GIB, Hand, MIB, Opens, Stand, Wish, check, check_clean, fresh};

const RAW: Compression = Compression { codec: Codec::Raw, level: 0 };
const ZSTD: Compression = Compression { codec: Codec::Zstd, level: 3 };

/// A chunk of which half can be compressed, and that no other number has.
fn half(number: u64) -> Vec<u8> {
    let mut bytes = fresh(number, CHUNK);
    bytes[CHUNK as usize / 2..].fill(7);
    bytes
}

/// Every step until nothing is left.
fn collect_all(stand: &Stand, recompress: Option<Compression>) -> Vec<CollectStep> {
    let mut steps = Vec::new();
    let mut position = None;
    loop {
        let step = stand.client.ask(CollectRequest { position, recompress }).unwrap();
        steps.push(step);
        position = steps[steps.len() - 1].next;
        if position.is_none() {
            return steps;
        }
    }
}

#[test]
fn what_has_lost_a_sixteenth_is_collected_and_nothing_else() {
    let stand = Wish { capacities: vec![128 * MIB], ..Wish::default() }.stand();
    let volume = stand.volume("v", GIB);
    let chunks = 48 * MIB / CHUNK;
    stand.write(&volume, 0, &fresh(1, chunks * CHUNK));
    stand.flush();
    assert_eq!(collect_all(&stand, None).len(), 1, "nothing has been lost");
    // Every fourth chunk of the first half, in runs: half of the containers lose a quarter.
    for lba in (0..chunks / 2).step_by(64) {
        stand.client.trim_blocking(&volume, lba * CHUNK, 16 * CHUNK).unwrap();
    }
    stand.flush();
    let before = stand.stats();
    let steps = collect_all(&stand, None);
    let freed = steps.iter().filter_map(|step| step.collected).filter(|one| one.freed).count();
    assert!((4..=8).contains(&freed), "{steps:?}");
    let after = stand.stats();
    assert!(after.free_bytes >= before.free_bytes + 3 * MIB, "{before:?} {after:?}");
    assert!(after.dead_bytes < before.dead_bytes / 8, "{after:?}");
    let moved: u64 =
        steps.iter().filter_map(|step| step.collected).map(|one| one.moved_bytes).sum();
    assert_eq!(moved, after.counters.frame_bytes_moved);
    let last = steps.last().unwrap();
    assert!(last.collected.is_none() && last.containers_used < last.containers, "{last:?}");
    assert_eq!(
        stand.read(&volume, chunks / 2 * CHUNK, CHUNK),
        fresh(1, chunks * CHUNK)[(chunks / 2 * CHUNK) as usize..][..CHUNK as usize]
    );
    check_clean(&stand.close());
}

#[test]
fn recompression_goes_through_everything_once_and_makes_it_smaller() {
    let stand = Wish { capacities: vec![128 * MIB], ..Wish::default() }.stand();
    stand.client.ask(control::SetCompression { compression: RAW }).unwrap();
    let volume = stand.volume("v", GIB);
    let chunks = 32 * MIB / CHUNK;
    for lba in 0..chunks {
        stand.write(&volume, lba * CHUNK, &half(lba + 1));
    }
    stand.flush();
    let before = stand.stats();
    let steps = collect_all(&stand, Some(ZSTD));
    let after = stand.stats();
    assert!(after.stored_bytes * 10 < before.stored_bytes * 6, "{before:?} {after:?}");
    assert!(after.free_bytes > before.free_bytes + 10 * MIB, "{before:?} {after:?}");
    let collected: Vec<_> = steps.iter().filter_map(|step| step.collected).collect();
    assert!((7..=9).contains(&collected.len()), "{collected:?}");
    assert!(collected.iter().all(|one| one.freed && one.written_bytes * 10 < one.moved_bytes * 6));
    for lba in (0..chunks).step_by(97) {
        assert_eq!(stand.read(&volume, lba * CHUNK, CHUNK), half(lba + 1), "{lba}");
    }
    // A second time nothing becomes shorter; what moves is moved as it is.
    let again = collect_all(&stand, Some(ZSTD));
    let bytes = |one: &engine::CollectedContainer| (one.moved_bytes, one.written_bytes);
    let all = again.iter().filter_map(|step| step.collected);
    assert!(all.clone().count() > 2 && all.clone().all(|one| bytes(&one).0 == bytes(&one).1));
    check_clean(&stand.close());
}

#[test]
fn clients_write_and_trim_while_containers_are_compressed_anew() {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let volume = hand.volume("v", GIB);
    hand.beside(|client| client.ask(control::SetCompression { compression: RAW })).unwrap();
    let chunks = 16 * MIB / CHUNK;
    let mut number = vec![0; chunks as usize];
    for lba in 0..chunks {
        number[lba as usize] = lba + 1;
        hand.write(&volume, lba * CHUNK, &half(lba + 1));
        if lba % 256 == 0 {
            hand.settle();
        }
    }
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let mut position: Option<CollectPosition> = None;
    for round in 0..40u64 {
        let (tag, done) = hand.done();
        let request = CollectRequest { position, recompress: Some(ZSTD) };
        hand.client.administer(request, done);
        for step in 0..12 {
            let lba = (round * 131 + step * 37) % chunks;
            if step % 3 == 0 {
                number[lba as usize] = 0;
                hand.trim(&volume, lba * CHUNK, CHUNK);
            } else {
                number[lba as usize] = 1 << 32 | round << 8 | step;
                hand.write(&volume, lba * CHUNK, &half(number[lba as usize]));
            }
            hand.steps(round % 5);
        }
        match hand.wait(tag).unwrap() {
            engine::Reply::Collect(step) => position = step.next,
            other => panic!("{other:?}"),
        }
    }
    for lba in 0..chunks {
        let expected = match number[lba as usize] {
            0 => vec![0; CHUNK as usize],
            number => half(number),
        };
        assert!(hand.read(&volume, lba * CHUNK, CHUNK as u32) == expected, "{lba}");
    }
    check_clean(&hand.close());
}

#[test]
fn who_waits_for_a_step_is_told_when_the_store_closes() {
    let mut hand = Hand::new(&Wish::default());
    let (closed, done) = hand.done();
    hand.client.administer(control::Close {}, done);
    let (asked, done) = hand.done();
    hand.client.administer(engine::CollectRequest::default(), done);
    assert_eq!(hand.wait(asked).unwrap_err(), RequestError::Closing);
    hand.wait(closed).unwrap();
}

/// What dies as a whole is forgotten by what its directory says.
#[test]
fn of_what_is_dead_only_the_directory_is_read() {
    let mut hand = Hand::new(&Wish { capacities: vec![128 * MIB], ..Wish::default() });
    let volume = hand.volume("v", GIB);
    for at in 0..24 {
        assert_eq!(hand.write(&volume, at * MIB, &fresh(at, MIB)), None);
        hand.settle();
    }
    let bytes_read = |hand: &Hand| hand.disk.counters().bytes_read;
    let before = bytes_read(&hand);
    let trimmed = hand.trim(&volume, 0, 24 * MIB);
    hand.wait(trimmed).unwrap();
    for _ in 0..20 {
        hand.engine.tick();
        hand.settle();
    }
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert!(stats.counters.containers_collected >= 5, "{:?}", stats.counters);
    assert_eq!(stats.unique_chunks, 0);
    assert!(bytes_read(&hand) - before < stats.counters.containers_collected * MIB);
    check_clean(&hand.close());
}

/// One damaged stretch hits the end of a container, its directory and what lies before: what was in
/// there nobody knows. So the container stays, even if nothing in it lives: its chunks are found as
/// duplicates still. They are not believed to be there, but stored anew.
#[test]
fn what_a_damaged_end_may_have_held_is_stored_anew() {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", GIB);
    let bytes = fresh(1, 5 * MIB);
    hand.write(&volume, 0, &bytes);
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let end_bytes = u64::from(CONTAINER_BYTES);
    for at_bytes in end_bytes - (64 << 10)..end_bytes {
        hand.disk.corrupt(Zone::Data(0), at_bytes, |byte| *byte = 0);
    }
    let trimmed = hand.trim(&volume, 0, 5 * MIB);
    hand.wait(trimmed).unwrap();
    for _ in 0..20 {
        hand.settle();
        hand.engine.tick();
    }
    let later = hand.write(&volume, 8 * MIB, &bytes);
    later.into_iter().for_each(|tag| drop(hand.wait(tag).unwrap()));
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    drop(volume);
    let disk = hand.close();
    assert_eq!(check(&disk).problems, [Problem::Directory { container: 0 }]);
    let stand = wish.open(disk);
    let volume = stand.client.volume("v").unwrap();
    for at_bytes in (0..5 * MIB).step_by(CHUNK as usize) {
        let there = stand.try_read(&volume, 8 * MIB + at_bytes, CHUNK);
        let meant = &bytes[at_bytes as usize..][..CHUNK as usize];
        assert!(there.as_ref().is_ok_and(|there| there == meant), "{at_bytes}: {:?}", there.err());
    }
    stand.close();
}
