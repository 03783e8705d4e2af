//! Volumes, snapshots and clones, by the handle of [`crate::door::client`]: made, changed and
//! deleted.

use format::catalog::{Dedup, Origin};

use crate::door::client::Client;
use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::opens::{OpenInfo, Opener};
use crate::door::outcome::{Reply, VolumeInfo};
use crate::door::requests::{AdminRequest, DeleteRequest, NewVolume, SnapshotRequest};

/// The blocking forms.
///
/// # Errors
/// Each returns the [`RequestError`] of its request.
impl Client {
    /// Opens the volume or snapshot of this name for `opener`, until what comes back is dropped.
    pub fn open_volume(&self, name: &str, opener: Opener) -> Result<OpenVolume, RequestError> {
        match self.admin(AdminRequest::OpenVolume { name: name.to_owned(), opener })? {
            Reply::Volume(volume) => Ok(volume),
            _ => Err(RequestError::Closing),
        }
    }

    /// Who has the volume or snapshot of this name open, in the order in which they opened it.
    pub fn opens(&self, name: &str) -> Result<Vec<OpenInfo>, RequestError> {
        match self.admin(AdminRequest::Opens { name: name.to_owned() })? {
            Reply::Opens(opens) => Ok(opens),
            _ => Err(RequestError::Closing),
        }
    }

    /// All volumes and snapshots, by name, at one moment: nobody is served while they are
    /// described, and there may be many.
    pub fn volumes(&self) -> Result<Vec<VolumeInfo>, RequestError> {
        self.volumes_after(None, usize::MAX)
    }

    /// The next volumes and snapshots behind this name, or the first, so many at most.
    pub fn volumes_after(
        &self,
        after: Option<String>,
        most: usize,
    ) -> Result<Vec<VolumeInfo>, RequestError> {
        match self.admin(AdminRequest::ListVolumes { after, most })? {
            Reply::Volumes(volumes) => Ok(volumes),
            _ => Err(RequestError::Closing),
        }
    }

    /// Makes a thin volume; durable when it returns.
    pub fn create_volume(
        &self,
        name: &str,
        size_bytes: u64,
        read_only: bool,
    ) -> Result<VolumeInfo, RequestError> {
        let name = name.to_owned();
        self.make_volume(NewVolume { name, size_bytes, read_only, domain: None })
    }

    /// The same of a volume that may be in a domain of its own.
    pub fn make_volume(&self, volume: NewVolume) -> Result<VolumeInfo, RequestError> {
        self.volume_info(AdminRequest::CreateVolume(volume))
    }

    /// Grows or shrinks a volume; what is cut off is unmapped.
    pub fn resize_volume(&self, name: &str, size_bytes: u64) -> Result<VolumeInfo, RequestError> {
        self.set_size(name, size_bytes, true)
    }

    /// The same; smaller only if it `may_shrink`.
    pub fn set_size(
        &self,
        name: &str,
        size_bytes: u64,
        may_shrink: bool,
    ) -> Result<VolumeInfo, RequestError> {
        let name = name.to_owned();
        self.volume_info(AdminRequest::ResizeVolume { name, size_bytes, may_shrink })
    }

    /// Gives a volume another name.
    pub fn rename_volume(&self, name: &str, new_name: &str) -> Result<VolumeInfo, RequestError> {
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.volume_info(AdminRequest::RenameVolume { name, new_name })
    }

    /// Lets a volume map so many bytes and no more, or any amount; durable when it returns.
    pub fn set_quota(
        &self,
        name: &str,
        quota_bytes: Option<u64>,
    ) -> Result<VolumeInfo, RequestError> {
        self.volume_info(AdminRequest::SetQuota { name: name.to_owned(), quota_bytes })
    }

    /// Whether duplicates are looked for among what is written to a volume from now on;
    /// durable when it returns. What it holds stays as it is.
    pub fn set_dedup(&self, name: &str, dedup: Dedup) -> Result<VolumeInfo, RequestError> {
        self.volume_info(AdminRequest::SetDedup { name: name.to_owned(), dedup })
    }

    /// Deletes a volume or a snapshot; its space comes back in the background. Clones of snapshots
    /// stay.
    pub fn delete(&self, request: DeleteRequest) -> Result<(), RequestError> {
        self.admin(AdminRequest::DeleteVolume(request)).map(|_| ())
    }

    /// The same of whatever has this name.
    pub fn delete_volume(&self, name: &str) -> Result<(), RequestError> {
        self.delete(DeleteRequest::of(name))
    }

    /// The same, with all its snapshots.
    pub fn delete_volume_with_snapshots(&self, name: &str) -> Result<(), RequestError> {
        self.delete(DeleteRequest { with_snapshots: true, ..DeleteRequest::of(name) })
    }

    /// Takes a snapshot of each of the volumes, all at one moment; durable when it returns.
    pub fn take_snapshots(&self, request: SnapshotRequest) -> Result<(), RequestError> {
        self.admin(AdminRequest::TakeSnapshots(request)).map(|_| ())
    }

    /// The same of one volume, which holds what `origin` does: the snapshot says that it is a copy.
    pub fn take_copied(
        &self,
        request: SnapshotRequest,
        origin: Origin,
    ) -> Result<(), RequestError> {
        self.admin(AdminRequest::TakeCopied(request, origin)).map(|_| ())
    }

    /// Makes a volume that begins as a snapshot; durable when it returns.
    pub fn clone_volume(&self, snapshot: &str, name: &str) -> Result<VolumeInfo, RequestError> {
        let (snapshot, name) = (snapshot.to_owned(), name.to_owned());
        self.volume_info(AdminRequest::CloneVolume { snapshot, name })
    }

    /// Lets a volume hold again what a snapshot of it holds; nobody may have it open.
    pub fn roll_back(&self, snapshot: &str) -> Result<VolumeInfo, RequestError> {
        self.roll_back_to(snapshot, None)
    }

    /// The same; refused if the snapshot of this name has another number.
    pub fn roll_back_to(&self, name: &str, id: Option<u32>) -> Result<VolumeInfo, RequestError> {
        self.volume_info(AdminRequest::Rollback { snapshot: name.to_owned(), id })
    }

    fn volume_info(&self, request: AdminRequest) -> Result<VolumeInfo, RequestError> {
        match self.admin(request)? {
            Reply::VolumeInfo(info) => Ok(info),
            _ => Err(RequestError::Closing),
        }
    }
}
