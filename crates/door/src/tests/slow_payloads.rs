//! Payloads that do not come: what is here is written, and nothing is held for the rest.

use super::fake::{Answer, FakeReader, MIB, connection, finish, request, running, serve, writer};
use crate::{Admission, Errno, Hangup, Operation};

const PIECE: usize = 64 << 10;

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 512 % 251) as u8 + 1).collect()
}

#[test]
fn a_payload_that_comes_in_parts_is_written_piece_by_piece_without_credits_in_between() {
    let (store, volume) = running(8 * MIB);
    let client = store.client().clone();
    let connection = connection();
    let writer = writer(&connection);
    let mut reader = FakeReader::new(&connection);
    let whole = payload(5 * PIECE + 512);
    let parts = [100, PIECE, 3, 2 * PIECE, whole.len()];
    let mut at = 0;
    for part in parts {
        let end = (at + part).min(whole.len());
        reader.to_come.push_back(whole[at..end].to_vec());
        at = end;
    }
    let here = reader.to_come.pop_front().unwrap();
    let of_whom = client.clone();
    // All of the write buffer can be had by others while the client sends nothing.
    reader.while_waiting = Box::new(move || drop(of_whom.buffer(0, 4 << 20)));
    let mut admission = Admission::new(&client, volume, connection.clone());
    let write = request(Operation::Write, 512, u32::try_from(whole.len()).unwrap());
    assert_eq!(serve(&mut admission, &mut reader, write, &here), Ok(()));
    assert_eq!(finish(&connection, &mut reader, writer), [(512, Answer::Done)]);
    let mut held = vec![0; whole.len()];
    client.read_at(admission.volume(), 512, &mut held).unwrap();
    assert!(held == whole);
    drop(admission);
    store.close().unwrap();
}

#[test]
fn a_piece_that_fails_ends_the_write_and_the_rest_is_thrown_away() {
    let (store, volume) = running(8 * MIB);
    let client = store.client().clone();
    let connection = connection();
    let writer = writer(&connection);
    let mut reader = FakeReader::new(&connection);
    let whole = payload(3 * PIECE);
    reader.to_come.extend([whole[100..].to_vec(), vec![7; 4096]]);
    let by = client.clone();
    reader.while_waiting = Box::new(move || {
        by.resize_volume("v", 512).unwrap();
    });
    let mut admission = Admission::new(&client, volume, connection.clone());
    let write = request(Operation::Write, 0, u32::try_from(whole.len()).unwrap());
    assert_eq!(serve(&mut admission, &mut reader, write, &whole[..100]), Ok(()));
    assert_eq!(reader.received.len(), 0, "the rest of the payload is no request");
    let answers = finish(&connection, &mut reader, writer);
    assert_eq!(answers, [(0, Answer::Failed(Errno::NoSpace))]);
    drop(admission);
    store.close().unwrap();
}

#[test]
fn a_client_that_ends_within_a_payload_has_written_whole_pieces_of_it_at_most() {
    let (store, volume) = running(8 * MIB);
    let client = store.client().clone();
    let connection = connection();
    let writer = writer(&connection);
    let mut reader = FakeReader::new(&connection);
    let whole = payload(3 * PIECE);
    let mut admission = Admission::new(&client, volume, connection.clone());
    let write = request(Operation::Write, 0, u32::try_from(whole.len()).unwrap());
    let here = &whole[..PIECE + 100];
    assert_eq!(serve(&mut admission, &mut reader, write, here), Err(Hangup));
    assert_eq!(finish(&connection, &mut reader, writer), []);
    let mut held = vec![0; whole.len()];
    client.read_at(admission.volume(), 0, &mut held).unwrap();
    assert!(held[..PIECE] == whole[..PIECE] && held[PIECE..].iter().all(|byte| *byte == 0));
    drop(admission);
    store.close().unwrap();
}
