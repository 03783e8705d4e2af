//! What doors hold of a volume: a handle whose size follows every resize.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use format::catalog::VolumeKind;
use format::domain::Domain;
use format::units::VolumeId;

use crate::door::buffer_share::{BufferShare, BufferShares};
use crate::door::error::RequestError;
use crate::door::opens::{OpenInfo, Opens};

/// The size of a volume is a multiple of this. Requests may begin and end at any byte; those of
/// whole sectors cost less, and those of whole chunks least.
pub const SECTOR_BYTES: u64 = 512;
/// The largest volume.
pub const VOLUME_BYTES_MAX: u64 = 1 << 50;

/// The part of a volume that doors and the core share.
#[derive(Debug)]
pub(crate) struct VolumeShared {
    pub(crate) id: VolumeId,
    name: Mutex<String>,
    size_bytes: AtomicU64,
    pub(crate) read_only: bool,
    /// Whose chunks it shares, if not those of the default domain.
    pub(crate) domain: Option<Domain>,
    pub(crate) kind: VolumeKind,
    gone: AtomicBool,
    chunk_bytes: u32,
    /// 0: none.
    quota_bytes: AtomicU64,
    /// 0: none.
    reservation_bytes: AtomicU64,
    /// Chunks that admitted writes may map.
    quota_reserved: AtomicU64,
    /// Those of them that reservations hold: they are not on their way.
    quota_held: AtomicU64,
    /// Writers wait before they take memory.
    holds_writers_up: AtomicBool,
    /// Who has it open.
    pub(crate) opens: Opens,
    /// Of its domain, once somebody has written.
    buffer_share: OnceLock<BufferShare>,
}

impl VolumeShared {
    pub(crate) fn new(
        id: VolumeId,
        name: &str,
        size_bytes: u64,
        read_only: bool,
        chunk_bytes: u32,
        domain: Option<Domain>,
        kind: VolumeKind,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            name: Mutex::new(name.to_owned()),
            size_bytes: AtomicU64::new(size_bytes),
            read_only,
            domain,
            kind,
            gone: AtomicBool::new(false),
            chunk_bytes,
            quota_bytes: AtomicU64::new(0),
            reservation_bytes: AtomicU64::new(0),
            quota_reserved: AtomicU64::new(0),
            quota_held: AtomicU64::new(0),
            holds_writers_up: AtomicBool::new(false),
            opens: Opens::default(),
            buffer_share: OnceLock::new(),
        })
    }

    pub(crate) fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_snapshot(&self) -> bool {
        self.name().contains('@')
    }

    pub(crate) fn rename(&self, name: &str) {
        name.clone_into(&mut self.name.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Acquire)
    }

    pub(crate) fn set_size_bytes(&self, size_bytes: u64) {
        self.size_bytes.store(size_bytes, Ordering::Release);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub(crate) fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// What it may map at most.
    pub(crate) fn quota_bytes(&self) -> Option<u64> {
        Some(self.quota_bytes.load(Ordering::Acquire)).filter(|&bytes| bytes > 0)
    }

    /// The same from now on; 0: any amount.
    pub(crate) fn set_quota_bytes(&self, quota_bytes: u64) {
        self.quota_bytes.store(quota_bytes, Ordering::Release);
    }

    /// Of how much of it the room is its own.
    pub(crate) fn reservation_bytes(&self) -> Option<u64> {
        Some(self.reservation_bytes.load(Ordering::Acquire)).filter(|&bytes| bytes > 0)
    }

    /// The same from now on; 0: none.
    pub(crate) fn set_reservation_bytes(&self, reservation_bytes: u64) {
        self.reservation_bytes.store(reservation_bytes, Ordering::Release);
    }

    /// That as much of it as `bytes` has room for its reservation.
    pub(crate) fn check_reserved(&self, bytes: u64) -> Result<(), RequestError> {
        match self.reservation_bytes() {
            Some(reservation_bytes) if reservation_bytes > bytes => {
                let name = self.name();
                Err(RequestError::BelowReservation { name, reservation_bytes })
            }
            _ => Ok(()),
        }
    }

    /// Chunks that admitted writes may map, until they are applied.
    pub(crate) fn quota_reserved(&self) -> u64 {
        self.quota_reserved.load(Ordering::Acquire)
    }

    /// Those of them that are on their way: of writes, not of reservations.
    pub(crate) fn quota_on_its_way(&self) -> u64 {
        self.quota_reserved().saturating_sub(self.quota_held.load(Ordering::Acquire))
    }

    /// Reserves so many.
    pub(crate) fn share_of_quota(self: &Arc<Self>, chunks: u64) -> QuotaShare {
        self.quota_reserved.fetch_add(chunks, Ordering::AcqRel);
        QuotaShare { volume: Arc::clone(self), chunks }
    }

    /// Whether too much waits for its quota already.
    pub(crate) fn holds_writers_up(&self) -> bool {
        self.holds_writers_up.load(Ordering::Acquire)
    }

    pub(crate) fn hold_writers_up(&self, hold: bool) {
        self.holds_writers_up.store(hold, Ordering::Release);
    }

    /// What its domain holds of the write buffer; none: it is of no domain, and not bounded.
    pub(crate) fn buffer_share(&self, shares: &BufferShares) -> Option<&BufferShare> {
        let domain = self.domain.as_ref()?;
        Some(self.buffer_share.get_or_init(|| shares.of(domain.id)))
    }

    /// Whether nobody has it open.
    pub(crate) fn check_unopened(&self) -> Result<(), RequestError> {
        let opens = self.opens.list();
        match opens.is_empty() {
            true => Ok(()),
            false => Err(RequestError::InUse { name: self.name(), opens }),
        }
    }

    /// Whether it has not been deleted.
    pub(crate) fn check_there(&self) -> Result<(), RequestError> {
        if self.is_gone() {
            return Err(RequestError::NoSuchVolume { name: self.name() });
        }
        Ok(())
    }

    /// Whether a request may touch this range.
    pub(crate) fn check_range(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), RequestError> {
        self.check_there()?;
        let size_bytes = self.size_bytes();
        let inside = offset_bytes.checked_add(length_bytes).is_some_and(|end| end <= size_bytes);
        if inside {
            return Ok(());
        }
        Err(RequestError::OutOfRange { offset_bytes, length_bytes, size_bytes })
    }

    /// Whether a request may change this range.
    pub(crate) fn check_change(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), RequestError> {
        self.check_range(offset_bytes, length_bytes)?;
        if self.read_only {
            return Err(RequestError::ReadOnly { volume: self.name() });
        }
        Ok(())
    }
}

/// Chunks reserved of a volume's quota, until this is dropped.
pub(crate) struct QuotaShare {
    volume: Arc<VolumeShared>,
    chunks: u64,
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        self.volume.quota_reserved.fetch_sub(self.chunks, Ordering::AcqRel);
    }
}

/// Chunks of a volume's quota that a reservation holds.
pub(crate) struct HeldQuota(QuotaShare);

impl HeldQuota {
    pub(crate) fn new(volume: &Arc<VolumeShared>, chunks: u64) -> Self {
        // Held is never more than reserved: who looks in between finds something on its way.
        let share = volume.share_of_quota(chunks);
        volume.quota_held.fetch_add(chunks, Ordering::AcqRel);
        Self(share)
    }

    /// So many of them, for a write that is on its way from now on; no more than are held.
    pub(crate) fn draw(&mut self, chunks: u64) -> QuotaShare {
        let chunks = chunks.min(self.0.chunks);
        self.0.chunks -= chunks;
        self.0.volume.quota_held.fetch_sub(chunks, Ordering::AcqRel);
        QuotaShare { volume: Arc::clone(&self.0.volume), chunks }
    }
}

impl Drop for HeldQuota {
    fn drop(&mut self) {
        self.0.volume.quota_held.fetch_sub(self.0.chunks, Ordering::AcqRel);
    }
}

/// What is known of a volume of a running engine; cheap to clone. Requests need an
/// [`OpenVolume`](crate::OpenVolume), and a handle that is kept keeps nobody from anything.
#[derive(Clone, Debug)]
pub struct VolumeHandle(pub(crate) Arc<VolumeShared>);

impl VolumeHandle {
    /// Its stable number.
    #[must_use]
    pub fn id(&self) -> VolumeId {
        self.0.id
    }

    /// Its name now.
    #[must_use]
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// Its logical size now.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    /// Whether writes are refused.
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.0.read_only
    }

    /// What may be mapped of it at most, if it has a quota.
    #[must_use]
    pub fn quota_bytes(&self) -> Option<u64> {
        self.0.quota_bytes()
    }

    /// Whether writes that wait for its quota fill their queue: a client then takes no memory for
    /// further ones. It may last as long as a deletion.
    #[must_use]
    pub fn holds_writers_up(&self) -> bool {
        self.0.holds_writers_up()
    }

    /// Whether it is a snapshot: `volume@snapshot`.
    #[must_use]
    pub fn is_snapshot(&self) -> bool {
        self.0.is_snapshot()
    }

    /// Size of its chunks.
    #[must_use]
    pub fn chunk_bytes(&self) -> u32 {
        self.0.chunk_bytes
    }

    /// The domain whose chunks it shares; none: the default one.
    #[must_use]
    pub fn domain(&self) -> Option<&str> {
        self.0.domain.as_ref().map(|domain| domain.name.as_str())
    }

    /// Who has it open now.
    #[must_use]
    pub fn opens(&self) -> Vec<OpenInfo> {
        self.0.opens.list()
    }

    /// What its bytes are: a door for disks serves no volume of another kind than
    /// [`VolumeKind::Block`].
    #[must_use]
    pub fn kind(&self) -> VolumeKind {
        self.0.kind
    }

    /// Whether it has been deleted.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.is_gone()
    }
}
