//! Clients of memcached: whatever one sends, and in whatever pieces it arrives, the answer is the
//! same; no value is in the parser that is longer than it takes whole.
//!
//! The first byte chooses the size of the pieces, the second how long a value may be before it
//! comes in parts, and how large a batch is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memcached::model::ModelCache;
use memcached::{Connection, Item, Limits, Next};

/// Seconds since 1970; no time passes.
const NOW_S: u64 = 1_700_000_000;

fn converse(limits: Limits, said: &[u8], piece_bytes: usize) -> (Vec<u8>, bool) {
    let mut cache = ModelCache::default();
    let mut connection = Connection::<ModelCache>::new(limits);
    let mut answers = Vec::new();
    for mut piece in said.chunks(piece_bytes) {
        while !piece.is_empty() {
            let room = connection.room();
            let length = room.len().min(piece.len());
            room[..length].copy_from_slice(&piece[..length]);
            connection.received(length);
            piece = &piece[length..];
            loop {
                match connection.run(&mut cache, NOW_S) {
                    Next::Receive => break,
                    Next::Close => return (answers, true),
                    Next::Send => {}
                }
                let chunk = connection.chunk().expect("the model reads what it has");
                answers.extend_from_slice(chunk);
                let sent = chunk.len();
                connection.sent(sent);
            }
        }
    }
    (answers, false)
}

fuzz_target!(|input: &[u8]| {
    if let Ok(item) = Item::decode(input) {
        assert_eq!(item.encode(), input);
    }
    let &[pieces, bounds, ref said @ ..] = input else { return };
    // `stats` counts bytes and calls, which pieces change.
    if said.windows(5).any(|word| word == b"stats") {
        return;
    }
    let limits = Limits { value_bytes_max: 4096, ..Limits::default() };
    let whole = converse(limits, said, usize::MAX);
    let other = Limits {
        whole_value_bytes_max: usize::from(bounds >> 4),
        batch_operations_max: usize::from(bounds & 15) + 1,
        output_bytes_max: 100,
        ..limits
    };
    assert_eq!(converse(other, said, usize::from(pieces) + 1), whole);
});
