//! A holder of room ends what it began, however full the store becomes meanwhile; what it does not
//! use comes back, and it never has more than it asked for.

use engine::{
    Caches, Client, Durability, OpenVolume, RequestError, Reservation, ReservedFor, UnderWay,
    WriteOptions, WriteRoom,
};
use proptest::prelude::*;

use crate::stand::{
    CHUNK, Dice, GIB, Hand, MIB, Opens, Stand, Wish, cases, check_clean, fresh, packed,
};

const PLAIN: WriteOptions = WriteOptions { durability: Durability::Acknowledged, unindexed: false };
const DURABLE: WriteOptions = WriteOptions { durability: Durability::Durable, ..PLAIN };

fn small() -> Wish {
    Wish { capacities: vec![64 * MIB], ..Wish::default() }
}

/// Writes fresh chunks from 64 MiB on until the store refuses.
fn fill(client: &Client, volume: &OpenVolume) -> u64 {
    let mut number = 0;
    while client.write_at(volume, 64 * MIB + number * CHUNK, &fresh(number, CHUNK)).is_ok() {
        number += 1;
    }
    number
}

fn room(chunks: u64, writes: u64) -> WriteRoom {
    WriteRoom::of_chunks(chunks, writes)
}

fn write_one(
    client: &Client,
    reservation: &Reservation,
    lba: u64,
    bytes: &[u8],
    options: WriteOptions,
) -> Result<(), RequestError> {
    client.write_reserved_at(reservation, &[(lba * CHUNK, bytes)], options)
}

/// A store at rest holds nothing for anybody.
fn expect_nothing_held(stand: &Stand) {
    stand.flush();
    stand.wait_until("rest", |stats| stats.under_way == UnderWay::default());
}

#[test]
fn who_reserved_before_ends_its_work_in_a_store_that_is_full() {
    let stand = small().stand();
    let volume = stand.volume("v", GIB);
    let chunks = 1500;
    let held = stand.client.reserve(&volume, room(chunks, chunks), ReservedFor::Writes).unwrap();
    assert!(fill(&stand.client, &volume) > 1000);
    let again = stand.client.write_at(&volume, 900 * MIB, &fresh(3, CHUNK));
    assert_eq!(again, Err(RequestError::NoSpace));
    // Every chunk is new, nothing compresses it, and each is flushed: the worst case.
    for lba in 0..chunks {
        let options = if lba % 7 == 0 { DURABLE } else { PLAIN };
        write_one(&stand.client, &held, lba, &fresh(1 << 40 | lba, CHUNK), options).unwrap();
        if lba % 5 == 0 {
            stand.flush();
        }
    }
    assert_eq!(held.left(), room(0, 0));
    drop(held);
    expect_nothing_held(&stand);
    let stand = small().open(stand.cut_power_flushed(1));
    let volume = stand.client.volume("v").unwrap();
    for lba in (0..chunks).step_by(10) {
        assert!(stand.read(&volume, lba * CHUNK, CHUNK) == fresh(1 << 40 | lba, CHUNK), "{lba}");
    }
    check_clean(&stand.close());
}

/// Here it is pages of the tables that run out: a leaf of a map for each chunk.
#[test]
fn a_reservation_has_pages_of_the_tables_too() {
    let cache = Caches {
        pages: 3000,
        dirty_pages_max: 2000,
        young_max: 100_000,
        directory_entries: 0,
        frame_bytes: 0,
        lends: false,
    };
    let wish = Wish { capacities: vec![512 * MIB], cache: Some(cache), ..Wish::default() };
    let stand = wish.stand();
    let sparse = stand.volume("sparse", 1024 * GIB);
    let at = |number: u64| number * 700 * CHUNK;
    let chunks = 400;
    let held = stand.client.reserve(&sparse, room(chunks, chunks), ReservedFor::Writes).unwrap();
    let mut number = chunks;
    while stand.client.write_at(&sparse, at(number), &packed(1)).is_ok() {
        number += 1;
    }
    assert!(number > 5000, "{number}");
    for lba in 0..chunks {
        write_one(&stand.client, &held, lba * 700, &packed(1000 + lba), PLAIN).unwrap();
    }
    stand.flush();
    assert!(stand.read(&sparse, at(chunks - 1), CHUNK) == packed(1000 + chunks - 1));
    drop(held);
    check_clean(&stand.close());
}

#[test]
fn what_is_not_there_is_refused_and_what_comes_back_is_there_again() {
    let stand = small().stand();
    let volume = stand.volume("v", GIB);
    let reserve = |chunks| stand.client.reserve(&volume, room(chunks, 1), ReservedFor::Writes);
    assert_eq!(reserve(1 << 20).unwrap_err(), RequestError::NoSpace);
    assert_eq!(reserve(u64::MAX).unwrap_err(), RequestError::NoSpace);
    let first = reserve(1200).unwrap();
    let second = reserve(1200).unwrap();
    // The store is empty, and there is no room for anybody else.
    assert_eq!(reserve(2400).unwrap_err(), RequestError::NoSpace);
    assert_eq!(stand.stats().under_way.reserved_chunks, 2400);
    drop(first);
    let third = reserve(1200).unwrap();
    drop((second, third));
    expect_nothing_held(&stand);
    drop(reserve(2400).unwrap());
}

#[test]
fn nobody_writes_more_than_was_reserved() {
    let stand = small().stand();
    let volume = stand.volume("v", GIB);
    let held = stand.client.reserve(&volume, room(10, 3), ReservedFor::Writes).unwrap();
    let too_small = |chunks, writes, left_chunks, left_writes| RequestError::ReservationTooSmall {
        chunks,
        writes,
        left_chunks,
        left_writes,
    };
    let bytes = fresh(1, 11 * CHUNK);
    let write = |lba, chunks: u64| {
        write_one(&stand.client, &held, lba, &bytes[..(chunks * CHUNK) as usize], PLAIN)
    };
    assert_eq!(write(0, 11), Err(too_small(11, 1, 10, 3)));
    assert!(stand.read(&volume, 0, CHUNK) == [0; CHUNK as usize]);
    write(0, 8).unwrap();
    // Two chunks in part are two chunks.
    let at_the_seam = [(CHUNK - 512, &bytes[..1024])];
    stand.client.write_reserved_at(&held, &at_the_seam, PLAIN).unwrap();
    assert_eq!(held.left(), room(0, 1));
    assert_eq!(write(20, 1), Err(too_small(1, 1, 0, 1)));
    // Of a vector all is drawn or nothing.
    let other = stand.client.reserve(&volume, room(2, 1), ReservedFor::Writes).unwrap();
    let both = [(0, &bytes[..4096]), (CHUNK, &bytes[..4096])];
    let refused = stand.client.write_reserved_at(&other, &both, PLAIN);
    assert_eq!(refused, Err(too_small(2, 2, 2, 1)));
    assert_eq!(other.left(), room(2, 1));
    // What the volume refuses draws nothing.
    let beyond = stand.client.write_reserved_at(&other, &[(GIB, &bytes[..512])], PLAIN);
    assert!(matches!(beyond, Err(RequestError::OutOfRange { .. })));
    assert_eq!(other.left(), room(2, 1));
    drop((held, other));
    expect_nothing_held(&stand);
    check_clean(&stand.close());
}

#[test]
fn chunks_of_a_quota_are_held_too_and_plain_writes_do_not_wait_for_them() {
    let stand = small().stand();
    let volume = stand.volume("v", GIB);
    stand.client.set_quota("v", Some(10 * CHUNK)).unwrap();
    let at_quota = || RequestError::QuotaExceeded { volume: "v".to_owned() };
    let reserve = |chunks| stand.client.reserve(&volume, room(chunks, 10), ReservedFor::Writes);
    assert_eq!(reserve(11).unwrap_err(), at_quota());
    let held = reserve(6).unwrap();
    assert_eq!(reserve(5).unwrap_err(), at_quota());
    let plain = |lba: u64, chunks| {
        let bytes = fresh(lba, chunks * CHUNK);
        stand.client.write_at(&volume, lba * CHUNK, &bytes)
    };
    plain(100, 4).unwrap();
    // What is held is not on its way: nobody waits for it.
    assert_eq!(plain(200, 1), Err(at_quota()));
    plain(100, 4).unwrap();
    write_one(&stand.client, &held, 0, &fresh(1, 3 * CHUNK), PLAIN).unwrap();
    // A promise is kept whatever the quota becomes.
    stand.client.set_quota("v", Some(CHUNK)).unwrap();
    write_one(&stand.client, &held, 10, &fresh(2, 3 * CHUNK), DURABLE).unwrap();
    assert_eq!(plain(200, 1), Err(at_quota()));
    stand.client.set_quota("v", Some(11 * CHUNK)).unwrap();
    drop(held);
    plain(200, 1).unwrap();
    assert_eq!(plain(201, 1), Err(at_quota()));
    expect_nothing_held(&stand);
    check_clean(&stand.close());
}

/// Others have filled the store; what is kept for releases still lets its holder write, and what
/// that brings is for everybody.
#[test]
fn what_is_kept_for_releases_is_there_in_a_full_store() {
    let kept = room(100, 100);
    let mut wish = small();
    wish.options.kept_for_release = kept;
    let stand = wish.stand();
    let volume = stand.volume("v", GIB);
    let filled = fill(&stand.client, &volume);
    let reserve = |reserved_for| stand.client.reserve(&volume, kept, reserved_for);
    assert_eq!(reserve(ReservedFor::Writes).unwrap_err(), RequestError::NoSpace);
    let held = reserve(ReservedFor::Releases).unwrap();
    // There is no more of it, and what is held is counted once.
    assert_eq!(reserve(ReservedFor::Releases).unwrap_err(), RequestError::NoSpace);
    for lba in 0..100 {
        write_one(&stand.client, &held, lba, &fresh(1 << 40 | lba, CHUNK), DURABLE).unwrap();
    }
    drop(held);
    stand.trim(&volume, 64 * MIB, filled * CHUNK);
    // Collection brings what was trimmed, and the room for releases is kept again.
    assert!(fill(&stand.client, &volume) > filled / 2);
    drop(reserve(ReservedFor::Releases).unwrap());
    stand.client.keep_for_release(room(0, 0));
    stand.client.write_at(&volume, 0, &fresh(7, 50 * CHUNK)).unwrap();
    check_clean(&stand.close());
}

#[test]
fn a_reservation_in_a_full_store_waits_for_collection() {
    let stand = small().stand();
    let volume = stand.volume("v", GIB);
    let filled = fill(&stand.client, &volume);
    let reserve = || stand.client.reserve(&volume, room(1500, 10), ReservedFor::Writes);
    assert_eq!(reserve().unwrap_err(), RequestError::NoSpace);
    stand.trim(&volume, 64 * MIB, filled * CHUNK);
    drop(reserve().unwrap());
    check_clean(&stand.close());
}

#[test]
fn a_volume_with_a_reservation_is_in_use_and_a_read_only_one_has_none() {
    let stand = small().stand();
    let volume = stand.volume("v", MIB);
    let (volumes, name) = (vec!["v".to_owned()], "s".to_owned());
    let snapshot = engine::SnapshotRequest { volumes, name, taken_unix_s: 7 };
    stand.client.ask(snapshot).unwrap();
    let held = stand.client.reserve(&volume, room(1, 1), ReservedFor::Writes).unwrap();
    drop(volume);
    let in_use = stand.client.roll_back("v@s").unwrap_err();
    assert!(matches!(in_use, RequestError::InUse { .. }), "{in_use}");
    drop(held);
    stand.client.roll_back("v@s").unwrap();
    let snapshot = stand.client.volume("v@s").unwrap();
    let refused = stand.client.reserve(&snapshot, room(1, 1), ReservedFor::Writes).unwrap_err();
    assert!(matches!(refused, RequestError::ReadOnly { .. }), "{refused}");
}

#[test]
fn a_close_ends_reservations_and_they_can_be_dropped_after_it() {
    let stand = small().stand();
    let volume = stand.volume("v", MIB);
    let client = stand.client.clone();
    let held = client.reserve(&volume, room(10, 10), ReservedFor::Writes).unwrap();
    write_one(&client, &held, 0, &fresh(1, CHUNK), PLAIN).unwrap();
    let disk = stand.close();
    let after = write_one(&client, &held, 1, &fresh(2, CHUNK), PLAIN);
    assert_eq!(after, Err(RequestError::Closing));
    let again = client.reserve(&volume, room(1, 1), ReservedFor::Writes).unwrap_err();
    assert_eq!(again, RequestError::Closing);
    drop((held, volume, client));
    check_clean(&disk);
    let stand = small().open(disk);
    assert_eq!(stand.stats().under_way, UnderWay::default());
}

/// Waiting writes do not hold up who has room, and are not acknowledged before it.
#[test]
fn who_has_room_does_not_wait_behind_those_that_have_none() {
    let mut hand = Hand::new(&small());
    let volume = hand.volume("v", GIB);
    let held = hand.reserve(&volume, room(10, 10), ReservedFor::Writes).unwrap();
    hand.beside(move |client| fill(&client, &client.volume("v").unwrap()));
    let waits = hand.write(&volume, 0, &fresh(1, 100 * CHUNK)).unwrap();
    let bytes = fresh(2, 4 * CHUNK);
    assert_eq!(hand.write_reserved(&held, &[(200 * CHUNK, &bytes)], PLAIN), None);
    assert!(hand.outcome(waits).is_none());
    assert_eq!(hand.wait(waits).unwrap_err(), RequestError::NoSpace);
    assert!(hand.read(&volume, 200 * CHUNK, 4 * CHUNK as u32) == bytes);
    drop(held);
    check_clean(&hand.close());
}

/// What a holder does next.
#[derive(Clone, Debug)]
enum Act {
    Reserve(u64, u64),
    /// With a reservation, by its number: at a chunk, of so many, durable or not.
    Write(usize, u64, u64, bool),
    Plain(u64, u64),
    Drop(usize),
    Trim(u64, u64),
    Flush,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let lba = || 0..1500_u64;
    let act = prop_oneof![
        2 => (1..900_u64, 1..20_u64).prop_map(|(chunks, writes)| Act::Reserve(chunks, writes)),
        6 => (0..6_usize, lba(), 1..80_u64, any::<bool>())
            .prop_map(|(which, lba, chunks, durable)| Act::Write(which, lba, chunks, durable)),
        4 => (lba(), 1..600_u64).prop_map(|(lba, chunks)| Act::Plain(lba, chunks)),
        1 => (0..6_usize).prop_map(Act::Drop),
        2 => (lba(), 1..900_u64).prop_map(|(lba, chunks)| Act::Trim(lba, chunks)),
        1 => Just(Act::Flush),
    ];
    prop::collection::vec(act, 1..60)
}

/// A volume as it must be, and what its holders have left.
struct Model {
    contents: Vec<u64>,
    held: Vec<(Reservation, WriteRoom)>,
    next: u64,
    /// Chunks in the write buffer, for whose memory nobody may wait here.
    buffered: u64,
}

impl Model {
    fn write(&mut self, lba: u64, chunks: u64) -> Vec<u8> {
        self.buffered += chunks;
        let mut bytes = Vec::new();
        for at in lba..lba + chunks {
            self.next += 1;
            self.contents[at as usize] = self.next;
            bytes.extend(fresh(self.next, CHUNK));
        }
        bytes
    }
}

fn act(hand: &mut Hand, volume: &OpenVolume, model: &mut Model, act: &Act) {
    if model.buffered > 400 {
        model.buffered = 0;
        let tag = hand.flush();
        hand.wait(tag).unwrap();
    }
    match *act {
        Act::Reserve(chunks, writes) => {
            let asked = room(chunks, writes);
            match hand.reserve(volume, asked, ReservedFor::Writes) {
                Ok(reservation) => model.held.push((reservation, asked)),
                Err(error) => assert_eq!(error, RequestError::NoSpace),
            }
        }
        Act::Write(which, lba, chunks, durable) => {
            if model.held.is_empty() {
                return;
            }
            let which = which % model.held.len();
            let (_, WriteRoom { chunks: left_chunks, writes: left_writes }) = model.held[which];
            let options = if durable { DURABLE } else { PLAIN };
            let fits = left_chunks >= chunks && left_writes >= 1;
            let bytes = if fits { model.write(lba, chunks) } else { fresh(0, chunks * CHUNK) };
            let (reservation, left) = &mut model.held[which];
            let tag = hand.write_reserved(reservation, &[(lba * CHUNK, &bytes)], options);
            let outcome = tag.map(|tag| hand.wait(tag).map(drop));
            if fits {
                *left = room(left_chunks - chunks, left_writes - 1);
                assert_eq!(outcome, durable.then_some(Ok(())), "room that is held is there");
            } else {
                let writes = 1;
                let error =
                    RequestError::ReservationTooSmall { chunks, writes, left_chunks, left_writes };
                assert_eq!(outcome, Some(Err(error)));
            }
            assert_eq!(reservation.left(), *left);
        }
        Act::Plain(lba, chunks) => {
            // One chunk after the other: what is refused has written nothing.
            for at in lba..lba + chunks.min(64) {
                let number = model.next + 1;
                let tag = hand.write(volume, at * CHUNK, &fresh(number, CHUNK));
                match tag.map_or(Ok(()), |tag| hand.wait(tag).map(drop)) {
                    Ok(()) => drop(model.write(at, 1)),
                    Err(error) => assert_eq!(error, RequestError::NoSpace),
                }
            }
        }
        Act::Drop(which) if !model.held.is_empty() => {
            drop(model.held.swap_remove(which % model.held.len()));
        }
        Act::Drop(_) => {}
        Act::Trim(lba, chunks) => {
            let tag = hand.trim(volume, lba * CHUNK, chunks * CHUNK);
            hand.wait(tag).unwrap();
            model.contents[lba as usize..(lba + chunks) as usize].fill(0);
        }
        Act::Flush => {
            let tag = hand.flush();
            hand.wait(tag).unwrap();
            let held: u64 = model.held.iter().map(|(_, left)| left.chunks).sum();
            let stats = hand.beside(|client| client.stats()).unwrap();
            assert_eq!(stats.under_way.reserved_chunks, held);
            assert_eq!(stats.under_way.quota_chunks, held);
        }
    }
}

proptest! {
    #![proptest_config(cases(12))]

    /// Whatever holders, writers and trims do, room that is held is there, and no more is; and the
    /// store counts as held what is.
    #[test]
    fn room_that_is_held_is_there_and_no_more(acts in acts()) {
        let wish = Wish { capacities: vec![64 * MIB], ..Wish::default() };
        let mut hand = Hand::new(&wish);
        let volume = hand.volume("v", 2400 * CHUNK);
        let mut model = Model { contents: vec![0; 2400], held: Vec::new(), next: 0, buffered: 0 };
        for one in &acts {
            act(&mut hand, &volume, &mut model, one);
        }
        for which in 0..model.held.len() {
            let (_, left) = model.held[which];
            // What is left is there: with chunks of one write each, as far as writes go.
            let mut lba = Dice(which as u64).below(500);
            for write in 0..left.writes {
                let chunks = if write + 1 == left.writes { left.chunks } else { 1 };
                let chunks = chunks.min(model.held[which].1.chunks).min(500);
                if chunks > 0 {
                    act(&mut hand, &volume, &mut model, &Act::Write(which, lba, chunks, false));
                    lba = (lba + 1) % 500;
                }
            }
        }
        model.held.clear();
        act(&mut hand, &volume, &mut model, &Act::Flush);
        for (lba, &number) in model.contents.iter().enumerate().step_by(3) {
            let held = hand.read(&volume, lba as u64 * CHUNK, CHUNK as u32);
            let expected = if number == 0 { vec![0; CHUNK as usize] } else { fresh(number, CHUNK) };
            prop_assert!(held == expected, "chunk {lba}");
        }
        check_clean(&hand.close());
    }
}
