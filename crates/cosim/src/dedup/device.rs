//! The storage device behind the core: pages by index, commands that end in any order.
//!
//! A command takes effect when it ends. So one that was issued too early, beside another on the
//! same page, is seen to have done damage.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::dice::Dice;
use super::ports::{BEAT_BYTES, Digest, PAGE_BYTES};

/// What the core commands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    PutPage,
    PutHeader,
    ErasePage,
    GetPage,
}

impl Kind {
    pub(crate) fn of(code: u8) -> Self {
        match code {
            0 => Self::PutPage,
            1 => Self::PutHeader,
            2 => Self::ErasePage,
            _ => Self::GetPage,
        }
    }
}

/// A command that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) tag: u8,
    pub(crate) kind: Kind,
    pub(crate) index: u32,
    /// For the header.
    pub(crate) count: u32,
    pub(crate) host_tag: u16,
    pub(crate) digest: Digest,
    page: Vec<u8>,
}

impl Command {
    pub(crate) fn new(tag: u8, kind: Kind, index: u32, count: u32, host: (u16, Digest)) -> Self {
        Self { tag, kind, index, count, host_tag: host.0, digest: host.1, page: Vec::new() }
    }
}

/// A stored page with its header.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Stored {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
    /// References, as the header says.
    pub(crate) count: u32,
}

/// A page that was read: the host's tag, the digest asked for, what the device had.
pub(crate) type Got = (u16, Digest, Option<Stored>);

/// Pages by index.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) pages: HashMap<u32, Stored>,
    /// Pages that were read, in the order in which the device ended.
    pub(crate) got: Vec<Got>,
    /// Pages whose beats are to come, in order.
    filling: VecDeque<Command>,
    ending: BTreeMap<u64, Command>,
    cycles: u64,
    jitter: Option<Dice>,
}

impl Device {
    /// A device whose commands take `cycles`.
    pub(crate) fn new(cycles: u64, jitter: Option<Dice>) -> Self {
        Self {
            pages: HashMap::new(),
            got: Vec::new(),
            filling: VecDeque::new(),
            ending: BTreeMap::new(),
            cycles,
            jitter,
        }
    }

    /// Puts a page there by no way that the core has.
    pub(crate) fn store(&mut self, index: u32, page: Stored) {
        self.pages.insert(index, page);
    }

    pub(crate) fn begin(&mut self, cycle: u64, command: Command) {
        if command.kind == Kind::PutPage {
            self.filling.push_back(command);
        } else {
            self.schedule(cycle, command);
        }
    }

    /// Whether a beat can be taken: the command of its page is here.
    pub(crate) fn takes_beats(&self) -> bool {
        !self.filling.is_empty()
    }

    pub(crate) fn beat(&mut self, cycle: u64, beat: &[u32; BEAT_BYTES / 4], is_last: bool) {
        let page = &mut self.filling[0].page;
        page.extend(beat.iter().flat_map(|word| word.to_le_bytes()));
        assert_eq!(is_last, page.len() == PAGE_BYTES, "a page has 64 beats");
        if is_last && let Some(command) = self.filling.pop_front() {
            self.schedule(cycle, command);
        }
    }

    /// Ends the command that ends in this cycle, and gives its tag.
    pub(crate) fn end(&mut self, cycle: u64) -> Option<u8> {
        let command = self.ending.remove(&cycle)?;
        match command.kind {
            Kind::PutPage => {
                let (bytes, digest) = (command.page, command.digest);
                let stored = Stored { bytes, digest, count: command.count };
                let before = self.pages.insert(command.index, stored);
                assert!(before.is_none(), "page {} is put where one is", command.index);
            }
            Kind::ErasePage => {
                let before = self.pages.remove(&command.index);
                assert!(before.is_some(), "page {} is erased and is not there", command.index);
            }
            Kind::PutHeader => {
                let page = self.pages.get_mut(&command.index);
                let page = page.unwrap_or_else(|| panic!("page {} has a header", command.index));
                assert_eq!(page.digest, command.digest, "a header is of its page");
                page.count = command.count;
            }
            Kind::GetPage => {
                let found = self.pages.get(&command.index).cloned();
                self.got.push((command.host_tag, command.digest, found));
            }
        }
        Some(command.tag)
    }

    fn schedule(&mut self, cycle: u64, command: Command) {
        let delay = match &mut self.jitter {
            Some(dice) => 1 + dice.below(4 * self.cycles),
            None => self.cycles,
        };
        let mut due = cycle + delay;
        while self.ending.contains_key(&due) {
            due += 1;
        }
        self.ending.insert(due, command);
    }
}
