//! Directories of containers in memory: what lies beside a duplicate.
//!
//! Chunks that were written one after the other lie in one container, and who writes one of them
//! again mostly writes the next ones too. So when many duplicates of a group are in one container
//! and their buckets had to be read, the container's directory is brought in, and those of the
//! containers behind it; what they name is found without its bucket (FIDR section 2; DDFS). How
//! they come: `directory_reads.rs`.
//!
//! A directory is a hint. It was true when its container was sealed; since then the chunk may have
//! moved, or be gone, and its name be another's. What it says of a chunk counts only while the
//! container is in the same life, and the PBN-PBA table places the chunk exactly there: then it
//! still is the chunk whose fingerprint the directory names. Its page is one that a duplicate
//! needs anyway, and serves 254 of them.
//!
//! Bounded by entries; what was followed longest ago goes first. A directory that could not be
//! read is held without entries, so that it is not read again and again.

use std::collections::VecDeque;

use format::directory::DirectoryEntry;
use format::units::{ContainerId, Fingerprint};
use hashbrown::HashMap;

/// What an entry takes at most: itself, and its place among all, where up to half are empty.
pub(crate) const ENTRY_COST_BYTES: u64 = 96;

/// One directory has at most this part of all entries: a run and what follows it fit together.
const PARTS: usize = 4;

/// A container's directory, as far as there was room for it.
struct Held {
    /// The life of the container that it is of.
    sequence: u32,
    entries: Vec<DirectoryEntry>,
}

/// An entry of a directory that is held.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) container: ContainerId,
    /// The life of the container that the directory is of.
    pub(crate) sequence: u32,
    pub(crate) entry: DirectoryEntry,
}

/// The directories in memory.
pub(crate) struct Directories {
    held: HashMap<ContainerId, Held>,
    /// The containers of `held`, the one that was followed longest ago first.
    order: VecDeque<ContainerId>,
    /// By the first bytes of a fingerprint. Of two that begin alike one is not found.
    places: HashMap<u64, (ContainerId, u32)>,
    entries: usize,
    entries_max: usize,
    /// Whether a read of one is on its way.
    pub(crate) reading: bool,
    /// The container of the run that was followed last.
    pub(crate) followed: Option<ContainerId>,
}

impl Directories {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self {
            held: HashMap::new(),
            order: VecDeque::new(),
            places: HashMap::new(),
            entries: 0,
            entries_max,
            reading: false,
            followed: None,
        }
    }

    /// What is said of a fingerprint.
    pub(crate) fn find(&self, fingerprint: &Fingerprint) -> Option<Listed> {
        let &(container, at) = self.places.get(&tag(fingerprint))?;
        let held = self.held.get(&container)?;
        let entry = *held.entries.get(at as usize)?;
        let listed = Listed { container, sequence: held.sequence, entry };
        (entry.fingerprint == *fingerprint).then_some(listed)
    }

    /// What is said of a fingerprint is not so.
    pub(crate) fn forget(&mut self, fingerprint: &Fingerprint) {
        self.places.remove(&tag(fingerprint));
    }

    /// Entries held of this life of a container; none when its directory is not held.
    pub(crate) fn entries_of(&self, container: ContainerId, sequence: u32) -> Option<usize> {
        let held = self.held.get(&container).filter(|held| held.sequence == sequence)?;
        Some(held.entries.len())
    }

    /// Most entries that are held of one directory.
    pub(crate) fn entries_of_one_max(&self) -> usize {
        self.entries_max / PARTS
    }

    /// A run goes on in this container.
    pub(crate) fn follow(&mut self, container: ContainerId) {
        if self.order.back() != Some(&container)
            && let Some(at) = self.order.iter().position(|held| *held == container)
        {
            self.order.remove(at);
            self.order.push_back(container);
        }
    }

    /// Holds a directory from now on, in place of an earlier one of the container.
    pub(crate) fn hold(
        &mut self,
        container: ContainerId,
        sequence: u32,
        mut entries: Vec<DirectoryEntry>,
    ) {
        self.let_go(container);
        entries.truncate(self.entries_of_one_max());
        entries.shrink_to_fit();
        for (at, entry) in (0..).zip(&entries) {
            self.places.insert(tag(&entry.fingerprint), (container, at));
        }
        self.entries += entries.len();
        self.held.insert(container, Held { sequence, entries });
        self.order.push_back(container);
        while self.entries > self.entries_max
            && let Some(oldest) = self.order.front()
        {
            self.let_go(*oldest);
        }
    }

    fn let_go(&mut self, container: ContainerId) {
        let Some(Held { entries, .. }) = self.held.remove(&container) else { return };
        self.order.retain(|held| *held != container);
        self.entries -= entries.len();
        for (at, entry) in (0..).zip(&entries) {
            let tag = tag(&entry.fingerprint);
            if self.places.get(&tag) == Some(&(container, at)) {
                self.places.remove(&tag);
            }
        }
    }

    /// Memory that they take.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let place_bytes = size_of::<(u64, (ContainerId, u32))>() + 1;
        let entry_bytes = size_of::<DirectoryEntry>();
        (self.entries * entry_bytes + self.places.capacity() * place_bytes) as u64
    }
}

fn tag(fingerprint: &Fingerprint) -> u64 {
    fingerprint.0.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::Directories;
    use format::directory::DirectoryEntry;
    use format::units::{ContainerId, Fingerprint, Pbn};

    fn entries(from: u8, count: u8) -> Vec<DirectoryEntry> {
        let entry = |number: u8| DirectoryEntry {
            fingerprint: Fingerprint([number; 32]),
            pbn: Pbn(u64::from(number)),
            offset_bytes: u32::from(number) * 100,
            length_bytes: 100,
        };
        (from..from + count).map(entry).collect()
    }

    fn finds(directories: &Directories, number: u8) -> Option<u32> {
        directories.find(&Fingerprint([number; 32])).map(|listed| listed.container.0)
    }

    #[test]
    fn what_was_followed_longest_ago_goes_first() {
        let mut directories = Directories::new(40);
        for container in 0..4 {
            directories.hold(ContainerId(container), 1, entries(container as u8 * 10, 10));
        }
        directories.follow(ContainerId(0));
        directories.hold(ContainerId(9), 1, entries(100, 10));
        let found = [5, 15, 25, 35, 105].map(|number| finds(&directories, number));
        assert_eq!(found, [Some(0), None, Some(2), Some(3), Some(9)]);
    }

    #[test]
    fn one_directory_leaves_room_for_those_that_follow() {
        let mut directories = Directories::new(40);
        directories.hold(ContainerId(1), 1, entries(0, 30));
        assert_eq!(directories.entries_of(ContainerId(1), 1), Some(10));
        assert_eq!((finds(&directories, 9), finds(&directories, 10)), (Some(1), None));
    }

    #[test]
    fn another_life_replaces_what_was_held() {
        let mut directories = Directories::new(40);
        directories.hold(ContainerId(1), 1, entries(0, 5));
        directories.hold(ContainerId(1), 2, entries(5, 5));
        assert_eq!(directories.entries_of(ContainerId(1), 1), None);
        assert_eq!((finds(&directories, 0), finds(&directories, 7)), (None, Some(1)));
        directories.forget(&Fingerprint([7; 32]));
        assert_eq!(finds(&directories, 7), None);
    }

    #[test]
    fn a_chunk_that_two_containers_name_outlives_one_of_them() {
        let mut directories = Directories::new(40);
        directories.hold(ContainerId(1), 1, entries(0, 5));
        directories.hold(ContainerId(2), 1, entries(0, 5));
        directories.hold(ContainerId(1), 3, Vec::new());
        assert_eq!(finds(&directories, 3), Some(2));
    }
}
