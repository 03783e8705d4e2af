//! Which file of a store's directory is which zone.
//!
//! ```text
//! STORE/superblock   64 KiB, always a file of its own: it carries the lock
//! STORE/journal      each a file, or a symlink to a block device or to a file elsewhere
//! STORE/tables
//! STORE/data         the only data zone; if there are several: data.0, data.1, ...
//! ```
//!
//! A lone data zone is `data.0`, too, where a growth renamed it and then did not come to its end.

use std::fmt;
use std::path::{Path, PathBuf};

use format::units::Zone;

/// Size of the superblock's zone: 16 blocks.
pub const SUPERBLOCK_BYTES: u64 = 64 << 10;

/// A zone as people call it: the name of its file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ZoneName(pub Zone);

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Zone::Superblock => f.write_str("superblock"),
            Zone::Journal => f.write_str("journal"),
            Zone::Tables => f.write_str("tables"),
            Zone::Data(number) => write!(f, "data.{number}"),
        }
    }
}

impl ZoneName {
    /// The zone whose file is called so in some store.
    #[must_use]
    pub fn of_file(name: &str) -> Option<Self> {
        Some(Self(match name {
            "superblock" => Zone::Superblock,
            "journal" => Zone::Journal,
            "tables" => Zone::Tables,
            "data" => Zone::Data(0),
            _ => Zone::Data(name.strip_prefix("data.")?.parse().ok()?),
        }))
    }
}

/// Path of the file that [`ZoneName`] calls `zone_name`, in the store at `dir`: a lone data zone is
/// called as among several, whatever its file is called.
#[must_use]
pub fn zone_file(dir: &Path, zone_name: &str) -> PathBuf {
    let first = Zone::Data(0);
    match zone_name == ZoneName(first).to_string() {
        true => zone_path(dir, first, 1),
        false => dir.join(zone_name),
    }
}

/// Path of a zone in a store with this many data zones.
pub(crate) fn zone_path(dir: &Path, zone: Zone, data_zones: usize) -> PathBuf {
    if zone == Zone::Data(0) && data_zones == 1 && !is_numbered(dir) {
        return dir.join("data");
    }
    dir.join(ZoneName(zone).to_string())
}

/// Whether the first data zone has the name that it has among several.
fn is_numbered(dir: &Path) -> bool {
    let first = zone_path(dir, Zone::Data(0), 2);
    !is_there(&dir.join("data")) && is_there(&first)
}

/// A dangling symlink is there: opening it says what is missing.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The zones of a store as its directory has them, superblock first.
///
/// Of numbered data files all up to the first gap are taken: how many there should be is written in
/// the superblock, and its reader compares.
pub(crate) fn zones_present(dir: &Path) -> Vec<(Zone, PathBuf)> {
    let fixed = [Zone::Superblock, Zone::Journal, Zone::Tables, Zone::Data(0)];
    let mut zones: Vec<_> = fixed.map(|zone| (zone, zone_path(dir, zone, 1))).into();
    if is_numbered(dir) {
        let further = (1..u16::MAX).map(Zone::Data).map(|zone| (zone, zone_path(dir, zone, 2)));
        zones.extend(further.take_while(|(_, path)| is_there(path)));
    }
    zones
}

#[cfg(test)]
mod tests {
    use super::{Zone, ZoneName};

    #[test]
    fn a_zone_is_known_by_the_name_of_its_file() {
        let fixed = [Zone::Superblock, Zone::Journal, Zone::Tables];
        for zone in fixed.into_iter().chain([0, 1, 63].map(Zone::Data)) {
            let name = ZoneName(zone);
            assert_eq!(ZoneName::of_file(&name.to_string()), Some(name));
        }
        assert_eq!(ZoneName::of_file("data"), Some(ZoneName(Zone::Data(0))));
        for other in ["", "data.", "data.x", "data1", "scrub.json"] {
            assert_eq!(ZoneName::of_file(other), None, "{other}");
        }
    }
}
