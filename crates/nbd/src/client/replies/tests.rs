use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::{any, prop, prop_assert, proptest};

use super::{InFlight, Pending, Wanted, take_reply};
use crate::client::{Answer, ClientError, ClientExtent};
use crate::wire::{
    CHUNK_BLOCK_STATUS, CHUNK_DONE, CHUNK_ERROR, CHUNK_NONE, chunk_header, data_chunk_prefix,
    hole_chunk, simple_reply,
};

type Outcome = Result<Answer, ClientError>;

#[derive(Default)]
struct Flight {
    pending: RefCell<HashMap<u64, Pending>>,
    told: Arc<Mutex<Vec<(u64, Outcome)>>>,
}

impl InFlight for Flight {
    fn take(&self, cookie: u64) -> Option<Pending> {
        self.pending.borrow_mut().remove(&cookie)
    }

    fn put_back(&self, cookie: u64, pending: Pending) {
        self.pending.borrow_mut().insert(cookie, pending);
    }
}

impl Flight {
    fn begin(&self, cookie: u64, wanted: Wanted) {
        let told = Arc::clone(&self.told);
        let done = move |outcome| told.lock().unwrap().push((cookie, outcome));
        self.put_back(cookie, Pending::new(wanted, Box::new(done)));
    }

    /// Takes all replies in `input`; what was told, and why the connection ended.
    fn take_all(&self, mut input: &[u8]) -> (Vec<(u64, Outcome)>, ClientError) {
        loop {
            if let Err(error) = take_reply(&mut input, self) {
                return (std::mem::take(&mut *self.told.lock().unwrap()), error);
            }
        }
    }
}

fn bytes(offset_bytes: u64, length: usize) -> Wanted {
    Wanted::Bytes { offset_bytes, bytes: vec![9; length], filled: 0 }
}

fn extents(context: u32) -> Wanted {
    Wanted::Extents { context, extents: Vec::new() }
}

fn status(flags: u16, cookie: u64, words: &[u32]) -> Vec<u8> {
    let mut chunk =
        chunk_header(flags, CHUNK_BLOCK_STATUS, cookie, words.len() as u32 * 4).to_vec();
    words.iter().for_each(|word| chunk.extend(word.to_be_bytes()));
    chunk
}

fn error(cookie: u64, errno: u32, sentence: &str) -> Vec<u8> {
    let length = sentence.len() as u32 + 6;
    let mut chunk = chunk_header(CHUNK_DONE, CHUNK_ERROR, cookie, length).to_vec();
    chunk.extend(errno.to_be_bytes());
    chunk.extend((sentence.len() as u16).to_be_bytes());
    chunk.extend(sentence.as_bytes());
    chunk
}

fn only(told: Vec<(u64, Outcome)>) -> Outcome {
    assert_eq!(told.len(), 1, "{told:?}");
    told.into_iter().next().unwrap().1
}

#[test]
fn chunks_of_several_requests_come_between_one_another() {
    let flight = Flight::default();
    flight.begin(1, bytes(512, 6));
    flight.begin(2, Wanted::Nothing);
    flight.begin(3, extents(7));
    let mut input = data_chunk_prefix(0, 1, 512, 2).to_vec();
    input.extend(*b"ab");
    input.extend(simple_reply(0, 2));
    input.extend(hole_chunk(0, 1, 514, 3));
    input.extend(status(CHUNK_DONE, 3, &[7, 4096, 1, 512, 0]));
    input.extend(data_chunk_prefix(CHUNK_DONE, 1, 517, 1));
    input.extend(*b"z");
    let (told, over) = flight.take_all(&input);
    assert!(matches!(over, ClientError::Closed));
    let told: Vec<_> =
        told.into_iter().map(|(cookie, outcome)| (cookie, outcome.unwrap())).collect();
    let runs = [(4096, 1), (512, 0)];
    let runs = runs.map(|(length_bytes, flags)| ClientExtent { length_bytes, flags });
    let expected = [
        (2, Answer::Done),
        (3, Answer::Extents(runs.to_vec())),
        (1, Answer::Bytes(b"ab\0\0\0z".to_vec())),
    ];
    assert_eq!(told, expected);
}

#[test]
fn an_error_comes_with_what_the_server_says_and_the_connection_goes_on() {
    let flight = Flight::default();
    flight.begin(1, bytes(0, 4));
    flight.begin(2, Wanted::Nothing);
    flight.begin(3, Wanted::Nothing);
    let input = [
        error(1, 5, "chunk 7 is damaged"),
        simple_reply(28, 2).to_vec(),
        simple_reply(0, 3).to_vec(),
    ];
    let (told, _) = flight.take_all(&input.concat());
    let sentences: Vec<_> = told
        .iter()
        .map(|(_, outcome)| outcome.as_ref().map_err(ToString::to_string).map(|_| ()))
        .collect();
    assert_eq!(sentences[0], Err("chunk 7 is damaged".to_owned()));
    assert!(sentences[1].as_ref().unwrap_err().contains("No space left"), "{sentences:?}");
    assert_eq!(sentences[2], Ok(()));
}

/// Each of these ends the connection, and its request is told so or waits for the end.
#[test]
fn what_is_no_answer_of_ours_ends_the_connection() {
    let data = |at, length: u32, with: &[u8]| {
        [&data_chunk_prefix(CHUNK_DONE, 1, at, length)[..], with].concat()
    };
    let cases: Vec<(&str, Wanted, Vec<u8>)> = vec![
        ("no magic", bytes(0, 4), vec![0; 16]),
        ("another cookie", bytes(0, 4), simple_reply(0, 2).to_vec()),
        ("a simple reply to a read", bytes(0, 4), simple_reply(0, 1).to_vec()),
        ("too little", bytes(0, 4), data(0, 3, b"abc")),
        ("too much", bytes(0, 4), data(0, 5, b"abcde")),
        ("another place", bytes(0, 4), data(4, 4, b"abcd")),
        ("a huge hole", bytes(0, 4), hole_chunk(CHUNK_DONE, 1, 0, u32::MAX).to_vec()),
        ("nothing", bytes(0, 4), chunk_header(CHUNK_DONE, CHUNK_NONE, 1, 0).to_vec()),
        ("data for a write", Wanted::Nothing, data(0, 4, b"abcd")),
        ("a chunk without length", bytes(0, 4), chunk_header(1, 1, 1, 4).to_vec()),
        ("another context", extents(7), status(CHUNK_DONE, 1, &[8, 512, 0])),
        ("no extent", extents(7), status(CHUNK_DONE, 1, &[7])),
        ("half an extent", extents(7), status(CHUNK_DONE, 1, &[7, 512])),
        ("an extent of nothing", extents(7), status(CHUNK_DONE, 1, &[7, 0, 0])),
        ("a long list", extents(7), chunk_header(1, CHUNK_BLOCK_STATUS, 1, u32::MAX).to_vec()),
        ("a long error", extents(7), chunk_header(1, CHUNK_ERROR, 1, u32::MAX).to_vec()),
        ("an unknown chunk", bytes(0, 4), chunk_header(1, 77, 1, 0).to_vec()),
    ];
    for (name, wanted, input) in cases {
        let flight = Flight::default();
        flight.begin(1, wanted);
        let (told, over) = flight.take_all(&input);
        assert!(matches!(over, ClientError::Nonsense { .. }), "{name}: {over:?}");
        let waits = flight.take(1).is_some();
        assert!(waits != told.iter().any(|(_, outcome)| outcome.is_err()), "{name}: {told:?}");
    }
}

#[test]
fn an_answer_counts_once() {
    let flight = Flight::default();
    flight.begin(1, Wanted::Nothing);
    let twice = [simple_reply(0, 1), simple_reply(0, 1)].concat();
    let (told, over) = flight.take_all(&twice);
    assert!(only(told).is_ok());
    assert!(matches!(over, ClientError::Nonsense { .. }), "{over:?}");
}

proptest! {
    /// Whatever comes: never more answers than requests, never bytes that did not come.
    #[test]
    fn any_bytes_are_survived(
        chunks in prop::collection::vec((0..4_u64, 0..6_u16, any::<u16>(), 0..40_u32), 0..20),
        noise in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let flight = Flight::default();
        flight.begin(1, bytes(0, 8));
        flight.begin(2, extents(1));
        flight.begin(3, Wanted::Nothing);
        let mut input = Vec::new();
        for (at, (cookie, kind, flags, length)) in chunks.into_iter().enumerate() {
            input.extend(chunk_header(flags, kind, cookie, length));
            let part = noise.iter().cycle().skip(at * 7).take(length as usize);
            input.extend(part);
        }
        input.extend(&noise);
        let (told, _) = flight.take_all(&input);
        prop_assert!(told.len() <= 3);
    }
}
