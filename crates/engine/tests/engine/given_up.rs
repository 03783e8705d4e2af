//! What waits in the core for a client that is gone is not carried out once it could be: what came
//! later, and needed no wait, has been answered meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use engine::{Completions, DeleteRequest, Done, OpenVolume, Reply, RequestError};

use crate::stand::{CHUNK, GIB, Hand, MIB, Wish, check_clean, fresh, giving_back};

type Outcome = Result<Reply, RequestError>;

/// A client that sends one request and can go.
#[derive(Default)]
struct Caller {
    is_gone: AtomicBool,
    outcome: Mutex<Option<Outcome>>,
}

impl Completions for Caller {
    fn complete(&self, _tag: u64, outcome: Outcome) {
        *self.outcome.lock().unwrap() = Some(outcome);
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

impl Caller {
    fn done<A: Into<Reply>>(self: &Arc<Self>) -> Done<A> {
        Done::new(Arc::clone(self), 0)
    }

    /// Sends a write that is not answered at once.
    fn write(
        hand: &Hand,
        volume: &OpenVolume,
        offset_bytes: u64,
        bytes: &[u8],
        durable: bool,
    ) -> Arc<Self> {
        let caller = Arc::<Self>::default();
        let mut buf = hand.client.buffer(offset_bytes, bytes.len());
        buf.bytes_mut().copy_from_slice(bytes);
        let accepted = hand.client.write(volume, offset_bytes, buf, durable, caller.done());
        assert_eq!(accepted, engine::Accepted::Later);
        caller
    }

    fn go(&self) {
        assert!(self.outcome.lock().unwrap().is_none(), "it was answered before it went");
        self.is_gone.store(true, Ordering::Relaxed);
    }

    fn was_dropped(&self) -> bool {
        matches!(*self.outcome.lock().unwrap(), Some(Err(RequestError::GivenUp)))
    }
}

/// A full store, whose room comes back as volume `full` is deleted, and another volume of it.
fn full_store() -> (Hand, OpenVolume) {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let (full, other) = (hand.volume("full", GIB), hand.volume("v", GIB));
    hand.write(&other, 8 * MIB, &fresh(1 << 33, 4 * CHUNK));
    hand.settle();
    for at in 0.. {
        let later = hand.write(&full, at * MIB, &fresh(at, MIB));
        if later.is_some_and(|tag| hand.wait(tag).is_err()) {
            break;
        }
        hand.settle();
    }
    hand.settle();
    (hand, other)
}

/// Gives all of the room back.
fn delete_full(hand: &mut Hand) {
    let (_, done) = hand.done();
    hand.client.administer(DeleteRequest { even_if_open: true, ..DeleteRequest::of("full") }, done);
}

fn settle_for_long(hand: &mut Hand) {
    for _ in 0..100 {
        hand.settle();
        hand.engine.tick();
    }
}

/// Nothing is kept of what was dropped, and the store goes on.
fn assert_rests(mut hand: Hand, volume: OpenVolume) {
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert_eq!(stats.under_way, Default::default());
    let later = hand.write(&volume, 0, &fresh(1 << 34, MIB));
    later.into_iter().for_each(|tag| drop(hand.wait(tag).unwrap()));
    assert_eq!(hand.read(&volume, 0, MIB as u32), fresh(1 << 34, MIB));
    drop(volume);
    check_clean(&hand.close());
}

#[test]
fn a_write_that_waits_for_room_is_dropped_with_its_client_and_undoes_no_later_trim() {
    for durable in [false, true] {
        let (mut hand, volume) = full_store();
        delete_full(&mut hand);
        let given_up = Caller::write(&hand, &volume, 0, &fresh(1 << 32, MIB), durable);
        let stays = Caller::write(&hand, &volume, 4 * MIB, &fresh(1 << 35, MIB), durable);
        // Over another connection.
        let trimmed = hand.trim(&volume, 0, MIB);
        hand.wait(trimmed).unwrap();
        given_up.go();
        settle_for_long(&mut hand);
        assert!(given_up.was_dropped());
        assert!(hand.read(&volume, 0, MIB as u32) == vec![0; MIB as usize]);
        assert!(matches!(*stays.outcome.lock().unwrap(), Some(Ok(_))), "others are not concerned");
        assert!(hand.read(&volume, 4 * MIB, MIB as u32) == fresh(1 << 35, MIB));
        assert_rests(hand, volume);
    }
}

/// One that is larger than all the room enters piece by piece.
#[test]
fn of_a_write_that_has_begun_what_is_in_the_write_buffer_stays() {
    let (mut hand, volume) = full_store();
    delete_full(&mut hand);
    let long = fresh(1 << 32, 8 * MIB);
    let given_up = Caller::write(&hand, &volume, 16 * MIB, &long, true);
    let has_begun = |hand: &mut Hand| {
        hand.engine.step();
        hand.read(&volume, 16 * MIB, CHUNK as u32)[..] == long[..CHUNK as usize]
    };
    assert!((0..10_000).any(|_| has_begun(&mut hand)));
    given_up.go();
    settle_for_long(&mut hand);
    assert!(given_up.was_dropped());
    let left = hand.read(&volume, 16 * MIB, 8 * MIB as u32);
    let cut = left.chunks(CHUNK as usize).position(|chunk| chunk.iter().all(|byte| *byte == 0));
    let cut = cut.expect("it had entered whole") * CHUNK as usize;
    assert!(left[..cut] == long[..cut] && left[cut..].iter().all(|byte| *byte == 0));
    assert_rests(hand, volume);
}

#[test]
fn what_waits_of_a_trim_is_dropped_with_its_client() {
    let (mut hand, volume) = full_store();
    let whole = fresh(1 << 33, 4 * CHUNK);
    let caller = Arc::<Caller>::default();
    delete_full(&mut hand);
    hand.client.write_zeroes(&volume, 8 * MIB + 512, 3 * CHUNK, false, caller.done());
    hand.steps(1);
    caller.go();
    settle_for_long(&mut hand);
    assert!(caller.was_dropped());
    let left = hand.read(&volume, 8 * MIB, 4 * CHUNK as u32);
    let (head, tail) = (CHUNK as usize, 3 * CHUNK as usize);
    assert!(left[..head] == whole[..head] && left[tail..] == whole[tail..]);
    assert!(left[head..tail].iter().all(|byte| *byte == 0));
    assert_rests(hand, volume);
}

#[test]
fn a_write_that_waits_for_its_quota_is_dropped_with_its_client() {
    let (mut hand, held, volume) = giving_back(&Wish::default());
    hand.beside(|client| client.set_quota("v", Some(4 * CHUNK))).unwrap();
    let given_up = Caller::write(&hand, &volume, 0, &fresh(50, CHUNK), false);
    let stays = Caller::write(&hand, &volume, CHUNK, &fresh(51, CHUNK), false);
    hand.settle();
    // Over another connection.
    hand.trim(&volume, 0, CHUNK);
    given_up.go();
    held.let_go();
    settle_for_long(&mut hand);
    assert!(given_up.was_dropped());
    assert!(matches!(*stays.outcome.lock().unwrap(), Some(Ok(_))));
    assert_eq!(hand.read(&volume, 0, CHUNK as u32), vec![0; CHUNK as usize]);
    hand.beside(|client| client.set_quota("v", None)).unwrap();
    assert_rests(hand, volume);
}

/// Also of one that the core has not come to yet.
#[test]
fn no_write_is_acknowledged_before_one_that_lacks_room() {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let volume = hand.volume("v", GIB);
    let lacks_room = (0..).find_map(|at| {
        hand.settle();
        hand.write(&volume, at * MIB, &fresh(at, MIB))
    });
    let second = hand.write(&volume, 512 * MIB, &fresh(1 << 32, CHUNK));
    let tags = [lacks_room.unwrap(), second.expect("it is acknowledged before the first")];
    tags.into_iter().for_each(|tag| drop(hand.wait(tag)));
    let trimmed = hand.trim(&volume, 0, volume.size_bytes());
    hand.wait(trimmed).unwrap();
    settle_for_long(&mut hand);
    assert!(hand.write(&volume, 0, &fresh(0, CHUNK)).is_none(), "there is room");
    settle_for_long(&mut hand);
    assert_rests(hand, volume);
}
