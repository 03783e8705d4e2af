//! The ways in which a cache gives a value: the client gets the same part by each of them.

use crate::parts::array;
use crate::talk::NOW_S;
use memcached::{
    Answer, Answers, Cache, Connection, Fault, Figures, Hit, Item, Layout, Limits, Next, Request,
    Store, ValueReader, ValueSource, ValueWriter,
};

/// How a cache gives a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Memory,
    Filled,
    AnyPlace,
    InParts,
}

/// One value, in a way.
struct OneValue(Way, Hit, Vec<u8>);

/// The value from a place on.
struct Rest(Vec<u8>);

impl ValueWriter for Rest {
    fn write(&mut self, _part: &[u8]) -> Result<(), Fault> {
        Err(Fault::NoRoom)
    }
}

impl ValueReader for Rest {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let length = out.len().min(self.0.len());
        out[..length].copy_from_slice(&self.0[..length]);
        self.0.drain(..length);
        Ok(length)
    }
}

/// A value of which any part can be read.
struct Whole<'a>(&'a [u8]);

impl ValueSource for Whole<'_> {
    type Reader = Rest;

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Fault> {
        out.copy_from_slice(&self.0[offset as usize..offset as usize + out.len()]);
        Ok(())
    }

    fn into_reader(self, offset: u64, bytes: u64) -> Result<Rest, Fault> {
        Ok(Rest(self.0[offset as usize..(offset + bytes) as usize].to_vec()))
    }
}

impl Cache for OneValue {
    type Writer = Rest;
    type Reader = Rest;

    fn run(&mut self, requests: &[Request<'_>], _now_s: u64, answers: &mut Answers<'_, Rest>) {
        let OneValue(way, hit, value) = self;
        for _ in requests {
            let value_bytes = value.len() as u64;
            match way {
                Way::Memory => answers.hit(hit, value),
                Way::AnyPlace => answers.hit_at(hit, value_bytes, Whole(value)),
                Way::InParts => answers.hit_streamed(hit, value_bytes, Rest(value.clone())),
                Way::Filled => answers.hit_with(hit, value.len(), |place| {
                    place.copy_from_slice(value);
                    Ok(())
                }),
            }
        }
    }

    fn begin_store(&mut self, _store: &Store<'_>, _now_s: u64) -> Result<Rest, Fault> {
        Err(Fault::NoRoom)
    }

    fn finish_store(&mut self, _: Rest, _: &Store<'_>, _: u64) -> Result<Answer, Fault> {
        Err(Fault::NoRoom)
    }

    fn figures(&mut self, _now_s: u64) -> Figures {
        Figures::default()
    }
}

#[test]
fn every_way_of_giving_a_value_gives_the_same_parts() {
    let long: Vec<u8> = (0..200_000).map(|at| (at / 11) as u8).collect();
    let list = array(&[(&long, 0), (b"112233", 2)]);
    for (value, layout) in [(list, Layout::Values), (long, Layout::from_stored(1000).unwrap())] {
        let item = Item { layout, ..Item::default() };
        let hit = Hit { before: item, item, won: false, is_new: false };
        let ask = |way, said: &str| {
            let mut connection = Connection::<OneValue>::new(Limits::default());
            let mut cache = OneValue(way, hit, value.clone());
            connection.room()[..said.len()].copy_from_slice(said.as_bytes());
            connection.received(said.len());
            let mut answers = Vec::new();
            while connection.run(&mut cache, NOW_S) == Next::Send {
                let chunk = connection.chunk().unwrap().to_vec();
                connection.sent(chunk.len());
                answers.extend(chunk);
            }
            answers
        };
        for word in ["", "r7:9", "r70000:70000", "r999999", "e0", "e1:3", "e1.1", "e5", "n a s"] {
            for value in ["v ", ""] {
                let said = format!("mg a {value}{word}\r\n");
                let expected = ask(Way::Memory, &said);
                assert!(expected == ask(Way::AnyPlace, &said), "{said}");
                assert!(expected == ask(Way::Filled, &said), "{said}");
                let refused = &b"SERVER_ERROR this cache reads no parts of long values\r\n"[..];
                let expected = if word.is_empty() { &expected } else { refused };
                assert!(expected == ask(Way::InParts, &said), "{said}");
            }
        }
    }
}
