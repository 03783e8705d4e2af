//! A run as text: the shape of the store, and life by life what is asked of it.
//!
//! ```text
//! store seed=7 zones=1 containers=8 tables=4194304 journal=4194304 cache=256 contents=400
//!                         also `compares=md5`: bytes are compared, and contents are twins; and
//!                         `domains=2`: volume 1 is in one, 2 in another, 3 in none, and so on;
//!                         `varies=true`: each opening has half, all or twice the cache
//! create 0 24000          volume 0 of 24000 sectors; `ro` makes it read-only
//! write 0 16 24 77 fua /3 24 sectors from sector 16, contents from 77 on; then 3 steps
//! vector 0 16 24 77 fua   the same, and its second half again with contents from 78 on, in one
//! unindexed 0 16 24 77    the same as a write that asks for no look-up
//! reserve 2 0 40 3        reservation 2 of volume 0: 40 chunks, 3 writes; `release`: for releases
//! held 2 16 24 77 fua     a write with reservation 2, to its volume
//! unreserve 2             reservation 2 is dropped
//! full 0 16 77            all room is reserved, and what is kept for releases written from 16 on
//! trim 0 0 8000           also `fua`
//! copy 0 16 1 24 64 fua   64 sectors of volume 0 from 16 on are mapped by volume 1 from 24 on
//! read 0 0 64
//! flush
//! snapshot 0 3            snapshot 3 of volume 0; `clone 3 4`, `rollback 3`, `delete 3`
//! snapshots 0 3 1 4       of two volumes at one moment: snapshot 3 of volume 0, and 4 of volume 1
//! difference 3 0          where volume 0 differs from snapshot 3
//! quota 0 300             volume 0 maps no more than 300 chunks; 0: any number
//! codec 0 2 1             new chunks of volume 0 are compressed with Zstandard, level 1
//! codec 0                 as the store's, from now on
//! promise 0 100           room for 100 chunks of volume 0 is its own; 0: none is
//! dedup 0 0               no duplicates are looked for in volume 0; 1: again; 2: `auto`
//! scrub 1                 the next step of a scrub, fingerprints too
//! collect 1               a container is collected on request, and compressed anew
//! grow 0                  a longer last data file; 1: a further one
//! fill 0 0 77             fresh chunks from sector 0 on until one is refused; contents from 77 on
//! fits 0 0 77             a sixth of all room, none of it refused
//! end power mixed 12      or: power few|all|none N, kill N, close; `root`: its newest slot too;
//!                         close now: while requests are under way
//! ```
//!
//! Everything that chance decides in a run is in its script, but for the crashes that are looked
//! at aside, whose kind and seed follow from the store's seed and the number of the write.

mod holders;
mod settings;

use std::fmt;
use std::str::FromStr;

use disk::Loss;
use engine::{Compression, Dedup, Detection, FingerprintKind};
use thiserror::Error;

pub use crate::script::holders::HolderVerb;
use crate::simulation::trouble::Trouble;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The store.
    pub shape: Shape,
    /// From opening to opening.
    pub lives: Vec<Life>,
}

/// What a store of the lab is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Of the disk's order of completion and of the crashes that are looked at aside.
    pub seed: u64,
    /// Data files.
    pub zones: u16,
    /// Containers of each.
    pub containers: u32,
    /// Length of the tables' file.
    pub tables_bytes: u64,
    /// Length of the journal's ring.
    pub journal_bytes: u64,
    /// Pages of the table cache.
    pub cache_pages: usize,
    /// Pages that may be dirty before a checkpoint begins.
    pub dirty_pages_max: usize,
    /// Entries of the Hash-PBN table that may be in no bucket.
    pub young_max: usize,
    /// Different contents that are written.
    pub contents: u64,
    /// Whether writes may have to wait for space.
    pub tight: bool,
    /// References beyond which a chunk is stored twice; 0: none is.
    pub copies_above: u32,
    /// How duplicates are found.
    pub detection: Detection,
    /// Keyed domains that volumes are in.
    pub domains: u32,
    /// Whether each opening has other memory than the one before.
    pub varies: bool,
}

/// From one opening to the end of the process, the machine or the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// What is asked.
    pub requests: Vec<Request>,
    /// How it ends.
    pub end: End,
    /// Whether the crash costs the slot of the newest root, if that was durable.
    pub root_lost: bool,
}

impl Script {
    /// Whether the store is to grow.
    pub(crate) fn grows(&self) -> bool {
        let mut requests = self.lives.iter().flat_map(|life| &life.requests);
        requests.any(|request| matches!(request.verb, Verb::Grow { .. }))
    }
}

impl Life {
    /// Whether wrong bytes are on the medium when it ends.
    pub(crate) fn ends_damaged(&self) -> bool {
        let damages = |request: &Request| match request.verb {
            Verb::Trouble { kind, .. } => kind.damages(),
            _ => false,
        };
        self.requests.iter().any(damages)
    }

    fn new(requests: Vec<Request>, end: End, root_lost: bool) -> Self {
        Self { requests, end, root_lost }
    }
}

/// A request, and the engine's steps after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What.
    pub verb: Verb,
    /// Steps before the next.
    pub steps: u32,
}

/// What can be asked. Ranges are in sectors; volumes have numbers that are never used again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the head of the file says what each is")]
pub enum Verb {
    Create { volume: u32, sectors: u64, read_only: bool },
    Resize { volume: u32, sectors: u64 },
    Rename { volume: u32, number: u32 },
    Delete { volume: u32 },
    Snapshot { volume: u32, snapshot: u32 },
    Snapshots { first: [u32; 2], second: [u32; 2] },
    Clone { snapshot: u32, volume: u32 },
    Rollback { snapshot: u32 },
    Difference { from: u32, to: u32 },
    Quota { volume: u32, chunks: u64 },
    Dedup { volume: u32, dedup: Dedup },
    Codec { volume: u32, compression: Option<Compression> },
    Promise { volume: u32, chunks: u64 },
    Compress(Compression),
    Write { volume: u32, first: u64, count: u64, content: u64, durable: bool },
    Holder(HolderVerb),
    Trim { volume: u32, first: u64, count: u64, durable: bool },
    Copy { from: u32, from_first: u64, to: u32, to_first: u64, count: u64, durable: bool },
    Read { volume: u32, first: u64, count: u64 },
    Extents { volume: u32, first: u64, count: u64 },
    Bad { volume: u32 },
    Flush,
    Tick,
    Stats,
    Scrub { fingerprints: bool },
    Collect { recompress: bool },
    Grow { further: bool },
    Evacuate { zone: u16, more: u32 },
    Fill { volume: u32, first: u64, content: u64 },
    Fits { volume: u32, first: u64, content: u64 },
    Idle,
    Trouble { kind: Trouble, number: u64 },
}

impl Verb {
    /// Whether it changes volumes or settings, which a session does not try where tables are in
    /// doubt, or once nothing can be written.
    pub(crate) fn changes_volumes(&self) -> bool {
        matches!(
            self,
            Self::Create { .. }
                | Self::Resize { .. }
                | Self::Rename { .. }
                | Self::Delete { .. }
                | Self::Snapshot { .. }
                | Self::Snapshots { .. }
                | Self::Clone { .. }
                | Self::Rollback { .. }
                | Self::Quota { .. }
                | Self::Dedup { .. }
                | Self::Codec { .. }
                | Self::Promise { .. }
                | Self::Compress(_)
        )
    }
}

/// How a life ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The power goes.
    Power(Loss, u64),
    /// The process dies, the machine lives.
    Kill(u64),
    /// The store is closed.
    Close,
    /// The same while requests are under way.
    CloseNow,
}

impl End {
    /// Whether the store is closed.
    #[must_use]
    pub fn is_close(self) -> bool {
        matches!(self, Self::Close | Self::CloseNow)
    }

    /// An end that a number chooses.
    #[must_use]
    pub fn of_number(number: u64) -> Self {
        match number % 8 {
            0..3 => Self::Power(Loss::Mixed, number >> 8),
            3 => Self::Power(Loss::Few, number >> 8),
            4 => Self::Power(Loss::All, number >> 8),
            5 => Self::Power(Loss::None, number >> 8),
            _ => Self::Kill(number >> 8),
        }
    }
}

/// A line that is none of a script.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line} is not one of a script: {text}")]
pub struct ScriptError {
    /// Which, from 1.
    pub line: usize,
    /// It.
    pub text: String,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.shape)?;
        for life in &self.lives {
            for request in &life.requests {
                writeln!(f, "{request}")?;
            }
            writeln!(f, "end {}{}", life.end, if life.root_lost { " root" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, zones, containers, tables_bytes, journal_bytes, cache_pages, .. } = self;
        let (dirty, contents, tight) = (self.dirty_pages_max, self.contents, self.tight);
        write!(
            f,
            "store seed={seed} zones={zones} containers={containers} tables={tables_bytes} \
             journal={journal_bytes} cache={cache_pages} dirty={dirty} contents={contents} \
             tight={tight} young={}",
            self.young_max
        )?;
        if self.copies_above > 0 {
            write!(f, " copies={}", self.copies_above)?;
        }
        let Detection { kind, verify, .. } = self.detection;
        if verify {
            write!(f, " compares={kind}")?;
        }
        if self.domains > 0 {
            write!(f, " domains={}", self.domains)?;
        }
        if self.varies { f.write_str(" varies=true") } else { Ok(()) }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verb)?;
        if self.steps > 0 { write!(f, " /{}", self.steps) } else { Ok(()) }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |set, word: &'static str| if set { word } else { "" };
        match self {
            Self::Create { volume, sectors, read_only } => {
                write!(f, "create {volume} {sectors}{}", flag(*read_only, " ro"))
            }
            Self::Resize { volume, sectors } => write!(f, "resize {volume} {sectors}"),
            Self::Rename { volume, number } => write!(f, "rename {volume} {number}"),
            Self::Delete { volume } => write!(f, "delete {volume}"),
            Self::Snapshot { volume, snapshot } => write!(f, "snapshot {volume} {snapshot}"),
            Self::Snapshots { first: [volume, first], second: [other, second] } => {
                write!(f, "snapshots {volume} {first} {other} {second}")
            }
            Self::Clone { snapshot, volume } => write!(f, "clone {snapshot} {volume}"),
            Self::Rollback { snapshot } => write!(f, "rollback {snapshot}"),
            Self::Difference { from, to } => write!(f, "difference {from} {to}"),
            Self::Quota { volume, chunks } => write!(f, "quota {volume} {chunks}"),
            Self::Dedup { .. } | Self::Codec { .. } | Self::Promise { .. } | Self::Compress(_) => {
                settings::write(f, self)
            }
            Self::Write { volume, first, count, content, durable } => {
                write!(f, "write {volume} {first} {count} {content}{}", flag(*durable, " fua"))
            }
            Self::Holder(verb) => verb.fmt(f),
            Self::Trim { volume, first, count, durable } => {
                write!(f, "trim {volume} {first} {count}{}", flag(*durable, " fua"))
            }
            Self::Copy { from, from_first, to, to_first, count, durable } => {
                let fua = flag(*durable, " fua");
                write!(f, "copy {from} {from_first} {to} {to_first} {count}{fua}")
            }
            Self::Read { volume, first, count } => write!(f, "read {volume} {first} {count}"),
            Self::Extents { volume, first, count } => {
                write!(f, "extents {volume} {first} {count}")
            }
            Self::Bad { volume } => write!(f, "bad {volume}"),
            Self::Flush => f.write_str("flush"),
            Self::Tick => f.write_str("tick"),
            Self::Stats => f.write_str("stats"),
            Self::Scrub { fingerprints } => write!(f, "scrub {}", u8::from(*fingerprints)),
            Self::Collect { recompress } => write!(f, "collect {}", u8::from(*recompress)),
            Self::Grow { further } => write!(f, "grow {}", u8::from(*further)),
            Self::Evacuate { zone, more } => write!(f, "evacuate {zone} {more}"),
            Self::Fill { volume, first, content } => write!(f, "fill {volume} {first} {content}"),
            Self::Fits { volume, first, content } => write!(f, "fits {volume} {first} {content}"),
            Self::Idle => f.write_str("idle"),
            Self::Trouble { kind, number } => write!(f, "trouble {} {number}", kind.name()),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Power(Loss::Mixed, seed) => write!(f, "power mixed {seed}"),
            Self::Power(Loss::Few, seed) => write!(f, "power few {seed}"),
            Self::Power(Loss::All, seed) => write!(f, "power all {seed}"),
            Self::Power(Loss::None, seed) => write!(f, "power none {seed}"),
            Self::Kill(seed) => write!(f, "kill {seed}"),
            Self::Close => f.write_str("close"),
            Self::CloseNow => f.write_str("close now"),
        }
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut shape = None;
        let mut lives = Vec::new();
        let mut requests = Vec::new();
        for (at, text) in text.lines().enumerate() {
            let line = text.split('#').next().unwrap_or("");
            let words: Vec<&str> = line.split_whitespace().collect();
            let understood = match words.as_slice() {
                [] => Some(()),
                ["store", facts @ ..] => parse_shape(facts).map(|read| shape = Some(read)),
                ["end", end @ .., "root"] => parse_end(end)
                    .map(|end| lives.push(Life::new(std::mem::take(&mut requests), end, true))),
                ["end", end @ ..] => parse_end(end)
                    .map(|end| lives.push(Life::new(std::mem::take(&mut requests), end, false))),
                words => parse_request(words).map(|request| requests.push(request)),
            };
            understood.ok_or_else(|| ScriptError { line: at + 1, text: text.to_owned() })?;
        }
        if !requests.is_empty() {
            lives.push(Life::new(requests, End::Close, false));
        }
        let shape = shape.ok_or(ScriptError { line: 1, text: "no store".to_owned() })?;
        Ok(Self { shape, lives })
    }
}

/// In scripts from before there were young entries.
const YOUNG_MAX_DEFAULT: usize = 200;

fn parse_shape(facts: &[&str]) -> Option<Shape> {
    let fact = |name: &str| {
        let value = facts.iter().find_map(|fact| fact.strip_prefix(name)?.strip_prefix('='));
        value?.parse::<u64>().ok()
    };
    let cache_pages = usize::try_from(fact("cache")?).ok()?;
    let dirty_pages_max =
        fact("dirty").map_or(Some(cache_pages / 4), |dirty| dirty.try_into().ok());
    Some(Shape {
        seed: fact("seed")?,
        zones: u16::try_from(fact("zones")?).ok()?,
        containers: u32::try_from(fact("containers")?).ok()?,
        tables_bytes: fact("tables")?,
        journal_bytes: fact("journal")?,
        cache_pages,
        dirty_pages_max: dirty_pages_max?,
        young_max: fact("young").map_or(Some(YOUNG_MAX_DEFAULT), |young| young.try_into().ok())?,
        contents: fact("contents").filter(|&contents| contents > 0)?,
        tight: facts.contains(&"tight=true"),
        copies_above: fact("copies").map_or(Some(0), |above| above.try_into().ok())?,
        detection: match facts.iter().find_map(|fact| fact.strip_prefix("compares=")) {
            Some(kind) => Detection {
                kind: FingerprintKind::from_name(kind)?,
                verify: true,
                ..Default::default()
            },
            None => Detection::default(),
        },
        domains: fact("domains").map_or(Some(0), |domains| domains.try_into().ok())?,
        varies: facts.contains(&"varies=true"),
    })
}

fn parse_end(words: &[&str]) -> Option<End> {
    Some(match words {
        ["power", "mixed", seed] => End::Power(Loss::Mixed, seed.parse().ok()?),
        ["power", "few", seed] => End::Power(Loss::Few, seed.parse().ok()?),
        ["power", "all", seed] => End::Power(Loss::All, seed.parse().ok()?),
        ["power", "none", seed] => End::Power(Loss::None, seed.parse().ok()?),
        ["kill", seed] => End::Kill(seed.parse().ok()?),
        ["close"] => End::Close,
        ["close", "now"] => End::CloseNow,
        _ => return None,
    })
}

fn parse_request(words: &[&str]) -> Option<Request> {
    let (words, steps) = match words {
        [words @ .., last] if last.starts_with('/') => (words, last[1..].parse().ok()?),
        words => (words, 0),
    };
    let (words, flag) = match words {
        [words @ .., flag @ ("fua" | "ro" | "release")] => (words, Some(*flag)),
        words => (words, None),
    };
    if let ["trouble", kind, number] = words {
        let (kind, number) = (Trouble::of_name(kind)?, number.parse().ok()?);
        return Some(Request { verb: Verb::Trouble { kind, number }, steps });
    }
    let (&verb, numbers) = words.split_first()?;
    let numbers: Option<Vec<u64>> = numbers.iter().map(|word| word.parse().ok()).collect();
    let verb = parse_verb(verb, &numbers?, flag)?;
    Some(Request { verb, steps })
}

fn parse_verb(verb: &str, numbers: &[u64], flag: Option<&str>) -> Option<Verb> {
    let durable = flag == Some("fua");
    let volume = numbers.first().and_then(|&volume| u32::try_from(volume).ok());
    Some(match (verb, numbers) {
        ("create", &[_, sectors]) => {
            Verb::Create { volume: volume?, sectors, read_only: flag == Some("ro") }
        }
        ("resize", &[_, sectors]) => Verb::Resize { volume: volume?, sectors },
        ("rename", &[_, number]) => {
            Verb::Rename { volume: volume?, number: u32::try_from(number).ok()? }
        }
        ("delete", &[_]) => Verb::Delete { volume: volume? },
        ("snapshot", &[_, snapshot]) => {
            Verb::Snapshot { volume: volume?, snapshot: u32::try_from(snapshot).ok()? }
        }
        ("snapshots", numbers @ &[_, _, _, _]) => {
            let numbers = numbers.iter().map(|&number| u32::try_from(number).ok());
            let numbers = numbers.collect::<Option<Vec<u32>>>()?;
            Verb::Snapshots { first: [numbers[0], numbers[1]], second: [numbers[2], numbers[3]] }
        }
        ("clone", &[_, clone]) => {
            Verb::Clone { snapshot: volume?, volume: u32::try_from(clone).ok()? }
        }
        ("rollback", &[_]) => Verb::Rollback { snapshot: volume? },
        ("difference", &[_, to]) => Verb::Difference { from: volume?, to: u32::try_from(to).ok()? },
        ("quota", &[_, chunks]) => Verb::Quota { volume: volume?, chunks },
        ("dedup" | "codec" | "promise", &[_, ref numbers @ ..]) => {
            settings::parse(verb, volume?, numbers)?
        }
        ("compress", numbers) => Verb::Compress(settings::parse_codec(numbers)?),
        ("write", &[_, first, count, content]) => {
            Verb::Write { volume: volume?, first, count, content, durable }
        }
        ("trim", &[_, first, count]) => Verb::Trim { volume: volume?, first, count, durable },
        ("copy", &[_, from_first, to, to_first, count]) => {
            let (from, to) = (volume?, u32::try_from(to).ok()?);
            Verb::Copy { from, from_first, to, to_first, count, durable }
        }
        ("read", &[_, first, count]) => Verb::Read { volume: volume?, first, count },
        ("extents", &[_, first, count]) => Verb::Extents { volume: volume?, first, count },
        ("bad", &[_]) => Verb::Bad { volume: volume? },
        ("flush", []) => Verb::Flush,
        ("tick", []) => Verb::Tick,
        ("stats", []) => Verb::Stats,
        ("scrub", &[fingerprints]) => Verb::Scrub { fingerprints: fingerprints != 0 },
        ("collect", &[recompress]) => Verb::Collect { recompress: recompress != 0 },
        ("grow", &[further]) => Verb::Grow { further: further != 0 },
        ("evacuate", &[zone, more]) => {
            let (zone, more) = (u16::try_from(zone).ok()?, u32::try_from(more).ok()?);
            Verb::Evacuate { zone, more }
        }
        ("fill", &[_, first, content]) => Verb::Fill { volume: volume?, first, content },
        ("fits", &[_, first, content]) => Verb::Fits { volume: volume?, first, content },
        ("idle", []) => Verb::Idle,
        _ => Verb::Holder(HolderVerb::parse(verb, numbers, flag)?),
    })
}

#[cfg(test)]
mod tests {
    use super::Script;
    use crate::workload::Plan;

    #[test]
    fn a_script_is_read_as_it_was_written() {
        for seed in (0..20).chain([262, 270]) {
            let script = Plan::of_seed(seed).script();
            assert_eq!(script.to_string().parse(), Ok(script));
            let script = Plan::of_seed(seed).removing().script();
            assert_eq!(script.to_string().parse(), Ok(script));
        }
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        let text = "store seed=1 zones=1 containers=8 tables=1 journal=1 cache=1 contents=1\nfly 1";
        let error = text.parse::<Script>().unwrap_err();
        assert_eq!((error.line, error.text.as_str()), (2, "fly 1"));
    }
}
