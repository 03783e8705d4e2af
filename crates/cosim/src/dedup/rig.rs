//! The core with all that surrounds it: host, memory, storage device, and a clock.
//!
//! [`Rig::instruct`] and [`Rig::bring_page`] queue what the host sends; [`Rig::step`] is one cycle,
//! in which every side gives and takes what it can; [`Rig::run`] goes on until all is answered.
//! Answers come in the order of the instructions.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;

use super::device::{Command, Device, Kind, Stored};
use super::dice::Dice;
use super::memory::{BUCKETS, ENTRIES, Memory};
use super::page::{Page, page_of};
use super::ports::{
    Answer, BEAT_BYTES, Digest, Line, Op, PAGE_BYTES, Settings, Verdict, digest_of, digest_words,
};
use crate::model::{Bench, Block, DedupInputs, DedupOutputs};

/// Cycles of a command of the device: 20 us at 250 MHz are 5,000; fewer show hazards sooner.
const DEVICE_CYCLES: u64 = 200;
/// Cycles without an answer after which the core counts as stuck: four pages through a hash core
/// of the report's, in turn.
const PATIENCE_CYCLES: u64 = 20_000;
/// Words of an entry's line behind its digest.
const COUNT_WORD: usize = 8;
const INDEX_WORD: usize = 9;
const NEXT_WORD: usize = 10;

/// One instruction of the host.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// What is asked.
    pub op: Op,
    /// Comes back with each answer.
    pub tag: u16,
    /// The host's address.
    pub lba: u32,
    /// Of a write: how many pages it has.
    pub pages: u16,
    /// Of an erasure or a read.
    pub digest: Digest,
}

/// The core and its surroundings.
#[derive(Debug)]
pub struct Rig<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>> {
    bench: Bench<B>,
    settings: Settings,
    inputs: DedupInputs,
    memory: Memory,
    device: Device,
    instructions: VecDeque<Instruction>,
    pages: VecDeque<Page>,
    beat: usize,
    pages_brought: u64,
    answers: Vec<Answer>,
    /// Commands of the device that the answers so far came with, and those that have ended.
    commands_due: u64,
    commands_ended: u64,
    dice: Dice,
    free_count: u32,
    last_progress: u64,
}

impl<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>> Rig<B> {
    /// A core whose table holds `table`, each digest with its count, put there by a back door; the
    /// n-th of them is page n.
    pub fn with_table(settings: Settings, table: &[(Digest, u32)]) -> Self {
        let dice = |salt: u64| Dice::new(settings.seed ^ salt << 32);
        let chance = |salt| settings.jitter.then(|| dice(salt));
        let mut memory = Memory::new(settings.read_cycles, settings.write_cycles, chance(1));
        let mut device = Device::new(DEVICE_CYCLES, chance(2));
        for (index, (digest, count)) in (0..).zip(table) {
            insert(&mut memory, settings.bucket_mask, digest, *count, index);
            // A read of it returns what `page_of` says: a full table has more pages than memory.
            let (bytes, digest, count) = (Vec::new(), *digest, *count);
            device.store(index, Stored { bytes, digest, count });
        }
        let mut inputs = DedupInputs {
            rst: 1,
            cfg_fsms: settings.fsms,
            cfg_bloom: settings.bloom.into(),
            cfg_ready: settings.ready.into(),
            cfg_count_max: settings.count_max,
            cfg_bucket_mask: settings.bucket_mask,
            cfg_first_fresh: table.len() as u32,
            cfg_capacity: settings.capacity,
            mutant: settings.mutant,
            ..DedupInputs::default()
        };
        let mut bench = Bench::new();
        bench.tick(&inputs);
        inputs.rst = 0;
        Self {
            bench,
            settings,
            inputs,
            memory,
            device,
            instructions: VecDeque::new(),
            pages: VecDeque::new(),
            beat: 0,
            pages_brought: 0,
            answers: Vec::new(),
            commands_due: 0,
            commands_ended: 0,
            dice: dice(3),
            free_count: 0,
            last_progress: 0,
        }
    }

    /// Queues an instruction; [`Rig::bring_page`] brings the pages of a write.
    pub fn instruct(&mut self, instruction: Instruction) {
        self.instructions.push_back(instruction);
    }

    /// Queues a page of a write.
    pub fn bring_page(&mut self, page: Page) {
        assert_eq!(page.bytes.len(), PAGE_BYTES, "a page");
        self.pages.push_back(page);
    }

    /// Goes on until this number of answers has come since the last call and the device is quiet,
    /// and gives them.
    ///
    /// # Panics
    /// When nothing comes for a long time.
    pub fn run(&mut self, answers: usize) -> Vec<Answer> {
        while self.answers.len() < answers || !self.device_is_quiet() {
            self.step();
        }
        self.take_answers()
    }

    /// The answers that have come since the last call.
    pub fn take_answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    /// Whether the device has done all that the answers so far came with. A command may come to it
    /// later than its answer to the host.
    pub fn device_is_quiet(&self) -> bool {
        self.commands_due == self.commands_ended
    }

    /// Pages that the core has not taken yet.
    pub fn pages_waiting(&self) -> usize {
        self.pages.len()
    }

    /// One cycle.
    ///
    /// # Panics
    /// When no answer comes for a long time.
    pub fn step(&mut self) {
        let cycle = self.bench.cycles();
        self.drive_host(cycle);
        self.drive_surroundings(cycle);
        let outputs = self.bench.tick(&self.inputs);
        self.take_host(cycle, &outputs);
        self.take_memory(cycle, &outputs);
        self.take_device(cycle, &outputs);
        self.free_count = outputs.free_count;
        assert!(
            cycle - self.last_progress < PATIENCE_CYCLES,
            "nothing since {}",
            self.last_progress
        );
    }

    fn drive_host(&mut self, cycle: u64) {
        let (instruction_pauses, beat_pauses) = (self.pauses(), self.pauses());
        self.inputs.instruction_valid = 0;
        if let Some(next) = self.instructions.front().filter(|_| !instruction_pauses) {
            self.inputs.instruction_valid = 1;
            self.inputs.instruction_op = next.op.code();
            self.inputs.instruction_tag = next.tag;
            self.inputs.instruction_lba = next.lba;
            self.inputs.instruction_pages = next.pages;
            self.inputs.instruction_digest = digest_words(&next.digest);
        }
        self.inputs.beat_valid = 0;
        let may_begin = cycle * 10 >= self.pages_brought * self.settings.page_tenths;
        if let Some(page) = self.pages.front()
            && (self.beat > 0 || may_begin)
            && !beat_pauses
        {
            self.inputs.beat_valid = 1;
            let from = self.beat * BEAT_BYTES;
            self.inputs.beat_digest = digest_words(&page.digest);
            for (word, bytes) in
                self.inputs.beat_data.iter_mut().zip(page.bytes[from..].chunks_exact(4))
            {
                *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
        self.inputs.result_ready = (!self.pauses()).into();
    }

    fn drive_surroundings(&mut self, cycle: u64) {
        self.inputs.response_valid = 0;
        if let Some((id, line)) = self.memory.answer(cycle) {
            self.inputs.response_valid = 1;
            self.inputs.response_id = id;
            self.inputs.response_data = line;
        }
        let landed = self.memory.land(cycle);
        self.inputs.write_done_valid = landed.is_some().into();
        self.inputs.write_done_id = landed.unwrap_or_default();
        let ended = self.device.end(cycle);
        self.inputs.ended_valid = ended.is_some().into();
        self.inputs.ended_tag = ended.unwrap_or_default();
        self.inputs.read_ready = (!self.pauses()).into();
        self.inputs.write_ready = (!self.pauses()).into();
        self.inputs.device_ready = (!self.pauses()).into();
        self.inputs.data_ready = (self.device.takes_beats() && !self.pauses()).into();
        if ended.is_some() {
            self.commands_ended += 1;
            self.last_progress = cycle;
        }
    }

    fn take_host(&mut self, cycle: u64, outputs: &DedupOutputs) {
        if self.inputs.instruction_valid & outputs.instruction_ready != 0 {
            self.instructions.pop_front();
        }
        if self.inputs.beat_valid & outputs.beat_ready != 0 {
            if self.beat == 0 {
                self.pages_brought += 1;
            }
            self.beat += 1;
            if self.beat * BEAT_BYTES == PAGE_BYTES {
                self.beat = 0;
                self.pages.pop_front();
            }
        }
        if self.inputs.result_ready & outputs.result_valid != 0 {
            self.last_progress = cycle;
            let verdict = Verdict::of(outputs.result_verdict);
            self.commands_due += u64::from(!matches!(verdict, Verdict::Absent | Verdict::Full));
            self.answers.push(Answer {
                tag: outputs.result_tag,
                lba: outputs.result_lba,
                digest: digest_of(&outputs.result_digest),
                verdict,
                index: outputs.result_index,
                count: outputs.result_count,
                cycle,
            });
        }
    }

    fn take_memory(&mut self, cycle: u64, outputs: &DedupOutputs) {
        if self.inputs.read_ready & outputs.read_valid != 0 {
            self.memory.read(cycle, outputs.read_id, outputs.read_region, outputs.read_line);
        }
        if self.inputs.write_ready & outputs.write_valid != 0 {
            let place = (outputs.write_region, outputs.write_line);
            let words = outputs.write_words;
            self.memory.write(cycle, outputs.write_id, place, words, outputs.write_data);
        }
    }

    fn take_device(&mut self, cycle: u64, outputs: &DedupOutputs) {
        if self.inputs.device_ready & outputs.device_valid != 0 {
            let host = (outputs.device_host_tag, digest_of(&outputs.device_digest));
            let kind = Kind::of(outputs.device_kind);
            let (index, count) = (outputs.device_index, outputs.device_count);
            let command = Command::new(outputs.device_tag, kind, index, count, host);
            self.device.begin(cycle, command);
        }
        if self.inputs.data_ready & outputs.data_valid != 0 {
            self.device.beat(cycle, &outputs.data_beat, outputs.data_last != 0);
        }
    }

    fn pauses(&mut self) -> bool {
        self.settings.jitter && self.dice.one_in(3)
    }

    /// Cycles since reset.
    pub fn cycles(&self) -> u64 {
        self.bench.cycles()
    }

    /// Reads of memory since reset.
    pub fn memory_reads(&self) -> u64 {
        self.memory.reads
    }

    /// Free indices, as the core counts them.
    pub fn free_count(&self) -> u32 {
        self.free_count
    }

    /// The pages that the device read since the last call: digest asked for, bytes there.
    pub fn take_got(&mut self) -> Vec<(Digest, Option<Vec<u8>>)> {
        let got = std::mem::take(&mut self.device.got);
        let bytes = |page: Stored| plain_bytes(&page).into_owned();
        got.into_iter().map(|(_, digest, page)| (digest, page.map(bytes))).collect()
    }

    /// What the device holds: index, digest in the header, bytes.
    pub fn device_pages(&self) -> impl Iterator<Item = (u32, &Digest, Cow<'_, [u8]>)> {
        self.device.pages.iter().map(|(index, page)| (*index, &page.digest, plain_bytes(page)))
    }

    /// The table as it lies in memory, bucket by bucket: digest, count, index. Checks each list's
    /// length and filter on the way.
    ///
    /// # Panics
    /// Where the table contradicts itself.
    pub fn walk_table(&self) -> Vec<(Digest, u32, u32)> {
        let mut found = Vec::new();
        for bucket in 0..=self.settings.bucket_mask {
            let [head, length, filter, ..] = self.memory.line(BUCKETS, bucket);
            let mut at = head;
            for _ in 0..length {
                let entry = self.memory.line(ENTRIES, at);
                let digest = digest_of(&entry);
                assert_eq!(entry[INDEX_WORD], at, "an entry knows its index");
                assert_eq!(bucket_of(&digest, self.settings.bucket_mask), bucket, "its bucket");
                let own = filter_bits(&digest);
                assert_eq!(filter & own, own, "the filter of bucket {bucket} knows its entries");
                found.push((digest, entry[COUNT_WORD], at));
                at = entry[NEXT_WORD];
            }
        }
        found
    }

    /// Whether the filter of its bucket says that a digest may be there.
    pub fn filter_knows(&self, digest: &Digest) -> bool {
        let line = self.memory.line(BUCKETS, bucket_of(digest, self.settings.bucket_mask));
        let own = filter_bits(digest);
        line[2] & own == own
    }

    /// Writes every signal of each cycle from now on, as VCD; feature `trace`.
    pub fn trace_to(&mut self, path: &Path) {
        self.bench.trace_to(path);
    }
}

/// A page's bytes; one that a back door put there has none of its own.
fn plain_bytes(page: &Stored) -> Cow<'_, [u8]> {
    if page.bytes.is_empty() {
        Cow::Owned(page_of(&page.digest))
    } else {
        Cow::Borrowed(&page.bytes)
    }
}

/// The last 25 bits of a digest, masked.
pub(crate) fn bucket_of(digest: &Digest, mask: u32) -> u32 {
    u32::from_be_bytes([digest[28], digest[29], digest[30], digest[31]]) & mask & 0x1ff_ffff
}

/// Three bits by the first 15 of a digest.
pub(crate) fn filter_bits(digest: &Digest) -> u32 {
    let first = u32::from(u16::from_be_bytes([digest[0], digest[1]]));
    [11, 6, 1].iter().fold(0, |bits, shift| bits | 1 << (first >> shift & 31))
}

fn insert(memory: &mut Memory, mask: u32, digest: &Digest, count: u32, index: u32) {
    let bucket = bucket_of(digest, mask);
    let mut list = memory.line(BUCKETS, bucket);
    let mut entry: Line = [0; 16];
    entry[..8].copy_from_slice(&digest_words(digest));
    entry[COUNT_WORD] = count;
    entry[INDEX_WORD] = index;
    entry[NEXT_WORD] = list[0];
    memory.set_line(ENTRIES, index, entry);
    list[0] = index;
    list[1] += 1;
    list[2] |= filter_bits(digest);
    memory.set_line(BUCKETS, bucket, list);
}
