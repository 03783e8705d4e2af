//! Volumes: those that doors can see, by name, and those that are going.
//!
//! What changes them are points in the one prefix order, as writes are: [`administer`],
//! [`new_volumes`], [`codecs`], [`dedup_switch`], [`reservations`], [`take_versions`]. They enter
//! the write buffer by [`queued`]. Snapshots and clones share tables ([`versions`]); what is
//! deleted goes in the background ([`give_back`], [`deletions`], [`deletion_pace`]).

pub(crate) mod administer;
pub(crate) mod codecs;
pub(crate) mod dedup_switch;
pub(crate) mod deletion_pace;
pub(crate) mod deletions;
pub(crate) mod description;
pub(crate) mod give_back;
pub(crate) mod new_volumes;
pub(crate) mod queued;
pub(crate) mod reservations;
pub(crate) mod take_versions;
pub(crate) mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use format::catalog::{CatalogEntry, VolumeName, VolumeState};
use format::domain::DomainId;
use format::units::VolumeId;

use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::opens::Opener;
use crate::door::volume::VolumeShared;
use crate::duplicates::domains::Domains;
use crate::state::State;
use crate::stats::volume_written::VolumesWritten;
use crate::volumes::deletions::Deletions;
use crate::walk::seeking::Seeking;

/// The volumes that doors can see, and those that are going.
pub(crate) struct Volumes {
    /// Snapshots stand here as `volume@snapshot`.
    pub(crate) by_name: BTreeMap<String, Arc<VolumeShared>>,
    /// Names of what is on its way to be a clone or a snapshot, and cannot be opened yet.
    pub(crate) claimed: BTreeSet<String>,
    /// Volumes whose rollback is on its way: nobody may open them before it is recorded, for what
    /// is stored around a part that is written then would be of before it, and so would their size.
    pub(crate) rolling_back: BTreeSet<VolumeId>,
    /// Versions to be given back.
    pub(crate) deletions: Deletions,
    /// Which domain each version is in that doors have seen.
    pub(crate) domains: Domains,
    /// Which of their chunks are looked up.
    pub(crate) seeking: Seeking,
    /// Those with a reservation.
    pub(crate) promised: BTreeMap<VolumeId, Arc<VolumeShared>>,
    /// What was written into each.
    pub(crate) written: VolumesWritten,
    next_id: u32,
    /// Openings of volumes that there have ever been.
    opens_made: u64,
    /// Keyed domains that there have ever been.
    domains_made: u16,
}

impl Volumes {
    /// What the catalog of an opened store holds.
    pub(crate) fn load(state: &State, chunk_bytes: u32, read_only: bool) -> Self {
        let mut volumes = Self {
            by_name: BTreeMap::new(),
            claimed: BTreeSet::new(),
            rolling_back: BTreeSet::new(),
            deletions: Deletions::default(),
            domains: Domains::default(),
            seeking: Seeking::default(),
            promised: BTreeMap::new(),
            written: VolumesWritten::default(),
            next_id: state.next_volume,
            opens_made: 0,
            domains_made: state.domains,
        };
        for entry in state.catalog.iter() {
            if entry.state == VolumeState::Deleting {
                match entry.lineage.given_back_leaves {
                    0 => volumes.deletions.add(entry.id),
                    _ => volumes.deletions.began(entry.id),
                }
                continue;
            }
            volumes.seeking.set(entry.id, entry.dedup);
            let entry = CatalogEntry { read_only: entry.read_only || read_only, ..entry.clone() };
            volumes.show(shared_of(state, &entry, chunk_bytes));
        }
        volumes
    }

    /// Doors can see a version from now on.
    pub(crate) fn show(&mut self, volume: Arc<VolumeShared>) {
        self.domains.note(volume.id, volume.domain.as_ref());
        if volume.reservation_bytes().is_some() {
            self.promised.insert(volume.id, Arc::clone(&volume));
        }
        self.by_name.insert(volume.name(), volume);
    }

    /// The number of a new domain; none when all have been used.
    pub(crate) fn take_domain(&mut self) -> Option<DomainId> {
        let id = DomainId::new(self.domains_made + 1)?;
        self.domains_made += 1;
        Some(id)
    }

    /// The number of a new volume.
    pub(crate) fn take_id(&mut self) -> VolumeId {
        self.next_id += 1;
        VolumeId(self.next_id - 1)
    }

    /// Opens a volume or snapshot, unless it is being rolled back.
    pub(crate) fn open(&mut self, name: &str, opener: Opener) -> Result<OpenVolume, RequestError> {
        let volume = self.get(name)?;
        self.check_still(volume)?;
        let open = OpenVolume::new(volume, self.opens_made, opener);
        self.opens_made += 1;
        Ok(open)
    }

    /// Opens a volume once more for the client that has it open under this number.
    pub(crate) fn open_again(&mut self, volume: &Arc<VolumeShared>, open_id: u64) -> OpenVolume {
        let opens = volume.opens.list().into_iter();
        // Who has closed it meanwhile may still be sent what it asked for.
        let opener = opens.filter(|open| open.id == open_id).map(|open| open.opener).next();
        let opener = opener.unwrap_or_else(|| Opener::new("a reservation", 0));
        let open = OpenVolume::new(volume, self.opens_made, opener);
        self.opens_made += 1;
        open
    }

    /// Gives a volume or snapshot another full name.
    pub(crate) fn rename(&mut self, name: &str, new_name: String) -> Option<VolumeId> {
        let volume = self.by_name.remove(name)?;
        volume.rename(&new_name);
        let id = volume.id;
        self.by_name.insert(new_name, volume);
        Some(id)
    }

    /// That no snapshot of a volume is on its way.
    pub(crate) fn check_settled(&self, name: &str) -> Result<(), RequestError> {
        let prefix = format!("{name}@");
        if self.claimed.range(prefix.clone()..).next().is_some_and(|at| at.starts_with(&prefix)) {
            return Err(RequestError::SnapshotUnderWay { name: name.to_owned() });
        }
        Ok(())
    }

    /// That no rollback of a volume is on its way.
    pub(crate) fn check_still(&self, volume: &VolumeShared) -> Result<(), RequestError> {
        if self.rolling_back.contains(&volume.id) {
            return Err(RequestError::RollingBack { name: volume.name() });
        }
        Ok(())
    }

    /// Snapshots of a volume, by their full names.
    pub(crate) fn snapshots_of(&self, name: &str) -> Vec<String> {
        let prefix = format!("{name}@");
        let from = self.by_name.range(prefix.clone()..).map(|(name, _)| name);
        from.take_while(|name| name.starts_with(&prefix)).cloned().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<VolumeShared>> {
        self.by_name.values()
    }

    /// Those behind this name, by name; without one all.
    pub(crate) fn iter_after(
        &self,
        name: Option<&str>,
    ) -> impl Iterator<Item = &Arc<VolumeShared>> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_name.range::<str, _>((from, Bound::Unbounded)).map(|(_, volume)| volume)
    }

    /// A volume or a snapshot.
    pub(crate) fn get(&self, name: &str) -> Result<&Arc<VolumeShared>, RequestError> {
        self.by_name.get(name).ok_or_else(|| RequestError::NoSuchVolume { name: name.to_owned() })
    }

    /// The same, if it is the one of this number: between a look at a volume and a request it may
    /// have been renamed or deleted, and another may have its name.
    pub(crate) fn get_meant(
        &self,
        name: &str,
        id: Option<u32>,
    ) -> Result<&Arc<VolumeShared>, RequestError> {
        let volume = self.get(name)?;
        if id.is_some_and(|id| id != volume.id.0) {
            return Err(RequestError::OtherVolume { name: name.to_owned() });
        }
        Ok(volume)
    }

    /// A volume, and no snapshot.
    pub(crate) fn volume(&self, name: &str) -> Result<&Arc<VolumeShared>, RequestError> {
        let version = self.get(name)?;
        if version.is_snapshot() {
            return Err(RequestError::NotAVolume { name: name.to_owned() });
        }
        Ok(version)
    }

    pub(crate) fn check_free(&self, name: &str) -> Result<(), RequestError> {
        if VolumeName::parse(name).is_err() {
            return Err(RequestError::BadName { name: name.to_owned() });
        }
        self.check_unused(name)
    }

    fn check_unused(&self, name: &str) -> Result<(), RequestError> {
        if self.by_name.contains_key(name) || self.claimed.contains(name) {
            return Err(RequestError::VolumeExists { name: name.to_owned() });
        }
        Ok(())
    }

    /// That `volume@name` may become a snapshot; its full name.
    pub(crate) fn check_snapshot(&self, volume: &str, name: &str) -> Result<String, RequestError> {
        if VolumeName::parse(name).is_err() {
            return Err(RequestError::BadName { name: name.to_owned() });
        }
        self.volume(volume)?;
        let full = format!("{volume}@{name}");
        self.check_unused(&full)?;
        Ok(full)
    }
}

/// A version as its entry in the catalog says.
pub(crate) fn shared_of(
    state: &State,
    entry: &CatalogEntry,
    chunk_bytes: u32,
) -> Arc<VolumeShared> {
    let (name, domain) = (state.full_name(entry), entry.domain.clone());
    let (size_bytes, read_only) = (entry.size_bytes, entry.read_only);
    let (id, kind) = (entry.id, entry.kind);
    let shared = VolumeShared::new(id, &name, size_bytes, read_only, chunk_bytes, domain, kind);
    shared.set_quota_bytes(entry.quota_bytes);
    shared.set_reservation_bytes(entry.reservation_bytes);
    shared
}
