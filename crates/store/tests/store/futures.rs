//! Futures of requests under an executor of a few lines.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use store::{Durability, RequestError, ReservedFor, Volume, WriteOptions, WriteRoom};

use crate::scratch::in_memory;

const MIB: usize = 1 << 20;
/// More than the write buffer and than the memory for reads of a small engine.
const MANY: usize = 24;
const VOLUME_BYTES: u64 = 1 << 30;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The whole executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut cx) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// Polls a future once, and forgets its wake-up.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// All of them at once, on one thread.
async fn all<F: Future + Unpin>(futures: Vec<F>) -> Vec<F::Output> {
    let mut slots: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|cx| {
        for (future, output) in slots.iter_mut().filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(value) = Pin::new(future).poll(cx) {
                *output = Some(value);
            }
        }
        match slots.iter().all(|(_, output)| output.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    slots.into_iter().map(|(_, output)| output.unwrap()).collect()
}

/// Bytes that do not compress and that no other seed gives.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn what_is_written_is_read_flushed_trimmed_and_zeroed() {
    let (_, store) = in_memory();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    // Neither begins nor ends at a piece, and has several.
    let (offset_bytes, bytes) = (MIB as u64 - 1536, noise(3 * MIB, 1));
    block_on(async {
        volume.write(offset_bytes, bytes.as_slice(), false).await.unwrap();
        assert!(volume.read(offset_bytes, bytes.len()).await.unwrap() == bytes);
        volume.flush().await.unwrap();
        volume.trim(offset_bytes, 512, false).await.unwrap();
        volume.write_zeroes(offset_bytes + 512, 512, true).await.unwrap();
        let read = volume.read(offset_bytes, 2048).await.unwrap();
        assert!(read == [&[0; 1024], &bytes[1024..2048]].concat());
        volume.write(0, Vec::new(), true).await.unwrap();
        assert!(volume.read(0, 0).await.unwrap().is_empty());
    });
    store.close().unwrap();
}

/// A copy sees what was written before its first poll, and is refused with whole chunks missed.
#[test]
fn a_copy_between_volumes_maps_what_the_source_holds() {
    let (_, store) = in_memory();
    let [from, to] = ["from", "to"].map(|name| store.create_volume(name, VOLUME_BYTES).unwrap());
    let bytes = noise(2 * MIB, 9);
    block_on(async {
        from.write(MIB as u64, bytes.as_slice(), false).await.unwrap();
        to.copy_from(64 * MIB as u64, &from, MIB as u64, 2 * MIB as u64, true).await.unwrap();
        from.write_zeroes(0, VOLUME_BYTES, false).await.unwrap();
        assert!(to.read(64 * MIB as u64, 2 * MIB).await.unwrap() == bytes);
        let ragged = to.copy_from(512, &from, 0, MIB as u64, false).await.unwrap_err();
        assert!(matches!(ragged, RequestError::RaggedCopy { .. }), "{ragged}");
    });
    store.close().unwrap();
}

#[test]
fn a_durable_write_survives_what_a_plain_one_does_not() {
    let (disk, store) = in_memory();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    block_on(async {
        volume.write(0, [1; 4096], false).await.unwrap();
        // Of two pieces, of which the second says that both are to be durable.
        volume.write(MIB as u64 - 4096, vec![2; 8192], true).await.unwrap();
        volume.write(0, [3; 4096], false).await.unwrap();
    });
    let left = disk.left_by_power_loss(1, disk::Loss::All);
    drop(store);
    let store = store::Store::open_in_memory(&left, crate::scratch::small()).unwrap();
    let volume = store.volume("v").unwrap();
    let mut bytes = vec![0; 8192];
    volume.read_at(MIB as u64 - 4096, &mut bytes).unwrap();
    assert!(bytes == [2; 8192]);
    volume.read_at(0, &mut bytes[..4096]).unwrap();
    assert!(bytes[..4096] == [1; 4096]);
    store.close().unwrap();
}

#[test]
fn ranges_are_refused_before_the_first_piece() {
    let (_, store) = in_memory();
    let volume = store.create_volume("v", 2 * MIB as u64).unwrap();
    let refused = |offset_bytes, length_bytes| RequestError::OutOfRange {
        offset_bytes,
        length_bytes,
        size_bytes: 2 * MIB as u64,
    };
    block_on(async {
        let end = 2 * MIB as u64;
        let long = volume.write(512, vec![1; 2 * MIB], false).await;
        assert_eq!(long, Err(refused(512, 2 * MIB as u64)));
        assert_eq!(volume.write(end - 1, [1; 2], false).await, Err(refused(end - 1, 2)));
        assert_eq!(volume.read(512, 2 * MIB).await, Err(refused(512, 2 * MIB as u64)));
        assert_eq!(volume.trim(end - 1, 512, false).await, Err(refused(end - 1, 512)));
        assert!(volume.read(0, 2 * MIB).await.unwrap().iter().all(|&byte| byte == 0));
    });
    store.close().unwrap();
}

#[test]
fn more_than_there_is_memory_for_waits_without_blocking() {
    let (_, store) = in_memory();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    let at = |number: usize| (number * MIB) as u64;
    let contents: Vec<_> = (0..MANY).map(|number| noise(MIB, number as u64 + 1)).collect();
    block_on(async {
        let write = |number| volume.write(at(number), &contents[number], false);
        for outcome in all((0..MANY).map(write).collect()).await {
            outcome.unwrap();
        }
        let reads = (0..MANY).map(|number| volume.read(at(number), MIB)).collect();
        for (outcome, expected) in all(reads).await.into_iter().zip(&contents) {
            assert!(outcome.unwrap() == *expected);
        }
    });
    store.close().unwrap();
}

/// Begins more requests than there is memory for, and drops all of them.
fn begin_and_drop(volume: &Volume, bytes: &[u8]) {
    let mut writes: Vec<_> =
        (0..MANY).map(|at| volume.write((at * MIB) as u64, bytes, true)).collect();
    let mut reads: Vec<_> = (0..MANY).map(|at| volume.read((at * MIB) as u64, MIB)).collect();
    writes.iter_mut().for_each(|write| drop(poll_once(write)));
    reads.iter_mut().for_each(|read| drop(poll_once(read)));
    let _ = poll_once(&mut volume.flush());
}

#[test]
fn a_dropped_future_leaves_all_memory_to_others() {
    let (_, store) = in_memory();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    let bytes = noise(MIB, 1);
    for _ in 0..3 {
        begin_and_drop(&volume, &bytes);
    }
    // What was begun has been carried out by now; all memory is there for who waits.
    volume.flush_blocking().unwrap();
    let all = noise(MANY * MIB, 2);
    block_on(volume.write(0, &all, true)).unwrap();
    assert!(block_on(volume.read(0, all.len())).unwrap() == all);
    store.close().unwrap();
}

#[test]
fn a_future_that_was_never_polled_has_done_nothing() {
    let (_, store) = in_memory();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    volume.write_at(0, &[1; 4096]).unwrap();
    drop(volume.write(0, [2; 4096], true));
    drop(volume.trim(0, 4096, true));
    let mut bytes = [0; 4096];
    volume.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 4096]);
    store.close().unwrap();
}

#[test]
fn vectors_with_and_without_a_reservation_are_written_in_their_order() {
    let (disk, store) = in_memory();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    let durable = WriteOptions { durability: Durability::Durable, unindexed: true };
    block_on(async {
        let writes = vec![(0, [1_u8; 1024]), (512, [2; 1024]), (4096, [3; 1024])];
        volume.write_vectored(writes, durable).await.unwrap();
        let room = WriteRoom::of_write(512, 4096);
        let reservation = volume.reserve(room, ReservedFor::Writes).await.unwrap();
        let writes = vec![(8192, [4_u8; 512])];
        volume.write_reserved(&reservation, writes, durable).await.unwrap();
        let none = Vec::<(u64, Vec<u8>)>::new();
        volume.write_vectored(none, WriteOptions::default()).await.unwrap();
        // More than the reservation has left.
        let more = vec![(0, [5_u8; 512])];
        let refused = volume.write_reserved(&reservation, more, WriteOptions::default()).await;
        assert!(matches!(refused, Err(RequestError::ReservationTooSmall { .. })), "{refused:?}");
    });
    let left = disk.left_by_power_loss(1, disk::Loss::All);
    let again = store::Store::open_in_memory(&left, crate::scratch::small()).unwrap();
    let mut bytes = vec![0; 8704];
    again.volume("v").unwrap().read_at(0, &mut bytes).unwrap();
    assert!(bytes[..512] == [1; 512] && bytes[512..1536] == [2; 1024] && bytes[8192..] == [4; 512]);
    assert!(bytes[4096..5120] == [3; 1024]);
    again.close().unwrap();
    volume.write_vectored_at(&[(0, &[6; 512])], WriteOptions::default()).unwrap();
    let reservation = volume.reserve_blocking(WriteRoom::of_write(512, 4096), ReservedFor::Writes);
    let writes: [(u64, &[u8]); 1] = [(512, &[7; 512])];
    volume.write_reserved_at(&reservation.unwrap(), &writes, WriteOptions::default()).unwrap();
    volume.write_at_with(1024, &[8; 512], durable).unwrap();
    let read = block_on(volume.read(0, 1536)).unwrap();
    assert!(read == [[6; 512], [7; 512], [8; 512]].concat());
    store.close().unwrap();
}

#[test]
fn what_waits_when_the_store_ends_is_told_so() {
    let (disk, store) = in_memory();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    disk.crash_after_writes(0);
    let mut write = volume.write(0, noise(4096, 1), true);
    let mut flush = volume.flush();
    assert!(poll_once(&mut write).is_pending() && poll_once(&mut flush).is_pending());
    let ends = thread::spawn(move || drop(store));
    assert_eq!(block_on(write), Err(RequestError::Closing));
    assert_eq!(block_on(flush), Err(RequestError::Closing));
    ends.join().unwrap();
    assert_eq!(block_on(volume.read(0, 512)), Err(RequestError::Closing));
}
