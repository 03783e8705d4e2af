//! Whether a directory says of a container's chunks what the tables say.

use std::collections::BTreeMap;

use format::directory::DirectoryEntry;
use format::units::{ContainerId, Fingerprint, Pba, Pbn};

use crate::check::problem::Problem;

/// What is wrong with the directory of a container that holds `chunks`; `known` says how the
/// fingerprint of a PBN begins, if any table does.
pub(crate) fn directory_problems(
    id: ContainerId,
    entries: &[DirectoryEntry],
    chunks: impl Iterator<Item = (Pba, Pbn)>,
    known: impl Fn(Pbn) -> Option<u64>,
) -> Vec<Problem> {
    let place = |entry: &DirectoryEntry| (entry.offset_bytes, entry.length_bytes, entry.pbn);
    let listed: BTreeMap<(u32, u32, Pbn), u64> =
        entries.iter().map(|entry| (place(entry), start_of(&entry.fingerprint))).collect();
    let problem = |(pba, pbn): (Pba, Pbn)| {
        let (container, number) = (id.0, pbn.0);
        let expected = known(pbn);
        match listed.get(&(pba.offset_bytes, pba.length_bytes, pbn)) {
            None => Some(Problem::DirectoryLacks { container, pbn: number }),
            Some(start) if expected.is_some_and(|expected| *start != expected) => {
                Some(Problem::WrongFingerprint { container, pbn: number })
            }
            Some(_) => None,
        }
    };
    chunks.filter_map(problem).collect()
}

/// Enough of a fingerprint to tell it from another.
pub(crate) fn start_of(fingerprint: &Fingerprint) -> u64 {
    fingerprint.0.first_chunk().map_or(0, |start| u64::from_le_bytes(*start))
}
