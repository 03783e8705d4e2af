//! Connections whose thread may not wait: what is answered is the same.

use std::cell::Cell;

use memcached::model::{ModelCache, ModelReader, ModelWriter};
use memcached::{
    Answer, Answers, Buffers, Cache, Connection, Fault, Figures, Limits, Next, Request, Store,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use crate::talk::NOW_S;

/// A model that would wait when the next bit of its dice says so.
struct Hesitant {
    model: ModelCache,
    dice: Cell<u64>,
    may_wait: bool,
}

impl Cache for Hesitant {
    type Writer = ModelWriter;
    type Reader = ModelReader;

    fn run(&mut self, asked: &[Request<'_>], now_s: u64, answers: &mut Answers<'_, ModelReader>) {
        self.model.run(asked, now_s, answers);
    }

    fn would_wait(&self, _requests: &[Request<'_>], _now_s: u64) -> bool {
        let dice = self.dice.get();
        self.dice.set(dice.rotate_right(1));
        dice & 1 == 1
    }

    fn begin_store(&mut self, store: &Store<'_>, now_s: u64) -> Result<ModelWriter, Fault> {
        assert!(self.may_wait, "a long value begins where it may wait");
        self.model.begin_store(store, now_s)
    }

    fn finish_store(
        &mut self,
        writer: ModelWriter,
        store: &Store<'_>,
        now_s: u64,
    ) -> Result<Answer, Fault> {
        assert!(self.may_wait, "a long value ends where it may wait");
        self.model.finish_store(writer, store, now_s)
    }

    fn figures(&mut self, now_s: u64) -> Figures {
        self.model.figures(now_s)
    }
}

/// What is answered, and how often something would have waited.
fn talk(said: &[u8], piece_bytes: usize, dice: u64) -> (Vec<u8>, u64) {
    let limits = Limits { whole_value_bytes_max: 20, value_bytes_max: 60, ..Limits::default() };
    let model = ModelCache::default();
    let mut cache = Hesitant { model, dice: Cell::new(dice), may_wait: false };
    let mut connection = Connection::<Hesitant>::new(limits);
    let (mut buffers, mut answers, mut waits) = (Buffers::default(), Vec::new(), 0);
    for mut piece in said.chunks(piece_bytes) {
        while !piece.is_empty() {
            connection.lend(&mut buffers);
            let room = connection.room();
            let length = room.len().min(piece.len());
            room[..length].copy_from_slice(&piece[..length]);
            connection.received(length);
            piece = &piece[length..];
            loop {
                cache.may_wait = false;
                let next = connection.run_without_waiting(&mut cache, NOW_S).unwrap_or_else(|| {
                    cache.may_wait = true;
                    waits += 1;
                    connection.run(&mut cache, NOW_S)
                });
                match next {
                    Next::Receive => break,
                    Next::Close => return (answers, waits),
                    Next::Send => {}
                }
                let chunk = connection.chunk().unwrap();
                answers.extend_from_slice(chunk);
                let sent = chunk.len();
                connection.sent(sent);
            }
            connection.take_back(&mut buffers);
        }
    }
    assert!(connection.is_idle() || !said.ends_with(b"\n"), "all is answered");
    (answers, waits)
}

fn command() -> impl Strategy<Value = String> {
    let key = || "[a-c]{1,3}";
    // Bits behind the last byte of a key in base64 are not looked at.
    let encoded =
        || prop_oneof![Just("Zm9v"), Just("Zg=="), Just("Zh=="), Just("Zm8="), Just("AAA=")];
    let value = || "[a-z]{0,70}";
    prop_oneof![
        (key(), value()).prop_map(|(key, it)| format!("set {key} 0 0 {}\r\n{it}\r\n", it.len())),
        vec(key(), 1..6).prop_map(|keys| format!("gets {}\r\n", keys.join(" "))),
        (encoded(), value()).prop_map(|(key, it)| format!("ms {key} {} b k\r\n{it}\r\n", it.len())),
        encoded().prop_map(|key| format!("mg {key} b v k\r\n")),
        encoded().prop_map(|key| format!("me {key} b\r\n")),
        encoded().prop_map(|key| format!("md {key} b q\r\nmn\r\n")),
        Just("version\r\n".to_owned()),
        Just("nothing\r\n".to_owned()),
    ]
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_what_would_wait(
        commands in vec(command(), 1..40),
        piece_bytes in 1_usize..200,
        dice in any::<u64>(),
    ) {
        let said = commands.concat();
        let (whole, _) = talk(said.as_bytes(), said.len(), 0);
        let (other, _) = talk(said.as_bytes(), piece_bytes, dice);
        prop_assert_eq!(String::from_utf8_lossy(&other), String::from_utf8_lossy(&whole));
    }
}

#[test]
fn a_long_value_waits_and_a_short_one_does_not() {
    let (answered, waits) = talk(b"set a 0 0 2\r\nhi\r\nget a\r\n", 100, 0);
    assert_eq!((&answered[..], waits), (&b"STORED\r\nVALUE a 0 2\r\nhi\r\nEND\r\n"[..], 0));
    let (answered, waits) = talk(b"set a 0 0 21\r\n123456789012345678901\r\nmn\r\n", 100, 0);
    assert_eq!((&answered[..], waits), (&b"STORED\r\nMN\r\n"[..], 1));
}
