//! A full store collects whatever stands in its victims: who waits for room is answered, room that
//! was freed comes back, and the store closes.

use std::ops::Range;

use engine::{
    Codec, CollectPosition, CollectRequest, Compression, OpenVolume, Reply, RequestError, Zone,
};
use format::units::CONTAINER_BYTES;

use crate::stand::{CHUNK, GIB, Hand, MIB, Wish, check_clean, fresh};

/// Chunks that cannot be compressed in a container that was filled without a flush.
const CHUNKS: u64 = 1009;
/// The same for those that can be compressed.
const COMPRESSED_CHUNKS: u64 = 4441;

/// A store that one volume fills to the last chunk, in order.
struct Full {
    hand: Hand,
    volume: OpenVolume,
    /// A chunk of this number.
    chunk: fn(u64) -> Vec<u8>,
    /// Chunks that were written.
    written: u64,
}

fn incompressible(number: u64) -> Vec<u8> {
    fresh(number, CHUNK)
}

/// A frame of it has 900 bytes: what is lost with a flush is much of a slice.
fn compressible(number: u64) -> Vec<u8> {
    let mut bytes = fresh(number, CHUNK);
    bytes[864..].fill(7);
    bytes
}

impl Full {
    fn new(chunk: fn(u64) -> Vec<u8>) -> Self {
        let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
        let volume = hand.volume("v", GIB);
        let mut full = Self { hand, volume, chunk, written: 0 };
        full.fill();
        full
    }

    /// Writes behind what is there until a write is refused.
    fn fill(&mut self) {
        for chunks in [256, 16, 1] {
            while self.write(chunks).is_ok() {}
        }
    }

    fn write(&mut self, chunks: u64) -> Result<(), RequestError> {
        let bytes: Vec<u8> = (0..chunks).flat_map(|at| (self.chunk)(self.written + at)).collect();
        let later = self.hand.write(&self.volume, self.written * CHUNK, &bytes);
        let outcome = later.map_or(Ok(()), |tag| self.hand.wait(tag).map(drop));
        self.hand.settle();
        if outcome.is_ok() {
            self.written += chunks;
        }
        outcome
    }

    /// Unmaps chunks by their numbers.
    fn trim(&mut self, chunks: Range<u64>) {
        let (offset_bytes, length_bytes) =
            (chunks.start * CHUNK, (chunks.end - chunks.start) * CHUNK);
        let trimmed = self.hand.trim(&self.volume, offset_bytes, length_bytes);
        self.hand.wait(trimmed).unwrap();
        self.hand.settle();
    }

    /// All containers are collected in turn, and a flush comes in between wherever one can.
    fn collect_in_turn(&mut self) -> Result<(), RequestError> {
        let mut position: Option<CollectPosition> = None;
        loop {
            let recompress = Some(Compression { codec: Codec::Raw, level: 0 });
            let request = CollectRequest { position, recompress };
            let (asked, done) = self.hand.done();
            self.hand.client.administer(request, done);
            let outcome = (0..10_000).find_map(|_| {
                self.hand.steps(1);
                let flushed = self.hand.flush();
                self.hand.wait(flushed).unwrap();
                self.hand.outcome(asked)
            });
            let Reply::Collect(step) = outcome.expect("no step takes so long")? else { panic!() };
            position = step.next;
            if position.is_none() {
                return Ok(());
            }
        }
    }

    /// Everything is deleted: room comes back, and the store closes.
    fn empty(mut self) -> disk::MemoryDisk {
        drop(self.volume);
        self.hand.beside(|client| client.delete_volume("v")).unwrap();
        let volume = self.hand.volume("w", GIB);
        let later = self.hand.write(&volume, 0, &fresh(1 << 40, 8 * MIB));
        later.into_iter().for_each(|tag| drop(self.hand.wait(tag).unwrap()));
        drop(volume);
        self.hand.close()
    }
}

/// What is dead takes no room, so collection asks for none: where its open container has hardly any
/// left and one more is free, a victim in whose end nothing lives is collected to that end.
#[test]
fn a_victim_whose_end_is_dead_is_collected_into_the_last_room() {
    for lives in [60, 62] {
        let mut full = Full::new(incompressible);
        full.trim(CHUNKS + lives..2 * CHUNKS);
        full.trim(945..CHUNKS);
        full.fill();
        full.trim(2 * CHUNKS + 945..3 * CHUNKS);
        let answered = full.write(1);
        assert!(answered.is_ok() || answered == Err(RequestError::NoSpace), "{answered:?}");
        check_clean(&full.empty());
    }
}

/// To collect what has lost nothing takes a little more than it gives, with each flush. It is
/// refused where that would use up what all other collection needs.
#[test]
fn a_full_store_is_collected_in_turn_as_far_as_there_is_room() {
    for (lives, outcome) in [(2150, Ok(())), (1900, Err(RequestError::NoSpace))] {
        let mut full = Full::new(compressible);
        // Clients take what two of them give back; of collection's open container little is left.
        for container in 0..2 {
            full.trim(container * COMPRESSED_CHUNKS + lives..(container + 1) * COMPRESSED_CHUNKS);
            full.fill();
        }
        assert_eq!(full.collect_in_turn(), outcome, "{lives}");
        assert_eq!(full.write(1), Err(RequestError::NoSpace));
        full.trim(3 * COMPRESSED_CHUNKS..8 * COMPRESSED_CHUNKS);
        full.write(1).unwrap();
        full.collect_in_turn().unwrap();
        check_clean(&full.empty());
    }
}

/// A container with a damaged frame stays, whatever is moved out of it: where room is short nothing
/// is, or what damaged neighbours take would be missed by all that can be collected.
#[test]
fn damaged_containers_take_no_room_from_a_full_store() {
    let mut full = Full::new(incompressible);
    for container in 0..4 {
        let at_bytes = container * u64::from(CONTAINER_BYTES) + 900 * 4112 + 100;
        full.hand.disk.corrupt(Zone::Data(0), at_bytes, |byte| *byte ^= 0x40);
        full.trim(container * CHUNKS..container * CHUNKS + 100);
    }
    assert_eq!(full.write(1), Err(RequestError::NoSpace));
    for container in 5..8 {
        full.trim(container * CHUNKS..container * CHUNKS + 900);
    }
    full.write(256).unwrap();
    assert_eq!(full.hand.beside(|client| client.stats()).unwrap().damaged_chunks, 4);
    full.empty();
}
