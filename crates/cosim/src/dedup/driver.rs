//! The driver's half of the block interface: which digest each address of the host has.
//!
//! ```text
//! write  -> Write with the page -> NEW, SHARED: the address has the digest that the core found;
//!                                               what it had before is erased
//!                                  FULL: the address keeps what it had
//! trim   -> the address has nothing; what it had is erased
//! read   -> Read of what the address has -> the device gives the page
//! ```
//!
//! The core answers in the order of what it was asked, so an address has what was written to it
//! last. From a write to its answer nobody knows what the address will have: trims and reads of it
//! wait. A reference is given back after the new one is counted, so that a page which is written
//! over itself stays. As in the store, a page of zeros is no page: writing it is a trim.
//!
//! Invariant: at rest, the count of each page in the core's table is the number of addresses that
//! have its digest. [`Driver::check_counts`] holds it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use super::page::Page;
use super::ports::{Answer, Digest, Op, PAGE_BYTES, Settings, Verdict};
use super::rig::{Instruction, Rig};
use crate::model::{Block, DedupInputs, DedupOutputs};

/// Pages that wait for the core at most; a host's buffers have an end.
const PAGES_WAITING_MAX: usize = 64;

/// What became of one page that was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Written {
    /// The host's address, in pages.
    pub lba: u32,
    /// [`Verdict::New`], [`Verdict::Shared`] or [`Verdict::Full`].
    pub verdict: Verdict,
}

/// What the core was asked and has not answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Request {
    Write { lba: u32 },
    Erase { digest: Digest },
    Read { digest: Digest },
}

/// A driver with the core and all that surrounds it.
#[derive(Debug)]
pub struct Driver<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>> {
    rig: Rig<B>,
    digests: BTreeMap<u32, Digest>,
    under_way: VecDeque<Request>,
    /// Writes under way by address.
    writes: HashMap<u32, u32>,
    written: Vec<Written>,
}

impl<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>> Driver<B> {
    /// A driver of a core with an empty table.
    pub fn new(settings: Settings) -> Self {
        Self {
            rig: Rig::with_table(settings, &[]),
            digests: BTreeMap::new(),
            under_way: VecDeque::new(),
            writes: HashMap::new(),
            written: Vec::new(),
        }
    }

    /// Writes pages from address `lba` on; [`Driver::settle`] says what became of them.
    ///
    /// # Panics
    /// Unless `bytes` are whole pages.
    pub fn write(&mut self, lba: u32, bytes: &[u8]) {
        assert_eq!(bytes.len() % PAGE_BYTES, 0, "whole pages are written");
        for (lba, page) in (lba..).zip(bytes.chunks_exact(PAGE_BYTES)) {
            if page.iter().all(|byte| *byte == 0) {
                self.trim(lba..lba + 1);
            } else {
                self.write_page(lba, page);
            }
        }
    }

    fn write_page(&mut self, lba: u32, page: &[u8]) {
        while self.rig.pages_waiting() >= PAGES_WAITING_MAX {
            self.step();
        }
        self.ask(Op::Write, lba, [0; 32]);
        self.rig.bring_page(Page::hashed(page.to_vec()));
        self.under_way.push_back(Request::Write { lba });
        *self.writes.entry(lba).or_default() += 1;
    }

    /// Takes away what the addresses have.
    pub fn trim(&mut self, lbas: Range<u32>) {
        self.wait_for_writes(lbas.clone());
        for lba in lbas {
            if let Some(digest) = self.digests.remove(&lba) {
                self.erase(lba, digest);
            }
        }
    }

    /// The pages of these addresses one after the other, zeros where nothing is. All reads are
    /// under way at once.
    ///
    /// # Panics
    /// Where the device does not give a page that was stored.
    pub fn read(&mut self, lbas: Range<u32>) -> Vec<u8> {
        self.wait_for_writes(lbas.clone());
        let wanted: Vec<Option<Digest>> =
            lbas.clone().map(|lba| self.digests.get(&lba).copied()).collect();
        for (lba, digest) in lbas.zip(&wanted) {
            if let Some(digest) = *digest {
                self.ask(Op::Read, lba, digest);
                self.under_way.push_back(Request::Read { digest });
            }
        }
        self.wait();
        let got: HashMap<Digest, Option<Vec<u8>>> = self.rig.take_got().into_iter().collect();
        let page_of = |digest: Digest| {
            let page = got.get(&digest).cloned().flatten();
            page.unwrap_or_else(|| panic!("the device has the page {digest:02x?}"))
        };
        let pages =
            wanted.into_iter().map(|digest| digest.map_or_else(|| vec![0; PAGE_BYTES], page_of));
        pages.collect::<Vec<_>>().concat()
    }

    /// Waits for all that is under way, and gives the verdict of each page that was written since
    /// the last call, in the order of the writes. Pages of zeros have none.
    pub fn settle(&mut self) -> Vec<Written> {
        self.wait();
        std::mem::take(&mut self.written)
    }

    /// What each address has.
    pub fn digests(&self) -> &BTreeMap<u32, Digest> {
        &self.digests
    }

    /// The core and its surroundings.
    pub fn rig(&self) -> &Rig<B> {
        &self.rig
    }

    /// Holds the table of the core at rest against the addresses, and gives the count of each page.
    ///
    /// # Panics
    /// Where a count is not the number of addresses.
    pub fn check_counts(&self) -> HashMap<Digest, u32> {
        let mut counts: HashMap<Digest, u32> = HashMap::new();
        for digest in self.digests.values() {
            *counts.entry(*digest).or_default() += 1;
        }
        let table = self.rig.walk_table();
        let found: HashMap<Digest, u32> =
            table.into_iter().map(|(digest, count, _)| (digest, count)).collect();
        assert_eq!(found, counts, "a page has as many references as addresses");
        counts
    }

    fn erase(&mut self, lba: u32, digest: Digest) {
        self.ask(Op::Erase, lba, digest);
        self.under_way.push_back(Request::Erase { digest });
    }

    fn ask(&mut self, op: Op, lba: u32, digest: Digest) {
        self.rig.instruct(Instruction { op, tag: lba as u16, lba, pages: 1, digest });
    }

    fn wait(&mut self) {
        while !self.under_way.is_empty() || !self.rig.device_is_quiet() {
            self.step();
        }
    }

    fn wait_for_writes(&mut self, lbas: Range<u32>) {
        while lbas.clone().any(|lba| self.writes.contains_key(&lba)) {
            self.step();
        }
    }

    fn step(&mut self) {
        self.rig.step();
        for answer in self.rig.take_answers() {
            self.take(&answer);
        }
    }

    fn take(&mut self, answer: &Answer) {
        let request = self.under_way.pop_front();
        let request = request.unwrap_or_else(|| panic!("an answer is to a request: {answer:?}"));
        match request {
            Request::Write { lba } => self.take_written(lba, answer),
            Request::Erase { digest } => {
                assert_eq!(answer.digest, digest, "answers come in order");
                let verdict = answer.verdict;
                assert!(matches!(verdict, Verdict::Shared | Verdict::Erased), "{verdict:?}");
            }
            Request::Read { digest } => {
                assert_eq!((answer.digest, answer.verdict), (digest, Verdict::Found), "in order");
            }
        }
    }

    fn take_written(&mut self, lba: u32, answer: &Answer) {
        assert_eq!(answer.lba, lba, "answers come in order");
        self.written.push(Written { lba, verdict: answer.verdict });
        if let Some(count) = self.writes.get_mut(&lba) {
            *count -= 1;
            if *count == 0 {
                self.writes.remove(&lba);
            }
        }
        if answer.verdict == Verdict::Full {
            return;
        }
        if let Some(before) = self.digests.insert(lba, answer.digest) {
            self.erase(lba, before);
        }
    }
}
