//! Waits for what others hold: credits, memory of reads, quotas, capacity; and clients that end or
//! are closed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use engine::{ChunkBuf, Client, Permit};

use super::fake::{
    Answer, FakeReader, MIB, connection, finish, open, request, running, serve, writer,
};
use crate::{Admission, Hangup, Operation};

/// All of the write buffer.
fn all_credits(client: &Client) -> Vec<ChunkBuf> {
    let mut held = Vec::new();
    for length in [1 << 20, 64 << 10, 4096] {
        held.extend(std::iter::from_fn(|| client.try_buffer(0, length)));
    }
    held
}

/// All of the memory of reads.
fn all_read_memory(client: &Client) -> Vec<Permit> {
    let mut held = Vec::new();
    for length in [1 << 20, 64 << 10, 4096] {
        held.extend(std::iter::from_fn(|| client.try_read_memory(length)));
    }
    held
}

/// Until the reader has sent what it had: it is about to wait.
fn until_it_waits(sends: &AtomicUsize) {
    while sends.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
}

#[test]
fn a_write_waits_for_credits_behind_the_answers_that_it_has() {
    let (store, volume) = running(8 * MIB);
    let client = store.client().clone();
    let held = all_credits(&client);
    let connection = connection();
    let writer = writer(&connection);
    let mut reader = FakeReader::new(&connection);
    let sends = Arc::clone(&reader.sends);
    thread::scope(|scope| {
        let serves = scope.spawn(|| {
            let mut admission = Admission::new(&client, volume, connection.clone());
            let prefetch = request(Operation::Prefetch, 4096, 512);
            serve(&mut admission, &mut reader, prefetch, &[]).unwrap();
            let write = request(Operation::Write, 0, 4096);
            serve(&mut admission, &mut reader, write, &[9; 4096])
        });
        until_it_waits(&sends);
        let sent = connection.transport().sent.lock().unwrap().clone();
        assert_eq!(
            sent,
            [(4096, Answer::Done)],
            "the write is not answered, what was before it is"
        );
        drop(held);
        assert_eq!(serves.join().unwrap(), Ok(()));
    });
    let answers = finish(&connection, &mut reader, writer);
    assert_eq!(answers, [(4096, Answer::Done), (0, Answer::Done)]);
    store.close().unwrap();
}

/// What it sent may have come again over another connection: nothing of it is carried out.
#[test]
fn a_client_that_ends_while_it_waits_for_credits_has_written_nothing() {
    let (store, volume) = running(8 * MIB);
    let client = store.client().clone();
    let held = all_credits(&client);
    let connection = connection();
    let mut reader = FakeReader::new(&connection);
    let sends = Arc::clone(&reader.sends);
    thread::scope(|scope| {
        let serves = scope.spawn(|| {
            let mut admission = Admission::new(&client, volume, connection.clone());
            serve(&mut admission, &mut reader, request(Operation::Write, 0, 4096), &[9; 4096])
        });
        until_it_waits(&sends);
        connection.transport().has_left.store(true, Ordering::Release);
        drop(held);
        assert_eq!(serves.join().unwrap(), Err(Hangup));
    });
    let volume = open(&client);
    let mut bytes = [1; 4096];
    client.read_at(&volume, 0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0));
    drop(volume);
    store.close().unwrap();
}

#[test]
fn a_long_read_waits_for_memory_and_a_short_one_that_is_alone_does_not() {
    let (store, volume) = running(8 * MIB);
    let client = store.client().clone();
    client.write_at(&volume, 0, &[7; 4096]).unwrap();
    let held = all_read_memory(&client);
    let connection = connection();
    let writer = writer(&connection);
    let mut reader = FakeReader::new(&connection);
    let sends = Arc::clone(&reader.sends);
    thread::scope(|scope| {
        let serves = scope.spawn(|| {
            let mut admission = Admission::new(&client, volume, connection.clone());
            let short = request(Operation::Read, 0, 4096);
            serve(&mut admission, &mut reader, short, &[]).unwrap();
            assert_eq!(reader.sends.load(Ordering::Acquire), 0, "it has not waited");
            let long = request(Operation::Read, 512, 1 << 20);
            serve(&mut admission, &mut reader, long, &[])
        });
        until_it_waits(&sends);
        drop(held);
        assert_eq!(serves.join().unwrap(), Ok(()));
    });
    let mut answers = finish(&connection, &mut reader, writer);
    answers.sort_by_key(|(tag, _)| *tag);
    let mut long = vec![0; 1 << 20];
    long[..4096 - 512].fill(7);
    assert_eq!(answers.len(), 2);
    assert!(answers[0] == (0, Answer::Bytes(vec![7; 4096])));
    assert!(answers[1] == (512, Answer::Bytes(long)));
    store.close().unwrap();
}

/// While nothing is sent, a client has 256 requests in flight; the next waits, and goes on when the
/// connection is aborted, as nothing.
#[test]
fn a_request_beyond_the_bound_waits_and_ends_with_the_connection() {
    let (store, volume) = running(8 * MIB);
    let client = store.client().clone();
    let connection = connection();
    let mut reader = FakeReader::new(&connection);
    let sends = Arc::clone(&reader.sends);
    thread::scope(|scope| {
        let serves = scope.spawn(|| {
            let mut admission = Admission::new(&client, volume, connection.clone());
            for _ in 0..crate::REQUESTS_MAX {
                serve(&mut admission, &mut reader, request(Operation::Flush, 0, 0), &[]).unwrap();
            }
            serve(&mut admission, &mut reader, request(Operation::Flush, 0, 0), &[])
        });
        until_it_waits(&sends);
        connection.abort();
        assert_eq!(serves.join().unwrap(), Err(Hangup));
    });
    assert_eq!(connection.transport().sent.lock().unwrap().len(), 0);
    store.close().unwrap();
}

/// The volume is open as long as its admission lasts, and the register says so.
#[test]
fn an_admission_keeps_its_volume_open() {
    let (store, volume) = running(8 * MIB);
    let client = store.client();
    let admission = Admission::new(client, volume, connection());
    assert_eq!(client.opens("v").unwrap().len(), 1);
    drop(admission);
    assert_eq!(client.opens("v").unwrap(), []);
    store.close().unwrap();
}
