//! What a volume is set to, and how it is set: all that is asked for, or nothing.

use engine::control::{SetDedup, SetQuota, SetReservation, SetVolumeCompression};
use engine::{Compression, Dedup, VolumeInfo};

use crate::control::Store;
use crate::error::CliError;
use crate::size::human_bytes;

/// One thing that a volume is set to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Setting {
    /// What it may map at most; none: any amount.
    QuotaBytes(Option<u64>),
    /// Of how much of it the room is its own; none: no room is.
    ReservationBytes(Option<u64>),
    /// Whether duplicates are looked for in it.
    Dedup(Dedup),
    /// What its new data is compressed with; none: what the store's is.
    Compression(Option<Compression>),
}

impl Setting {
    /// Whether a volume has it that nobody has set.
    pub(in crate::commands) fn is_default(self) -> bool {
        matches!(
            self,
            Self::QuotaBytes(None)
                | Self::ReservationBytes(None)
                | Self::Dedup(Dedup::On)
                | Self::Compression(None)
        )
    }

    /// What another volume has to be set to, to hold what `volume` does, where that is not what
    /// every volume is. A reservation is the volume's own.
    pub(in crate::commands) fn all_of(volume: &VolumeInfo) -> Vec<Self> {
        let all = [
            Self::QuotaBytes(volume.quota_bytes),
            Self::Dedup(volume.dedup),
            Self::Compression(volume.compression),
        ];
        all.into_iter().filter(|setting| !setting.is_default()).collect()
    }

    fn ask(self, store: &Store, name: &str) -> Result<VolumeInfo, CliError> {
        let name = name.to_owned();
        match self {
            Self::QuotaBytes(quota_bytes) => store.ask(SetQuota { name, quota_bytes }),
            Self::ReservationBytes(reservation_bytes) => {
                store.ask(SetReservation { name, reservation_bytes })
            }
            Self::Dedup(dedup) => store.ask(SetDedup { name, dedup }),
            Self::Compression(compression) => store.ask(SetVolumeCompression { name, compression }),
        }
    }

    /// The same thing as `volume` has it.
    fn as_in(self, volume: &VolumeInfo) -> Self {
        match self {
            Self::QuotaBytes(_) => Self::QuotaBytes(volume.quota_bytes),
            Self::ReservationBytes(_) => Self::ReservationBytes(volume.reservation_bytes),
            Self::Dedup(_) => Self::Dedup(volume.dedup),
            Self::Compression(_) => Self::Compression(volume.compression),
        }
    }

    /// What is so from now on, behind the name of the volume.
    pub(super) fn sentence(self, volume: &VolumeInfo) -> String {
        let held = human_bytes(volume.mapped_bytes);
        match self {
            Self::QuotaBytes(None) => format!("has no quota now and maps {held}"),
            Self::QuotaBytes(Some(bytes)) => {
                format!("may map {} now and maps {held}", human_bytes(bytes))
            }
            Self::ReservationBytes(None) => "has no room of its own now".to_owned(),
            Self::ReservationBytes(Some(bytes)) => {
                format!("has {} reserved now", human_bytes(bytes))
            }
            Self::Dedup(Dedup::On) => {
                "looks for duplicates of what is written from now on".to_owned()
            }
            Self::Dedup(Dedup::Off) => {
                "looks for no duplicates of what is written from now on".to_owned()
            }
            Self::Dedup(Dedup::Auto) => {
                "looks for duplicates from now on while there are some".to_owned()
            }
            Self::Compression(None) => {
                "compresses what is written from now on as the store does".to_owned()
            }
            Self::Compression(Some(with)) => {
                format!("compresses what is written from now on with {with}")
            }
        }
    }
}

/// Gives a volume that has just been made its settings; returns it as it is then.
///
/// # Errors
/// The first setting that fails; those before it stay, for the volume is to be deleted.
pub(in crate::commands) fn set_up(
    store: &Store,
    volume: VolumeInfo,
    settings: &[Setting],
) -> Result<VolumeInfo, CliError> {
    let name = volume.name.clone();
    settings.iter().try_fold(volume, |_, setting| setting.ask(store, &name))
}

/// Changes the settings of a volume, all or none; returns it as it is then.
///
/// # Errors
/// The first setting that fails; those before it are as in `before` again.
pub(super) fn change(
    store: &Store,
    before: VolumeInfo,
    settings: &[Setting],
) -> Result<VolumeInfo, CliError> {
    let mut volume = before.clone();
    for (at, setting) in settings.iter().enumerate() {
        match setting.ask(store, &before.name) {
            Ok(changed) => volume = changed,
            Err(error) => {
                for done in settings[..at].iter().rev() {
                    // The first error is the one to tell.
                    let _ = done.as_in(&before).ask(store, &before.name);
                }
                return Err(error);
            }
        }
    }
    Ok(volume)
}

/// A quota is never below a reservation: one that becomes less is set first.
pub(super) fn order(settings: &mut [Setting], before: &VolumeInfo) {
    settings.sort_by_key(|setting| match setting {
        Setting::ReservationBytes(bytes) if *bytes <= before.reservation_bytes => 0,
        _ => 1,
    });
}
