//! Schedules on which chance hardly comes: each makes one situation, again and again, in which a
//! slip of the engine would cost data. The canary runs them with the slip alive, a test without.

use disk::Loss;

use crate::script::{End, Life, Request, Script, Shape, Verb};
use crate::trouble::Trouble;
use crate::workload::SECTORS;

/// Flushed writes of [`lapped_journal`], each a record of one block.
const LAPPING_WRITES: u64 = 1_950;
/// Those during which the tables' device does nothing: the first checkpoint lasts from a quarter of
/// the ring to the last block that may be used, the third until the ring has gone round.
const HELD: [std::ops::Range<u64>; 2] = [350..960, 1_340..1_950];
/// Writes after which the device is held up again, before it moves.
const HOLD_EVERY: u64 = 1;

fn shape() -> Shape {
    Shape {
        seed: 5,
        zones: 1,
        containers: 8,
        tables_bytes: 6 << 20,
        journal_bytes: 3 << 20,
        cache_pages: 4096,
        contents: 1 << 40,
        tight: true,
    }
}

fn request(verb: Verb, steps: u32) -> Request {
    Request { verb, steps }
}

fn create() -> Request {
    request(Verb::Create { volume: 0, sectors: 64_000, read_only: false }, 20)
}

/// Writes chunks whose bytes follow from `content`.
fn write(lba: u64, chunks: u64, content: u64, durable: bool) -> Verb {
    let (first, count) = (lba * SECTORS, chunks * SECTORS);
    Verb::Write { volume: 0, first, count, content, durable }
}

/// The journal laps under checkpoints that are held up, and then the newest root is lost: the older
/// one needs the journal from its own position on. The ring is so long that nothing less brings
/// the writer round to that position.
#[must_use]
pub fn lapped_journal() -> Script {
    let shape = Shape { journal_bytes: 6 << 20, contents: 60, tight: false, ..shape() };
    let mut requests = vec![create()];
    for number in 0..LAPPING_WRITES {
        if HELD.iter().any(|held| held.contains(&number)) && number.is_multiple_of(HOLD_EVERY) {
            // 1 stands for the tables' file.
            requests.push(request(Verb::Trouble { kind: Trouble::Slow, number: 1 }, 0));
        }
        requests.push(request(write(number % 64, 1, number, true), 12));
    }
    let life = Life { requests, end: End::Power(Loss::None, 1), root_lost: true };
    Script { shape, lives: vec![life] }
}

/// Small groups of known contents, none flushed: each is a record of one block that needs no frame,
/// and inside each a later write takes the place of one before its neighbour.
#[must_use]
pub fn groups_in_flight() -> Script {
    let shape = Shape { contents: 12, ..shape() };
    let mut lives = Vec::new();
    for life in 0..4 {
        let mut requests = vec![];
        if life == 0 {
            requests.push(create());
        }
        // All contents are stored, and so no group brings a frame.
        requests.push(request(write(100, 60, 1, true), 40));
        for number in 0..12 {
            let content = 50 * life + 3 * number;
            requests.push(request(write(0, 1, content, false), 0));
            requests.push(request(write(10 + number, 1, content + 1, false), 0));
            requests.push(request(write(0, 1, content + 2, false), 1));
            requests.extend([request(Verb::Tick, 2), request(Verb::Tick, 2)]);
        }
        lives.push(Life { requests, end: End::Power(Loss::Few, life), root_lost: false });
    }
    Script { shape, lives }
}
