//! Streams of operations, random and adversarial, against a plain map.

use std::collections::{HashMap, HashSet};

use super::dice::Dice;
use super::page::{Page, page_of};
use super::plain::PlainMap;
use super::ports::{Digest, Op, Settings};
use super::rig::{Instruction, Rig};
use crate::model::{Block, DedupInputs, DedupOutputs};

/// What a host asks at random.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Answers at least.
    pub operations: usize,
    /// Different pages.
    pub contents: u64,
    /// Writes in sixteen operations.
    pub writes: u64,
    /// Erasures in sixteen; the rest are reads.
    pub erases: u64,
    /// After this number of operations writes and erasures change their shares, again and again; 0:
    /// never.
    pub swing: usize,
    /// Of a content; some meet in filters and buckets.
    pub page: fn(u64) -> Page,
}

/// Digests as SHA3 has them.
pub fn spread(content: u64) -> Digest {
    let mut dice = Dice::new(content + 1);
    let mut digest = [0; 32];
    for place in digest.chunks_exact_mut(8) {
        place.copy_from_slice(&dice.roll().to_be_bytes());
    }
    digest
}

/// All in one bucket, with the same bits in its filter: the filter never helps.
pub fn alike(content: u64) -> Digest {
    let mut digest = [0; 32];
    digest[8..16].copy_from_slice(&content.to_be_bytes());
    digest
}

/// Few buckets, few bits.
pub fn crowded(content: u64) -> Digest {
    let mut digest = spread(content);
    digest[0] &= 0x18;
    digest[1] = 0;
    digest
}

/// Runs a stream from a table that was put there, and holds all that comes of it against a plain
/// map: every verdict, count and index, every page read, and at the end the table in memory, the
/// pages of the device and the number of free indices.
///
/// # Panics
/// Where anything differs, and where an assertion of the RTL fails.
pub fn check_stream<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>>(
    settings: Settings,
    stream: &Stream,
    table: &[(Digest, u32)],
) -> Rig<B> {
    let mut dice = Dice::new(settings.seed ^ 77);
    let mut rig: Rig<B> = Rig::with_table(settings, table);
    let mut plain = PlainMap::with_table(settings.count_max, settings.capacity, table);
    let asked = ask(&mut rig, &mut dice, stream);
    let answers = rig.run(asked.operations.len());
    assert_eq!(answers.len(), asked.operations.len());
    let mut found = 0;
    for ((op, digest, tag, lba), answer) in asked.operations.iter().zip(&answers) {
        plain.check(*op, digest, answer);
        assert_eq!((answer.tag, answer.lba), (*tag, *lba), "an answer is to its own instruction");
        found += usize::from(*op == Op::Read && answer.count > 0);
    }
    let got = rig.take_got();
    assert_eq!(got.len(), found, "each read that found its page was sent to the device");
    for (digest, page) in got {
        assert_eq!(page, Some(asked.bytes_of(&digest)), "a read page");
    }
    check_rest(&rig, &plain, &asked);
    rig
}

/// What was asked of the rig.
#[derive(Default)]
struct Asked {
    /// Operation, digest, tag, address.
    operations: Vec<(Op, Digest, u16, u32)>,
    /// Of pages that were written.
    bytes: HashMap<Digest, Vec<u8>>,
}

impl Asked {
    /// A page that was not written is one of the table.
    fn bytes_of(&self, digest: &Digest) -> Vec<u8> {
        self.bytes.get(digest).map_or_else(|| page_of(digest), Clone::clone)
    }
}

fn ask<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>>(
    rig: &mut Rig<B>,
    dice: &mut Dice,
    stream: &Stream,
) -> Asked {
    let mut asked = Asked::default();
    while asked.operations.len() < stream.operations {
        let tag = asked.operations.len() as u16;
        let lba = dice.roll() as u32;
        let digest = (stream.page)(dice.below(stream.contents)).digest;
        let roll = dice.below(16);
        let swings = stream.swing > 0 && asked.operations.len() / stream.swing % 2 == 1;
        let (writes, erases) =
            if swings { (stream.erases, stream.writes) } else { (stream.writes, stream.erases) };
        let (op, pages) = match () {
            () if dice.one_in(20) => (Op::Nop, 1),
            () if roll < writes => (Op::Write, dice.below(4) as u16),
            () if roll < writes + erases => (Op::Erase, 1),
            () => (Op::Read, 1),
        };
        rig.instruct(Instruction { op, tag, lba, pages, digest });
        match op {
            Op::Nop => {}
            Op::Erase | Op::Read => asked.operations.push((op, digest, tag, lba)),
            Op::Write => {
                for at in 0..u32::from(pages) {
                    let page = (stream.page)(dice.below(stream.contents));
                    asked.operations.push((op, page.digest, tag, lba.wrapping_add(at)));
                    asked.bytes.insert(page.digest, page.bytes.clone());
                    rig.bring_page(page);
                }
            }
        }
    }
    asked
}

/// What is left behind is what the map says.
fn check_rest<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>>(
    rig: &Rig<B>,
    plain: &PlainMap,
    asked: &Asked,
) {
    let expected: HashSet<(Digest, u32, u32)> = plain.pages().collect();
    let table = rig.walk_table();
    assert_eq!(table.len(), expected.len());
    assert_eq!(HashSet::from_iter(table), expected, "the table in memory");
    let stored: HashSet<(u32, Digest)> =
        rig.device_pages().map(|(index, digest, _)| (index, *digest)).collect();
    let live: HashSet<(u32, Digest)> =
        expected.iter().map(|(digest, _, index)| (*index, *digest)).collect();
    assert_eq!(stored, live, "the pages of the device");
    for (_, digest, bytes) in rig.device_pages() {
        assert_eq!(bytes, asked.bytes_of(digest), "a page on the device");
    }
    assert_eq!(rig.free_count(), plain.free());
}
