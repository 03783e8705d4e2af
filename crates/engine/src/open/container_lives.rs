//! What containers should hold, by a root and by the records behind it.

use std::collections::BTreeMap;

use format::container_page::{ContainerEntry, ContainerState};
use format::record::Change;
use format::units::ContainerId;
use journal::ReplayRecord;

/// What a container should hold.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Should {
    /// Frames, and a directory at its end.
    End,
    /// The same, if that outlived a crash.
    PerhapsEnd,
    /// Frames.
    Begin,
}

/// Containers that should hold something.
pub(crate) type Used = BTreeMap<ContainerId, Should>;

/// What a container should hold by its entry in the table.
pub(crate) fn is_used((id, entry): (ContainerId, ContainerEntry)) -> Option<(ContainerId, Should)> {
    match entry.state {
        ContainerState::Sealed => Some((id, Should::End)),
        ContainerState::Open if entry.used_bytes > 0 => Some((id, Should::Begin)),
        _ => None,
    }
}

/// What records behind a root say of the lives of containers.
#[derive(Default)]
pub(crate) struct Lives {
    /// Sequence of the record, container, and whether it was sealed; opened or freed otherwise.
    named: Vec<(u64, ContainerId, bool)>,
}

impl Lives {
    pub(crate) fn note(&mut self, record: &ReplayRecord) {
        let changes = record.changes().unwrap_or_default();
        self.named.extend(changes.iter().filter_map(|change| match change {
            Change::SealContainer { id, .. } => Some((record.sequence, *id, true)),
            Change::OpenContainer { id, .. } | Change::FreeContainer { id } => {
                Some((record.sequence, *id, false))
            }
            _ => None,
        }));
    }

    /// What is known of containers when records up to `durable_sequence` are.
    pub(crate) fn apply(&self, durable_sequence: u64, used: &mut Used) {
        for &(sequence, id, is_sealed) in &self.named {
            match (is_sealed, sequence <= durable_sequence) {
                (true, true) => used.insert(id, Should::End),
                (true, false) => used.insert(id, Should::PerhapsEnd),
                (false, _) => used.remove(&id),
            };
        }
    }
}
