//! Bytes as a script of the lab: a store's shape, then requests, steps and crashes.
//!
//! ```text
//! shape, seed                        one byte each
//! verb, its facts, steps             again and again; one of the verbs ends a life
//! ```
//!
//! Whatever the bytes, the script is one that the lab's own workload could have made: the oracle
//! promises nothing beyond. Numbers and names of volumes are never used again, trouble comes in
//! the last life, and rot only right after a close (`crates/lab/src/workload.rs` says why). It is
//! short, so that a fuzzer runs many.

use disk::Loss;
use format::catalog::Dedup;
use format::units::{Codec, Compression};
use lab::{End, Life, Request, Script, Shape, Trouble, Verb};

use crate::input::Input;

const REQUESTS_MAX: usize = 40;
const LIVES_MAX: usize = 4;
const VOLUMES_MAX: u32 = 6;
/// Chunks written by a whole script: hashing and compressing them is most of its time.
const CHUNKS_MAX: u64 = 1000;
/// Sectors of a chunk.
const SECTORS: u64 = 8;
/// Chunks of the first volume, in which there is room for all.
const FIRST_CHUNKS: u64 = 4000;
/// A volume whose map has many levels.
const SPARSE_SECTORS: u64 = 1 << 27;

/// The script that an input stands for.
#[must_use]
pub fn script(input: &[u8]) -> Script {
    let mut input = Input::new(input);
    let shape = shape(&mut input);
    let mut decoder =
        Decoder { input, shape, volumes: 1, requests: 1, chunks: 0, lives: Vec::new() };
    let create = Verb::Create { volume: 0, sectors: FIRST_CHUNKS * SECTORS, read_only: false };
    let mut life = vec![Request { verb: create, steps: 8 }];
    while !decoder.is_at_end() {
        match decoder.next() {
            Next::Request(request) => life.push(request),
            Next::End(end, root_lost) => {
                let requests = std::mem::take(&mut life);
                decoder.lives.push(Life { requests, end, root_lost });
            }
            Next::Trouble(_, number) if decoder.lives.is_empty() => {
                // Trouble needs a life before it; a slow disk is none.
                let verb = Verb::Trouble { kind: Trouble::Slow, number };
                life.push(Request { verb, steps: 0 });
            }
            Next::Trouble(kind, number) => {
                decoder.last_life(life, kind, number);
                return Script { shape: decoder.shape, lives: decoder.lives };
            }
        }
    }
    let end = End::Power(Loss::Mixed, 1);
    decoder.lives.push(Life { requests: life, end, root_lost: false });
    Script { shape: decoder.shape, lives: decoder.lives }
}

/// The kinds of stores that the lab has, as small as the engine makes them: so they fill and
/// collect within a few requests.
fn shape(input: &mut Input<'_>) -> Shape {
    let kind = input.byte();
    let base = Shape {
        detection: Default::default(),
        seed: u64::from(input.byte()),
        zones: 1,
        containers: 8,
        tables_bytes: 4 << 20,
        journal_bytes: 2 << 20,
        cache_pages: 4096,
        dirty_pages_max: 64,
        young_max: 120,
        contents: 40,
        copies_above: 0,
        domains: 0,
        varies: kind & 4 != 0,
        tight: false,
    };
    let base = Shape { domains: u32::from(kind >> 6), ..base };
    match kind % 4 {
        0 => Shape { zones: 2, copies_above: 2, ..base },
        1 => Shape {
            cache_pages: 96,
            dirty_pages_max: 24,
            contents: 1000,
            tables_bytes: 16 << 20,
            ..base
        },
        2 => Shape { containers: 3, cache_pages: 512, contents: 1 << 40, tight: true, ..base },
        _ => Shape { zones: 2, containers: 2, contents: 2000, tight: true, ..base },
    }
}

enum Next {
    Request(Request),
    /// And whether it costs the slot of the newest root.
    End(End, bool),
    Trouble(Trouble, u64),
}

struct Decoder<'a> {
    input: Input<'a>,
    shape: Shape,
    volumes: u32,
    requests: usize,
    chunks: u64,
    lives: Vec<Life>,
}

impl Decoder<'_> {
    fn is_at_end(&self) -> bool {
        self.input.is_empty() || self.requests >= REQUESTS_MAX || self.lives.len() >= LIVES_MAX
    }

    fn next(&mut self) -> Next {
        self.requests += 1;
        let verb = match self.input.byte() % 24 {
            0..6 => self.write(true),
            6..8 => self.write(false),
            8 | 9 => self.trim(),
            10 | 11 => self.read(),
            12 => self.extents(),
            13 | 14 => Verb::Flush,
            15 => self.create(),
            16 => Verb::Resize { volume: self.volume(), sectors: self.sectors() },
            17 => Verb::Rename { volume: self.volume(), number: self.requests as u32 },
            18 => Verb::Delete { volume: self.volume() },
            19 => self.compress(),
            20 => self.rare(),
            21 => return self.trouble(),
            _ => return self.end(),
        };
        let steps = match self.input.byte() {
            few @ 0..192 => u32::from(few % 12),
            many => u32::from(many - 191),
        };
        Next::Request(Request { verb, steps })
    }

    /// Any volume there ever was; what is asked of a deleted one is left out by the lab.
    fn volume(&mut self) -> u32 {
        u32::from(self.input.byte()) % self.volumes
    }

    fn dedup(&mut self) -> Dedup {
        Dedup::from_number(self.input.byte() % 3).unwrap_or_default()
    }

    fn flag(&mut self, times: u8) -> bool {
        self.input.byte() % times == 1
    }

    fn sectors(&mut self) -> u64 {
        let number = u64::from(self.input.word());
        match number % 4 {
            0 if self.shape.cache_pages < 256 => SPARSE_SECTORS,
            0 => FIRST_CHUNKS * SECTORS,
            _ => 1 + number % (400 * SECTORS),
        }
    }

    /// Where a request begins: near where others do, so that much is written over.
    fn first(&mut self) -> u64 {
        let number = u64::from(self.input.word());
        match number % 16 {
            0 => (number >> 4) * 677 * SECTORS * 3,
            1..4 => number >> 4,
            _ => (number >> 4) % 64 * SECTORS,
        }
    }

    fn write(&mut self, whole: bool) -> Verb {
        let (volume, first) = (self.volume(), self.first());
        let number = u64::from(self.input.word());
        let left = CHUNKS_MAX.saturating_sub(self.chunks);
        let chunks = match number % 8 {
            0 if self.shape.tight => number >> 3 & 0xff,
            0..4 => number >> 3 & 0x1f,
            _ => number >> 3 & 3,
        };
        let chunks = (1 + chunks).min(left);
        self.chunks += chunks;
        let content = u64::from(self.input.byte());
        let (first, count) = if whole {
            (first / SECTORS * SECTORS, chunks * SECTORS)
        } else {
            (first, (chunks * 3).min(24))
        };
        Verb::Write { volume, first, count, content, durable: self.flag(8) }
    }

    fn trim(&mut self) -> Verb {
        let (volume, first) = (self.volume(), self.first());
        let number = u64::from(self.input.word());
        let count = match number % 8 {
            0 => SPARSE_SECTORS,
            1..4 => number >> 3,
            _ => (number >> 3) % 64 * SECTORS,
        };
        Verb::Trim { volume, first, count, durable: self.flag(8) }
    }

    fn read(&mut self) -> Verb {
        let (volume, first) = (self.volume(), self.first());
        Verb::Read { volume, first, count: 1 + u64::from(self.input.byte()) }
    }

    fn extents(&mut self) -> Verb {
        let (volume, first) = (self.volume(), self.first() / SECTORS * SECTORS);
        Verb::Extents { volume, first, count: SECTORS * (1 + u64::from(self.input.byte())) }
    }

    fn create(&mut self) -> Verb {
        let (sectors, read_only) = (self.sectors(), self.flag(8));
        if self.volumes == VOLUMES_MAX {
            return Verb::Flush;
        }
        let volume = self.volumes;
        self.volumes += 1;
        Verb::Create { volume, sectors, read_only }
    }

    /// Of the store, or of a volume; or room of a volume.
    fn compress(&mut self) -> Verb {
        let number = self.input.byte();
        let compression = match number % 3 {
            0 => Compression { codec: Codec::Raw, level: 0 },
            1 => Compression { codec: Codec::Zstd, level: 1 },
            _ => Compression { codec: Codec::Lz4, level: 0 },
        };
        match number {
            0..128 => Verb::Compress(compression),
            128..224 => Verb::Codec { volume: self.volume(), compression: Some(compression) },
            224..240 => Verb::Codec { volume: self.volume(), compression: None },
            _ => Verb::Promise { volume: self.volume(), chunks: u64::from(self.input.byte()) },
        }
    }

    fn rare(&mut self) -> Verb {
        match self.input.byte() % 10 {
            0 => Verb::Tick,
            1 => Verb::Stats,
            2 => Verb::Idle,
            4 => Verb::Scrub { fingerprints: false },
            5 => Verb::Scrub { fingerprints: true },
            6 => Verb::Collect { recompress: false },
            7 => Verb::Collect { recompress: true },
            3 => Verb::Dedup { volume: self.volume(), dedup: self.dedup() },
            8 => Verb::Quota { volume: self.volume(), chunks: u64::from(self.input.byte()) },
            _ => Verb::Bad { volume: self.volume() },
        }
    }

    fn end(&mut self) -> Next {
        let number = u64::from(self.input.word());
        if number % 8 == 7 {
            return Next::End(End::Close, false);
        }
        Next::End(End::of_number(number), number & 8 != 0)
    }

    fn trouble(&mut self) -> Next {
        let kinds = Trouble::ALL;
        let (mut kind, _) = kinds[usize::from(self.input.byte()) % kinds.len()];
        let ended = self.lives.last().map(|life| life.end);
        if kind.rots() && ended != Some(End::Close) {
            kind = Trouble::Unreadable;
        }
        Next::Trouble(kind, u64::from(self.input.word()))
    }

    /// A life in which something goes wrong with the disk, and what of it was asked before.
    fn last_life(&mut self, before: Vec<Request>, kind: Trouble, number: u64) {
        let trouble = Request { verb: Verb::Trouble { kind, number }, steps: 0 };
        let mut requests = before;
        let at = if kind.rots() { 0 } else { requests.len() };
        requests.insert(at, trouble);
        let mut end = End::Kill(number);
        while !self.is_at_end() {
            match self.next() {
                Next::Request(request) => requests.push(request),
                Next::End(chosen, _) => {
                    end = chosen;
                    break;
                }
                Next::Trouble(..) => {}
            }
        }
        if kind == Trouble::Unsyncable {
            // What the kernel could not write is in its cache, and nobody knows it is not on disk.
            end = End::Power(Loss::Mixed, number);
        }
        self.lives.push(Life { requests, end, root_lost: false });
    }
}
