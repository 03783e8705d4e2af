//! Trims of a store that is full: they take no room, or as much as they bring.

use engine::{OpenVolume, RequestError};

use crate::stand::{Hand, MIB, Wish, check_clean, fresh};

const CHUNK_64K: u64 = 64 << 10;

/// A store of large chunks whose volume ends inside one, and as much of it written as fits.
fn full() -> (Hand, OpenVolume) {
    let wish = Wish { capacities: vec![64 * MIB], chunk_bytes: 64 << 10, ..Wish::default() };
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", 2000 * CHUNK_64K + 4608);
    // What trims end in is there as well.
    let ends = [volume.size_bytes() - 4608, 1999 * CHUNK_64K];
    let written = (0..MIB / CHUNK_64K * 64).map(|number| number * CHUNK_64K);
    for (number, offset) in (0..).zip(ends.into_iter().chain(written)) {
        let length = CHUNK_64K.min(volume.size_bytes() - offset);
        let later = hand.write(&volume, offset, &fresh(number, length));
        if later.is_some_and(|tag| hand.wait(tag).is_err()) {
            hand.settle();
            return (hand, volume);
        }
        hand.settle();
    }
    panic!("it never fills");
}

fn trim(hand: &mut Hand, volume: &OpenVolume, offset: u64, length: u64) {
    let trimmed = hand.trim(volume, offset, length);
    hand.wait(trimmed).unwrap();
}

fn zero(
    hand: &mut Hand,
    volume: &OpenVolume,
    offset: u64,
    length: u64,
) -> Result<(), RequestError> {
    let (tag, done) = hand.done();
    hand.client.write_zeroes(volume, offset, length, false, done);
    hand.wait(tag).map(|_| ())
}

#[test]
fn what_ends_inside_chunks_gives_back_those_that_it_covers_whole() {
    let (mut hand, volume) = full();
    trim(&mut hand, &volume, 4096, 32 * MIB);
    assert!(hand.read(&volume, 0, 4096) == fresh(2, CHUNK_64K)[..4096]);
    assert!(hand.read(&volume, 4096, MIB as u32).iter().all(|&byte| byte == 0));
    for number in 0..16 {
        let later = hand.write(&volume, (4 + number) * MIB, &fresh(1 << 20 | number, MIB));
        later.into_iter().for_each(|tag| drop(hand.wait(tag).unwrap()));
        hand.settle();
    }
    check_clean(&hand.close());
}

#[test]
fn a_volume_that_ends_inside_a_chunk_is_trimmed_whole() {
    let (mut hand, volume) = full();
    let size_bytes = volume.size_bytes();
    zero(&mut hand, &volume, 1999 * CHUNK_64K, size_bytes - 1999 * CHUNK_64K).unwrap();
    trim(&mut hand, &volume, 0, size_bytes);
    hand.settle();
    let listed = hand.beside(|client| client.volumes()).unwrap();
    assert_eq!(listed[0].mapped_bytes, 0);
    check_clean(&hand.close());
}

/// It is advice; that zeros are to be read afterwards is not.
#[test]
fn a_trim_inside_a_chunk_without_room_for_its_rest_leaves_it_as_it_is() {
    let (mut hand, volume) = full();
    let before = hand.read(&volume, 0, 4 * CHUNK_64K as u32);
    assert_eq!(zero(&mut hand, &volume, 512, 512), Err(RequestError::NoSpace));
    trim(&mut hand, &volume, 512, 512);
    assert!(hand.read(&volume, 0, 4 * CHUNK_64K as u32) == before);
    // What whole chunks give back is room for the ends.
    zero(&mut hand, &volume, 512, 32 * MIB).unwrap();
    let after = hand.read(&volume, 0, CHUNK_64K as u32);
    assert!(after[..512] == before[..512] && after[512..].iter().all(|&byte| byte == 0));
    check_clean(&hand.close());
}
