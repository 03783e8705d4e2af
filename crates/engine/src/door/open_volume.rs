//! The guard of one opening ([`crate::door::opens`]): the right to send requests to a volume.

use std::ops::Deref;
use std::sync::Arc;

use crate::door::opens::{Ending, OpenInfo, Opener};
use crate::door::volume::{VolumeHandle, VolumeShared};

/// An open volume: the right to send requests to it. Dropping it ends the opening.
///
/// It reads as the [`VolumeHandle`] of the volume; several threads share one behind an [`Arc`].
/// A door that drops it while requests are under way still gets their answers.
///
/// ```no_run
/// # fn run(client: &engine::Client) -> Result<(), engine::RequestError> {
/// let opener = engine::Opener::new("backup of host a", 1_764_341_103);
/// let volume = client.open_volume("disk", opener)?;
/// client.write_at(&volume, 0, &[1; 4096])?;
/// // `engine::Client::roll_back` of a snapshot of it is refused until here.
/// drop(volume);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OpenVolume {
    handle: VolumeHandle,
    id: u64,
}

impl OpenVolume {
    /// Lists `opener` with the volume, under a number of its own.
    pub(crate) fn new(volume: &Arc<VolumeShared>, id: u64, opener: Opener) -> Self {
        volume.opens.add(OpenInfo { id, opener });
        Self { handle: VolumeHandle(Arc::clone(volume)), id }
    }

    /// What is known of the volume, for a door that keeps that longer than the volume open.
    #[must_use]
    pub fn handle(&self) -> VolumeHandle {
        self.handle.clone()
    }

    /// Says what ends this opening when somebody else asks for that
    /// ([`crate::control::CloseOpens`]): it sees to it that the guard is dropped soon. Called on
    /// the core's thread, so it must not block, and must not hold the guard itself.
    pub fn on_close(&self, close: impl Fn(Ending) + Send + Sync + 'static) {
        self.handle.0.opens.set_closer(self.id, Arc::new(close));
    }

    /// The number of this opening ([`OpenInfo::id`]).
    #[must_use]
    pub fn open_id(&self) -> u64 {
        self.id
    }
}

impl Deref for OpenVolume {
    type Target = VolumeHandle;

    fn deref(&self) -> &VolumeHandle {
        &self.handle
    }
}

impl Drop for OpenVolume {
    fn drop(&mut self) {
        self.handle.0.opens.remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use format::units::VolumeId;

    use super::OpenVolume;
    use crate::door::opens::{OpenInfo, Opener};
    use crate::door::volume::VolumeShared;

    #[test]
    fn an_opening_is_listed_until_its_guard_is_dropped_and_a_kept_handle_is_not() {
        let volume =
            VolumeShared::new(VolumeId(1), "v", 512, false, 4096, None, Default::default());
        let first = OpenVolume::new(&volume, 1, Opener::new("a", 5));
        let second = OpenVolume::new(&volume, 2, Opener::new("a", 5));
        let kept = first.handle();
        assert_eq!(kept.opens().iter().map(|open| open.id).collect::<Vec<_>>(), [1, 2]);
        drop(first);
        assert_eq!(kept.opens(), [OpenInfo { id: 2, opener: Opener::new("a", 5) }]);
        drop(second);
        assert_eq!(kept.opens(), []);
    }
}
