//! A store as commands see it that ask and change settings: opened here, or served by another
//! process. Who moves bytes or checks needs the store for itself and asks for an [`OpenStore`].
//!
//! ```text
//! Store::with ── a server answers at control.sock ──> Served (admin::Client)
//!            └── nobody does ── lock, files, engine thread ──> Here (OpenStore)
//! ```

use std::path::Path;

use engine::{
    Address, CollectRequest, CollectStep, Compression, Dedup, DeleteRequest, DifferenceRequest,
    DifferenceStep, Explanation, NewVolume, ScrubRequest, ScrubStep, SnapshotRequest, Stats,
    VolumeInfo, WeightRequest, WeightStep, control as verbs,
};

use crate::error::CliError;
use crate::staging::{check_name, check_snapshots};
use crate::store::{OpenStore, question_options};

/// A store for questions and small changes.
pub(crate) enum Store {
    /// Opened by this command.
    Here(OpenStore),
    /// Served by another process.
    Served(admin::Client),
}

/// Its server, when the store at `path` is being served.
pub(crate) fn connect(path: &Path) -> Result<Option<admin::Client>, CliError> {
    Ok(admin::Client::connect(path)?)
}

impl Store {
    /// Reaches the store at `path`, lets `work` use it, and closes it whatever `work` came to.
    pub(crate) fn with<T>(
        path: &Path,
        work: impl FnOnce(&mut Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let mut store = match connect(path)? {
            Some(client) => Self::Served(client),
            None => Self::Here(OpenStore::open(path, question_options())?),
        };
        let result = work(&mut store);
        let closed = store.close();
        let value = result?;
        closed.map(|()| value)
    }

    fn close(self) -> Result<(), CliError> {
        match self {
            Self::Here(store) => store.close(),
            Self::Served(_) => Ok(()),
        }
    }

    /// Whether another process has it.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }

    /// All volumes and snapshots, by name.
    pub(crate) fn volumes(&mut self) -> Result<Vec<VolumeInfo>, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().volumes()?,
            Self::Served(client) => client.volumes()?,
        })
    }

    /// The volume or snapshot of this name in the store at `path`.
    pub(crate) fn volume(&mut self, path: &Path, name: &str) -> Result<VolumeInfo, CliError> {
        let found = self.volumes()?.into_iter().find(|volume| volume.name == name);
        found.ok_or_else(|| CliError::NoVolume { store: path.to_owned(), name: name.to_owned() })
    }

    /// Makes a thin volume.
    pub(crate) fn create_volume(&mut self, volume: NewVolume) -> Result<VolumeInfo, CliError> {
        check_name(&volume.name)?;
        Ok(match self {
            Self::Here(store) => store.client().ask(volume)?,
            Self::Served(client) => client.create_volume(volume)?,
        })
    }

    /// Gives a volume another size; a smaller one only if that is meant.
    pub(crate) fn resize_volume(
        &mut self,
        name: &str,
        size_bytes: u64,
        may_shrink: bool,
    ) -> Result<VolumeInfo, CliError> {
        Ok(match self {
            Self::Here(store) => {
                let name = name.to_owned();
                store.client().ask(verbs::ResizeVolume { name, size_bytes, may_shrink })?
            }
            Self::Served(client) => client.resize_volume(name, size_bytes, may_shrink)?,
        })
    }

    /// Lets a volume map so many bytes and no more, or any amount.
    pub(crate) fn set_quota(
        &mut self,
        name: &str,
        quota_bytes: Option<u64>,
    ) -> Result<VolumeInfo, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().set_quota(name, quota_bytes)?,
            Self::Served(client) => client.set_quota(name, quota_bytes)?,
        })
    }

    /// Whether duplicates are looked for among what is written to a volume from now on.
    pub(crate) fn set_dedup(&mut self, name: &str, dedup: Dedup) -> Result<VolumeInfo, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().set_dedup(name, dedup)?,
            Self::Served(client) => client.set_dedup(name, dedup)?,
        })
    }

    /// Gives a volume another name.
    pub(crate) fn rename_volume(
        &mut self,
        name: &str,
        new_name: &str,
    ) -> Result<VolumeInfo, CliError> {
        check_name(new_name)?;
        Ok(match self {
            Self::Here(store) => store.client().rename_volume(name, new_name)?,
            Self::Served(client) => client.rename_volume(name, new_name)?,
        })
    }

    /// Deletes a volume or a snapshot; a volume's snapshots only if that is meant.
    pub(crate) fn delete_volume(&mut self, request: DeleteRequest) -> Result<(), CliError> {
        match self {
            Self::Here(store) => store.client().ask(request)?,
            Self::Served(client) => client.delete_volume(request)?,
        }
        Ok(())
    }

    /// Takes snapshots, all at one moment.
    pub(crate) fn take_snapshots(&mut self, request: SnapshotRequest) -> Result<(), CliError> {
        check_snapshots(&request)?;
        match self {
            Self::Here(store) => store.client().ask(request)?,
            Self::Served(client) => client.take_snapshots(request)?,
        }
        Ok(())
    }

    /// Makes a volume that begins as a snapshot.
    pub(crate) fn clone_volume(
        &mut self,
        snapshot: &str,
        name: &str,
    ) -> Result<VolumeInfo, CliError> {
        check_name(name)?;
        Ok(match self {
            Self::Here(store) => store.client().clone_volume(snapshot, name)?,
            Self::Served(client) => client.clone_volume(snapshot, name)?,
        })
    }

    /// Lets a volume hold again what this snapshot of it holds.
    pub(crate) fn roll_back(&mut self, snapshot: &VolumeInfo) -> Result<VolumeInfo, CliError> {
        let (name, id) = (&snapshot.name, Some(snapshot.id));
        Ok(match self {
            Self::Here(store) => {
                store.client().ask(verbs::Rollback { snapshot: name.clone(), id })?
            }
            Self::Served(client) => client.roll_back(name, id)?,
        })
    }

    /// Sets what new frames are compressed with.
    pub(crate) fn set_compression(&mut self, compression: Compression) -> Result<(), CliError> {
        match self {
            Self::Here(store) => store.client().ask(verbs::SetCompression { compression })?,
            Self::Served(client) => client.set_compression(compression)?,
        }
        Ok(())
    }

    /// One address of a volume, walked through the tables.
    pub(crate) fn explain(
        &mut self,
        volume: &str,
        address: Address,
    ) -> Result<Explanation, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().explain(volume, address)?,
            Self::Served(client) => client.explain(volume, address)?,
        })
    }

    /// One step of a comparison of two versions.
    pub(crate) fn difference(
        &mut self,
        request: DifferenceRequest,
    ) -> Result<DifferenceStep, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().ask(request)?,
            Self::Served(client) => client.difference(request)?,
        })
    }

    /// One step of a volume's weighing.
    pub(crate) fn weigh(&mut self, request: WeightRequest) -> Result<WeightStep, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().ask(request)?,
            Self::Served(client) => client.weigh(request)?,
        })
    }

    /// One step of a scrub.
    pub(crate) fn scrub(&mut self, request: ScrubRequest) -> Result<ScrubStep, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().ask(request)?,
            Self::Served(client) => client.scrub(request)?,
        })
    }

    /// Collects one container.
    pub(crate) fn collect(&mut self, request: CollectRequest) -> Result<CollectStep, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().ask(request)?,
            Self::Served(client) => client.collect(request)?,
        })
    }

    /// Figures of the store.
    pub(crate) fn stats(&mut self) -> Result<Stats, CliError> {
        Ok(match self {
            Self::Here(store) => store.client().stats()?,
            Self::Served(client) => client.stats()?,
        })
    }
}
