//! Reservations of volumes: what a volume has reserved and does not map yet it can write, however
//! full others make the store; what is reserved is counted as what the volume does not map of it,
//! whatever happens to it.

use std::cell::Cell;

use engine::{
    DeleteRequest, Durability, NewVolume, OpenVolume, RequestError, SnapshotRequest, WriteOptions,
    control, repair,
};
use format::directory::DIRECTORY_ENTRY_BYTES;
use format::frame::FRAME_HEADER_BYTES;
use proptest::prelude::*;

use crate::stand::{CHUNK, GIB, MIB, Opens, Stand, Wish, cases, check_clean, fresh};

const DURABLE: WriteOptions = WriteOptions { durability: Durability::Durable, unindexed: false };

fn small() -> Wish {
    Wish { capacities: vec![64 * MIB], ..Wish::default() }
}

/// Writes fresh chunks from an LBA on until the store refuses; how many went in.
fn fill(stand: &Stand, volume: &OpenVolume, first: u64) -> u64 {
    let write = |number| {
        let at = (first + number) * CHUNK;
        stand.client.write_at(volume, at, &fresh((1 << 40) | (first + number), CHUNK))
    };
    let mut number = 0;
    while write(number).is_ok() {
        number += 1;
    }
    assert_eq!(write(number), Err(RequestError::NoSpace));
    number
}

/// What a promise of so many chunks takes, each flushed: as `docs/decisions/057` says.
fn worst_case_bytes(chunks: u64) -> u64 {
    chunks * (CHUNK + (FRAME_HEADER_BYTES + DIRECTORY_ENTRY_BYTES) as u64 + 4096)
}

fn promised_bytes(stand: &Stand) -> u64 {
    stand.client.stats().unwrap().promised_bytes
}

/// In the worst way: every chunk is new, nothing compresses it, and each is flushed; far from each
/// other, so that each takes a page of the map.
#[test]
fn a_volume_writes_what_is_reserved_for_it_in_a_store_that_others_have_filled() {
    let chunks = 1000;
    for every_nth in [1, 97] {
        let stand = small().stand();
        let (v, w) = (stand.volume("v", GIB), stand.volume("w", GIB));
        let reserved = stand.client.set_reservation("v", Some(chunks * CHUNK)).unwrap();
        assert_eq!(reserved.reservation_bytes, Some(chunks * CHUNK));
        assert_eq!(promised_bytes(&stand), worst_case_bytes(chunks));
        assert!(fill(&stand, &w, 0) > 1000);
        for number in 0..chunks {
            let at = number * every_nth * CHUNK;
            let written = stand.client.write_at_with(&v, at, &fresh(number, CHUNK), DURABLE);
            assert_eq!(written, Ok(()), "chunk {number}, every {every_nth}");
        }
        assert_eq!(promised_bytes(&stand), 0);
        for number in 0..chunks {
            let at = number * every_nth * CHUNK;
            assert!(stand.read(&v, at, CHUNK) == fresh(number, CHUNK), "chunk {number}");
        }
        drop((v, w));
        check_clean(&stand.close());
    }
}

/// By replay, by the catalog, and by a repair; and what was there is promised again before anybody
/// writes.
#[test]
fn a_reservation_outlives_crashes() {
    let wish = small();
    let stand = wish.stand();
    let (v, w) = (stand.volume("v", GIB), stand.volume("w", GIB));
    stand.client.set_reservation("v", Some(8 * MIB)).unwrap();
    stand.write(&v, 0, &fresh(1, MIB));
    fill(&stand, &w, 0);
    drop((v, w));
    let round = Cell::new(30_000);
    let expect = |stand: &Stand| {
        let volumes = stand.client.volumes().unwrap();
        let reserved = volumes.iter().map(|volume| volume.reservation_bytes);
        assert_eq!(reserved.collect::<Vec<_>>(), [Some(8 * MIB), None]);
        assert_eq!(promised_bytes(stand), worst_case_bytes(7 * MIB / CHUNK));
        // What an opening has brought back is not the reservation's.
        fill(stand, &stand.client.volume("w").unwrap(), round.replace(round.get() + 30_000));
    };
    let stand = wish.open(stand.cut_power_flushed(1));
    expect(&stand);
    let stand = wish.open(stand.close());
    expect(&stand);
    let left = stand.cut_power_flushed(2);
    repair(Box::new(left.clone()), &mut |_| {}).unwrap();
    check_clean(&left);
    let stand = wish.open(left);
    expect(&stand);
    let v = stand.client.volume("v").unwrap();
    for number in 0..7 * MIB / CHUNK {
        let at = MIB + number * CHUNK;
        stand.client.write_at_with(&v, at, &fresh(1 << 20 | number, CHUNK), DURABLE).unwrap();
    }
    drop(v);
    check_clean(&stand.close());
}

#[test]
fn what_is_not_there_is_not_promised_and_a_deletion_gives_back() {
    let stand = small().stand();
    drop((stand.volume("v", GIB), stand.volume("w", GIB)));
    let free_bytes = stand.client.stats().unwrap().free_bytes;
    let refused = stand.client.set_reservation("v", Some(GIB)).unwrap_err();
    assert!(matches!(refused, RequestError::NoRoomToReserve { .. }), "{refused}");
    assert_eq!(promised_bytes(&stand), 0);
    stand.client.set_reservation("v", Some(16 * MIB)).unwrap();
    assert!(stand.client.stats().unwrap().free_bytes <= free_bytes - 16 * MIB);
    // Nobody else is promised what is promised.
    let refused = stand.client.set_reservation("w", Some(20 * MIB)).unwrap_err();
    assert!(matches!(refused, RequestError::NoRoomToReserve { .. }), "{refused}");
    // Less, the same and none are granted always.
    for bytes in [Some(16 * MIB), Some(8 * MIB), None, Some(16 * MIB)] {
        assert_eq!(stand.client.set_reservation("v", bytes).unwrap().reservation_bytes, bytes);
    }
    stand.client.delete_volume("v").unwrap();
    assert_eq!(promised_bytes(&stand), 0);
    stand.client.set_reservation("w", Some(16 * MIB)).unwrap();
    check_clean(&stand.close());
}

#[test]
fn a_reservation_is_no_more_than_the_size_and_the_quota() {
    let stand = small().stand();
    drop(stand.volume("v", 16 * MIB));
    let client = &stand.client;
    for bytes in [0, 16 * MIB + 512] {
        let refused = client.set_reservation("v", Some(bytes)).unwrap_err();
        assert!(matches!(refused, RequestError::BadReservation { .. }), "{refused}");
    }
    client.set_quota("v", Some(8 * MIB)).unwrap();
    let refused = client.set_reservation("v", Some(9 * MIB)).unwrap_err();
    assert!(
        matches!(refused, RequestError::BadReservation { most_bytes, .. }
        if most_bytes == 8 * MIB),
        "{refused}"
    );
    client.set_reservation("v", Some(8 * MIB)).unwrap();
    let below = |error: RequestError| {
        assert!(matches!(error, RequestError::BelowReservation { .. }), "{error}");
    };
    below(client.set_quota("v", Some(4 * MIB)).unwrap_err());
    let resize = |size_bytes| {
        let (name, may_shrink, even_if_open) = ("v".to_owned(), true, true);
        client.ask(control::ResizeVolume { name, size_bytes, may_shrink, even_if_open })
    };
    below(resize(4 * MIB).unwrap_err());
    client.set_reservation("v", Some(4 * MIB)).unwrap();
    client.set_quota("v", Some(4 * MIB)).unwrap();
    resize(4 * MIB).unwrap();
    // Snapshots and clones have none, and cannot be given any or can.
    let request = SnapshotRequest { volumes: vec!["v".into()], name: "s".into(), taken_unix_s: 1 };
    client.ask(request).unwrap();
    assert_eq!(client.clone_volume("v@s", "c").unwrap().reservation_bytes, None);
    let refused = client.set_reservation("v@s", Some(MIB)).unwrap_err();
    assert!(matches!(refused, RequestError::NotAVolume { .. }), "{refused}");
    client.set_reservation("c", Some(MIB)).unwrap();
    assert_eq!(promised_bytes(&stand), worst_case_bytes(5 * MIB / CHUNK));
    check_clean(&stand.close());
}

#[derive(Clone, Debug)]
enum Step {
    Reserve { volume: usize, chunks: u64 },
    Write { volume: usize, first: u64, count: u64, seed: u64 },
    Trim { volume: usize, first: u64, count: u64 },
    Again { volume: usize },
    Reopen,
}

const CHUNKS: u64 = 2048;

fn step() -> impl Strategy<Value = Step> {
    let range = || (0..2_usize, 0..CHUNKS - 200, 1..200_u64);
    prop_oneof![
        2 => (0..2_usize, 0..CHUNKS).prop_map(|(volume, chunks)| Step::Reserve { volume, chunks }),
        4 => (range(), 0..4_u64).prop_map(|((volume, first, count), seed)| {
            Step::Write { volume, first, count, seed }
        }),
        2 => range().prop_map(|(volume, first, count)| Step::Trim { volume, first, count }),
        1 => (0..2_usize).prop_map(|volume| Step::Again { volume }),
        1 => Just(Step::Reopen),
    ]
}

/// A volume as the model has it.
#[derive(Clone, Default)]
struct Known {
    reserved: u64,
    mapped: std::collections::BTreeSet<u64>,
}

proptest! {
    #![proptest_config(cases(12))]

    /// What is promised is what volumes do not map of what is reserved for them, counted plainly.
    #[test]
    fn what_is_promised_is_what_is_not_mapped(steps in prop::collection::vec(step(), 1..30)) {
        let wish = Wish::default();
        let names = ["a", "b"];
        let mut stand = wish.stand();
        names.iter().for_each(|name| drop(stand.volume(name, CHUNKS * CHUNK)));
        let mut known = [Known::default(), Known::default()];
        for step in steps {
            match step {
                Step::Reserve { volume, chunks } => {
                    let bytes = (chunks > 0).then_some(chunks * CHUNK);
                    stand.client.set_reservation(names[volume], bytes).unwrap();
                    known[volume].reserved = chunks;
                }
                Step::Write { volume, first, count, seed } => {
                    let open = stand.client.volume(names[volume]).unwrap();
                    // What is stored already counts as much as what is new.
                    stand.write(&open, first * CHUNK, &fresh(seed, count * CHUNK));
                    known[volume].mapped.extend(first..first + count);
                }
                Step::Trim { volume, first, count } => {
                    let open = stand.client.volume(names[volume]).unwrap();
                    stand.trim(&open, first * CHUNK, count * CHUNK);
                    known[volume].mapped.retain(|lba| !(first..first + count).contains(lba));
                }
                Step::Again { volume } => {
                    let name = names[volume].to_owned();
                    let request = DeleteRequest { even_if_open: true, ..DeleteRequest::of(&name) };
                    stand.client.ask(request).unwrap();
                    let size_bytes = CHUNKS * CHUNK;
                    let new = NewVolume { name, size_bytes, ..NewVolume::default() };
                    stand.client.ask(new).unwrap();
                    known[volume] = Known::default();
                }
                Step::Reopen => stand = wish.open(stand.close()),
            }
            stand.flush();
            let unmapped = |one: &Known| one.reserved.saturating_sub(one.mapped.len() as u64);
            let expected = known.iter().map(unmapped).sum();
            prop_assert_eq!(promised_bytes(&stand), worst_case_bytes(expected));
        }
        check_clean(&stand.close());
    }
}
