//! The volumes of the engine as exports. Nothing is remembered: a volume that is made or deleted
//! while the server runs is there or gone for the next client that asks.
//!
//! Snapshots are served to a client that names one, and not listed: who takes what is listed for
//! what there is to attach (and a client that names nothing gets the only volume) means volumes,
//! and there may be thousands of snapshots.
//!
//! Only disks are exports. A volume of another kind has an owner that keeps its bytes in order, and
//! for clients of this door it is not there.

use std::time::{SystemTime, UNIX_EPOCH};

use engine::control::ListVolumes;
use engine::{Client, OpenVolume, Opener, RequestError, VolumeKind};

use crate::handshake::{Export, Exports, NotServed};

/// Volumes and snapshots that are described in one go: everybody else waits for it.
const LISTED_AT_ONCE: usize = 1000;

impl Export for OpenVolume {
    fn name(&self) -> String {
        (**self).name()
    }

    fn size_bytes(&self) -> u64 {
        (**self).size_bytes()
    }

    fn read_only(&self) -> bool {
        (**self).read_only()
    }

    fn preferred_bytes(&self) -> u32 {
        (**self).chunk_bytes()
    }
}

/// What one client may choose from.
pub(crate) struct Offered<'a> {
    pub(crate) client: &'a Client,
    /// The client, as operators are told of it.
    pub(crate) who: &'a str,
    /// Takes a place among the connections that are served.
    pub(crate) admit: &'a dyn Fn() -> Result<(), NotServed>,
}

impl Offered<'_> {
    fn open_named(&self, name: &str) -> Result<OpenVolume, NotServed> {
        let opener = Opener::new(self.who, unix_seconds());
        let volume = self.client.open_volume(name, opener).map_err(|error| not_served(&error))?;
        match volume.kind() {
            VolumeKind::Block => Ok(volume),
            VolumeKind::Bucket => Err(NotServed::Unknown),
        }
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Exports for Offered<'_> {
    type Export = OpenVolume;

    fn list(&self) -> Result<Vec<String>, NotServed> {
        let mut names = Vec::new();
        let mut after = None;
        loop {
            let some = self.client.ask(ListVolumes { after, most: LISTED_AT_ONCE });
            let some = some.map_err(|error| not_served(&error))?;
            after = some.last().map(|last| last.name.clone());
            let is_last = some.len() < LISTED_AT_ONCE;
            let volumes = some
                .into_iter()
                .filter(|volume| volume.taken_unix_s.is_none() && volume.kind == VolumeKind::Block);
            names.extend(volumes.map(|volume| volume.name));
            if is_last {
                return Ok(names);
            }
        }
    }

    fn admit(&self) -> Result<(), NotServed> {
        (self.admit)()
    }

    fn open(&self, name: &str) -> Result<OpenVolume, NotServed> {
        if !name.is_empty() {
            return self.open_named(name);
        }
        let mut names = self.list()?;
        match (names.pop(), names.is_empty()) {
            (Some(only), true) => self.open_named(&only),
            (Some(_), false) => Err(NotServed::Several),
            (None, _) => Err(NotServed::Unknown),
        }
    }

    fn snapshots(&self, volume: &str) -> Vec<String> {
        let prefix = format!("{volume}@");
        let listing = ListVolumes { after: Some(prefix.clone()), most: LISTED_AT_ONCE };
        let some = self.client.ask(listing).unwrap_or_default().into_iter();
        let of_it = some.map_while(|one| one.name.strip_prefix(&prefix).map(str::to_owned));
        of_it.collect()
    }
}

fn not_served(error: &RequestError) -> NotServed {
    match error {
        RequestError::NoSuchVolume { .. } | RequestError::BadName { .. } => NotServed::Unknown,
        _ => NotServed::Closing,
    }
}
