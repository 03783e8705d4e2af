//! What is in flight: bounds, wake-ups, the order of answers, the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use engine::{Completions, Done, Reply, RequestError};

use super::fake::{Answer, FakeConnection, connection, connection_with, request, writer};
use crate::{Batch, Hangup, Load, Operation, READ_BYTES_MAX, REQUESTS_MAX};

fn flush() -> crate::Request<u64> {
    request(Operation::Flush, 0, 0)
}

fn release_all(connection: &FakeConnection, batch: &mut Batch<super::fake::Fake>) {
    let mut load = Load::default();
    batch.outcomes.drain(..).for_each(|(request, _)| load.add(&request));
    connection.release(load);
}

#[test]
fn a_connection_has_256_requests_in_flight_until_their_answers_are_sent() {
    let connection = connection();
    let begun: Vec<Done<()>> = (0..REQUESTS_MAX)
        .map(|_| {
            assert!(connection.has_capacity_for(&flush()));
            connection.begin::<()>(flush())
        })
        .collect();
    assert!(!connection.has_capacity_for(&flush()));
    connection.complete(begun[3].tag, Ok(Reply::Done));
    assert!(!connection.has_capacity_for(&flush()), "its answer is not sent yet");
    let mut batch = Batch::default();
    assert!(connection.next_batch(&mut batch));
    assert_eq!(batch.outcomes.len(), 1);
    release_all(&connection, &mut batch);
    assert!(connection.has_capacity_for(&flush()));
    connection.abort();
}

#[test]
fn a_connection_has_its_share_of_bytes_of_reads_in_flight_and_no_more() {
    let connection = connection();
    let half = request(Operation::Read, 0, u32::try_from(READ_BYTES_MAX / 2).unwrap());
    let first = connection.begin::<()>(half);
    let second = connection.begin::<()>(half);
    assert!(!connection.has_capacity_for(&request(Operation::Read, 0, 512)));
    assert!(connection.has_capacity_for(&request(Operation::Write, 0, u32::MAX)));
    connection.retire(first.tag);
    assert!(connection.has_capacity_for(&half));
    connection.retire(second.tag);
    let alone = request(Operation::Read, 0, u32::MAX);
    assert!(connection.has_capacity_for(&alone), "one read may exceed the share alone");
    assert!(!connection_with(0, || false).has_reads_in_flight());
}

#[test]
fn a_reader_is_woken_when_an_answer_has_been_sent() {
    let connection = connection();
    let begun: Vec<Done<()>> = (0..REQUESTS_MAX).map(|_| connection.begin::<()>(flush())).collect();
    let reader = {
        let connection = Arc::clone(&connection);
        thread::spawn(move || connection.wait_for_capacity(&flush()))
    };
    connection.complete(begun[0].tag, Err(RequestError::NoSpace));
    let mut batch = Batch::default();
    assert!(connection.next_batch(&mut batch));
    release_all(&connection, &mut batch);
    assert_eq!(reader.join().unwrap(), Ok(()));
    connection.abort();
}

#[test]
fn nobody_waits_on_an_aborted_connection() {
    let connection = connection();
    let begun: Vec<Done<()>> = (0..REQUESTS_MAX).map(|_| connection.begin::<()>(flush())).collect();
    let waits = {
        let connection = Arc::clone(&connection);
        thread::spawn(move || connection.wait_for_capacity(&flush()))
    };
    let pauses = {
        let connection = Arc::clone(&connection);
        thread::spawn(move || connection.pause(Duration::from_secs(600)))
    };
    let writer = writer(&connection);
    connection.complete(begun[0].tag, Ok(Reply::Done));
    connection.abort();
    assert_eq!(waits.join().unwrap(), Err(Hangup));
    assert_eq!(pauses.join().unwrap(), Err(Hangup));
    writer.join().unwrap();
    // The engine does not know yet.
    connection.complete(begun[1].tag, Ok(Reply::Done));
    connection.complete(9999, Ok(Reply::Done));
    assert!(!connection.next_batch(&mut Batch::default()));
    assert!(connection.is_gone() && !connection.is_busy());
}

#[test]
fn outcomes_that_are_put_back_are_the_first_that_are_taken() {
    let connection = connection();
    let begun = [3, 4, 5].map(|at| connection.begin::<()>(request(Operation::Trim, at, 0)));
    connection.complete(begun[0].tag, Err(RequestError::NoSpace));
    connection.complete(begun[1].tag, Err(RequestError::NoSpace));
    let mut batch = Batch::default();
    assert!(connection.next_batch(&mut batch));
    connection.complete(begun[2].tag, Err(RequestError::NoSpace));
    batch.outcomes.pop_front();
    connection.put_back(&mut batch.outcomes);
    assert!(batch.outcomes.is_empty() && connection.next_batch(&mut batch));
    let left: Vec<u64> = batch.outcomes.iter().map(|(of, _)| of.tag).collect();
    assert_eq!(left, [4, 5]);
    connection.abort();
    connection.put_back(&mut batch.outcomes);
    assert_eq!(batch.outcomes.len(), 2, "nothing waits on an aborted connection");
}

/// The core answers what has no data while the writer sleeps, and what is alone; else the writer
/// does, and nothing overtakes what waits for it.
#[test]
fn the_core_answers_what_nobody_waits_before() {
    let connection = connection();
    let transport = connection.transport();
    let writer = writer(&connection);
    let settled = |answers| {
        while transport.sent.lock().unwrap().len() < answers || !connection.writer_waits() {
            thread::yield_now();
        }
    };
    let extents = Operation::Extents { extents_max: 1 };
    let cases = [
        (Operation::Flush, Ok(Reply::Done), false, 0),
        (Operation::Flush, Ok(Reply::Done), true, 1),
        (Operation::Flush, Err(RequestError::NoSpace), true, 1),
        (extents, Ok(Reply::Extents(Vec::new())), true, 1),
        (Operation::Trim, Ok(Reply::Done), true, 2),
    ];
    for (answers, (operation, outcome, takes, by_core)) in cases.into_iter().enumerate() {
        settled(answers);
        transport.takes_at_once.store(takes, Ordering::Release);
        let done = connection.begin::<()>(request(operation, 0, 0));
        connection.complete(done.tag, outcome);
        settled(answers + 1);
        assert_eq!(transport.by_core.load(Ordering::Acquire), by_core, "{operation:?}");
    }
    assert_eq!(transport.sent.lock().unwrap().len(), 5);
    connection.end_reading();
    writer.join().unwrap();
}

#[test]
fn it_is_over_when_reading_has_ended_and_everything_is_answered() {
    let connection = connection();
    let done = connection.begin::<()>(flush());
    let writer = writer(&connection);
    connection.end_reading();
    assert!(connection.is_busy());
    connection.complete(done.tag, Err(RequestError::NoSpace));
    writer.join().unwrap();
    assert!(!connection.is_busy());
    let sent = connection.transport().sent.lock().unwrap().clone();
    assert_eq!(sent, [(0, Answer::Failed(crate::Errno::NoSpace))]);
}

#[test]
fn a_request_that_is_dropped_without_an_outcome_is_told_of_the_close() {
    let connection = connection();
    let writer = writer(&connection);
    drop(connection.begin::<()>(flush()));
    connection.end_reading();
    writer.join().unwrap();
    let sent = connection.transport().sent.lock().unwrap().clone();
    assert_eq!(sent, [(0, Answer::Failed(crate::Errno::Shutdown))]);
}

#[test]
fn a_client_that_takes_nothing_is_given_up_when_others_want_the_memory_of_its_reads() {
    let read = request(Operation::Read, 0, 4096);
    for wanted in [false, true] {
        let connection = connection_with(READ_BYTES_MAX, move || wanted);
        let since = Instant::now();
        assert!(!connection.gives_up_client(since), "it holds no memory");
        let done = connection.begin::<()>(read);
        assert_eq!(connection.gives_up_client(since), wanted);
        connection.retire(done.tag);
        assert!(!connection.gives_up_client(since));
    }
}

/// A client that has gone stays so; whose receiving we ended says nothing by its end.
#[test]
fn the_core_learns_that_a_client_has_gone_only_by_what_shows_it() {
    let connection = connection();
    let transport = connection.transport();
    assert!(!connection.is_gone());
    transport.has_left.store(true, Ordering::Release);
    assert!(!connection.is_gone(), "its reader is not waiting and may have come to a good-bye");
    connection.set_unread(Some(()));
    assert!(connection.is_gone());
    connection.set_unread(None);
    assert!(connection.is_gone());

    let ended = self::connection();
    ended.transport().has_left.store(true, Ordering::Release);
    ended.note_end(&());
    assert!(ended.is_gone(), "its reader has come to the end");

    let drained = self::connection();
    drained.transport().has_left.store(true, Ordering::Release);
    drained.drain();
    drained.set_unread(Some(()));
    drained.note_end(&());
    assert!(!drained.is_gone(), "we have ended it");

    let closed = self::connection();
    closed.transport().is_closed.store(true, Ordering::Release);
    assert!(closed.is_gone());
}
