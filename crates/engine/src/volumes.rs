//! The volumes that doors can see, by name, and those that are going.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use format::catalog::{VolumeName, VolumeState};
use format::units::VolumeId;

use crate::error::RequestError;
use crate::state::State;
use crate::volume::VolumeShared;

/// The volumes that doors can see, and those that are going.
pub(crate) struct Volumes {
    pub(crate) by_name: BTreeMap<String, Arc<VolumeShared>>,
    pub(crate) deletions: VecDeque<VolumeId>,
    pub(crate) next_id: u32,
}

impl Volumes {
    /// What the catalog of an opened store holds.
    pub(crate) fn load(state: &State, chunk_bytes: u32) -> Self {
        let mut volumes = Self {
            by_name: BTreeMap::new(),
            deletions: VecDeque::new(),
            next_id: state.next_volume,
        };
        for entry in state.catalog.iter() {
            if entry.state == VolumeState::Deleting {
                volumes.deletions.push_back(entry.id);
                continue;
            }
            let (size_bytes, read_only) = (entry.size_bytes, entry.read_only);
            let shared =
                VolumeShared::new(entry.id, &entry.name, size_bytes, read_only, chunk_bytes);
            volumes.by_name.insert(entry.name.clone(), shared);
        }
        volumes
    }

    pub(crate) fn has_deletions(&self) -> bool {
        !self.deletions.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<VolumeShared>> {
        self.by_name.values()
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Arc<VolumeShared>, RequestError> {
        self.by_name.get(name).ok_or_else(|| RequestError::NoSuchVolume { name: name.to_owned() })
    }

    pub(crate) fn check_free(&self, name: &str) -> Result<(), RequestError> {
        if VolumeName::parse(name).is_err() {
            return Err(RequestError::BadName { name: name.to_owned() });
        }
        if self.by_name.contains_key(name) {
            return Err(RequestError::VolumeExists { name: name.to_owned() });
        }
        Ok(())
    }
}
