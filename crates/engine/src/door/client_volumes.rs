//! The verbs of the control language that are asked most, as calls of [`crate::door::client`]'s
//! handle.

use format::catalog::Dedup;
use format::superblock::Geometry;
use format::units::Compression;

use crate::control::{
    CloneVolume, Close, DeleteRequest, Explain, GetGeometry, GetStats, ListOpens, ListVolumes,
    NewVolume, Open, RenameVolume, ResizeVolume, Rollback, SetDedup, SetQuota, SetReservation,
    SetVolumeCompression,
};
use crate::door::client::Client;
use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::opens::{OpenInfo, Opener};
use crate::door::outcome::VolumeInfo;
use crate::explain::explanation::{Address, Explanation};
use crate::stats::Stats;

/// The blocking forms: each asks the verb of its name, and returns the [`RequestError`] of that.
///
/// # Errors
/// Each returns the [`RequestError`] of its request.
impl Client {
    /// [`Open`].
    pub fn open_volume(&self, name: &str, opener: Opener) -> Result<OpenVolume, RequestError> {
        self.ask(Open { name: name.to_owned(), opener })
    }

    /// [`ListOpens`].
    pub fn opens(&self, name: &str) -> Result<Vec<OpenInfo>, RequestError> {
        self.ask(ListOpens { name: name.to_owned() })
    }

    /// [`ListVolumes`], all.
    pub fn volumes(&self) -> Result<Vec<VolumeInfo>, RequestError> {
        self.ask(ListVolumes::all())
    }

    /// [`NewVolume`], in the default domain.
    pub fn create_volume(
        &self,
        name: &str,
        size_bytes: u64,
        read_only: bool,
    ) -> Result<VolumeInfo, RequestError> {
        let name = name.to_owned();
        self.ask(NewVolume { name, size_bytes, read_only, ..NewVolume::default() })
    }

    /// [`ResizeVolume`], which may shrink it, also while somebody has it open.
    pub fn resize_volume(&self, name: &str, size_bytes: u64) -> Result<VolumeInfo, RequestError> {
        let (name, may_shrink, even_if_open) = (name.to_owned(), true, true);
        self.ask(ResizeVolume { name, size_bytes, may_shrink, even_if_open })
    }

    /// [`RenameVolume`].
    pub fn rename_volume(&self, name: &str, new_name: &str) -> Result<VolumeInfo, RequestError> {
        self.ask(RenameVolume { name: name.to_owned(), new_name: new_name.to_owned() })
    }

    /// [`SetQuota`].
    pub fn set_quota(
        &self,
        name: &str,
        quota_bytes: Option<u64>,
    ) -> Result<VolumeInfo, RequestError> {
        self.ask(SetQuota { name: name.to_owned(), quota_bytes })
    }

    /// [`SetDedup`].
    pub fn set_dedup(&self, name: &str, dedup: Dedup) -> Result<VolumeInfo, RequestError> {
        self.ask(SetDedup { name: name.to_owned(), dedup })
    }

    /// [`SetVolumeCompression`].
    pub fn set_volume_compression(
        &self,
        name: &str,
        compression: Option<Compression>,
    ) -> Result<VolumeInfo, RequestError> {
        self.ask(SetVolumeCompression { name: name.to_owned(), compression })
    }

    /// [`SetReservation`].
    pub fn set_reservation(
        &self,
        name: &str,
        reservation_bytes: Option<u64>,
    ) -> Result<VolumeInfo, RequestError> {
        self.ask(SetReservation { name: name.to_owned(), reservation_bytes })
    }

    /// [`DeleteRequest`], of whatever has this name, also while somebody has it open.
    pub fn delete_volume(&self, name: &str) -> Result<(), RequestError> {
        self.ask(DeleteRequest { even_if_open: true, ..DeleteRequest::of(name) })
    }

    /// The same, with all its snapshots.
    pub fn delete_volume_with_snapshots(&self, name: &str) -> Result<(), RequestError> {
        let request = DeleteRequest { even_if_open: true, ..DeleteRequest::of(name) };
        self.ask(DeleteRequest { with_snapshots: true, ..request })
    }

    /// [`CloneVolume`].
    pub fn clone_volume(&self, snapshot: &str, name: &str) -> Result<VolumeInfo, RequestError> {
        self.ask(CloneVolume { snapshot: snapshot.to_owned(), name: name.to_owned() })
    }

    /// [`Rollback`], to whichever snapshot has this name.
    pub fn roll_back(&self, snapshot: &str) -> Result<VolumeInfo, RequestError> {
        self.ask(Rollback { snapshot: snapshot.to_owned(), ..Rollback::default() })
    }

    /// [`Explain`].
    pub fn explain(&self, volume: &str, address: Address) -> Result<Explanation, RequestError> {
        self.ask(Explain { volume: volume.to_owned(), address })
    }

    /// [`GetStats`].
    pub fn stats(&self) -> Result<Stats, RequestError> {
        self.ask(GetStats {})
    }

    /// [`GetGeometry`].
    pub fn geometry(&self) -> Result<Geometry, RequestError> {
        self.ask(GetGeometry {})
    }

    /// [`Close`].
    pub fn close(&self) -> Result<(), RequestError> {
        self.ask(Close {})
    }
}
