//! Seeded histories against a plain array.

use std::collections::HashSet;

use super::operations::{ZONE_BLOCKS, drain, filled, read, run_one, sync, write};
use super::subject::Fresh;
use crate::io::{Completion, Disk};
use crate::splitmix::SplitMix;
use format::units::{BLOCK_BYTES, Zone};

const HISTORIES: u64 = 24;
const STEPS_MAX: usize = 80;
const ZONE: Zone = Zone::Data(0);

/// Plays steps against an array of one byte a block. What overlaps is kept apart in time, as the
/// caller of a disk must.
struct Play<'a> {
    disk: &'a mut dyn Disk,
    model: Vec<u8>,
    busy: HashSet<u64>,
    submitted: usize,
    /// Tags of reads, and what they are to read.
    reads: Vec<(u64, Vec<u8>)>,
    done: Vec<Completion>,
}

pub(super) fn a_history_reads_like_a_plain_array(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    for seed in 0..HISTORIES {
        let zeros = filled(ZONE_BLOCKS as usize, 0);
        assert_eq!(run_one(&mut *disk, write(ZONE, 0, zeros, 0)).result, Ok(()));
        let mut play = Play {
            disk: &mut *disk,
            model: vec![0; ZONE_BLOCKS as usize],
            busy: HashSet::new(),
            submitted: 0,
            reads: Vec::new(),
            done: Vec::new(),
        };
        let mut dice = SplitMix::new(seed);
        let steps = 1 + dice.below(STEPS_MAX) as u64;
        (0..steps).for_each(|tag| play.step(tag, &mut dice));
        play.finish(seed);
    }
}

impl Play<'_> {
    fn step(&mut self, tag: u64, dice: &mut SplitMix) {
        let block = dice.below(ZONE_BLOCKS as usize) as u64;
        let blocks = (1 + dice.below(19) as u64).min(ZONE_BLOCKS - block);
        let range = block as usize..(block + blocks) as usize;
        match dice.below(10) {
            0..4 => {
                self.claim(block, blocks);
                let byte = dice.below(256) as u8;
                self.model[range].fill(byte);
                self.disk.submit(write(ZONE, block, filled(blocks as usize, byte), tag));
            }
            4..8 => {
                self.claim(block, blocks);
                self.reads.push((tag, self.model[range].to_vec()));
                self.disk.submit(read(ZONE, block, blocks as usize, tag));
            }
            8 => self.disk.submit(sync(ZONE, tag)),
            _ => return self.disk.poll(&mut self.done),
        }
        self.submitted += 1;
    }

    fn claim(&mut self, block: u64, blocks: u64) {
        if (block..block + blocks).any(|block| self.busy.contains(&block)) {
            self.done.extend(drain(self.disk));
            self.busy.clear();
        }
        self.busy.extend(block..block + blocks);
    }

    fn finish(mut self, seed: u64) {
        self.done.extend(drain(self.disk));
        assert_eq!(self.done.len(), self.submitted, "history {seed}: completions");
        let tags: HashSet<u64> = self.done.iter().map(|done| done.tag).collect();
        assert_eq!(tags.len(), self.done.len(), "history {seed}: a tag completed twice");
        for (tag, blocks) in self.reads {
            let done = self.done.iter().find(|done| done.tag == tag);
            let Some(buf) = done.and_then(|done| done.buf.as_ref()) else {
                panic!("history {seed}: read {tag} has not succeeded");
            };
            for (bytes, &byte) in buf.chunks(BLOCK_BYTES).zip(&blocks) {
                assert!(bytes.iter().all(|&read| read == byte), "history {seed}: read {tag}");
            }
        }
    }
}
