//! Growing a store whose engine does not run: more containers, and tables to match.
//!
//! Containers are numbered through the data zones in their order, so a store grows at its end only:
//! the last data zone becomes longer, or further ones follow it. No number changes its meaning,
//! and the tables, in which a container that was never named is free, need no change at all.
//!
//! The files are made larger first. Then the geometry is written, to one of its blocks after the
//! other, each made durable before the next: it fits one sector, so at any moment a block holds
//! the old geometry or the new one. A power cut in between leaves two that differ. An opening then
//! goes by the first, which is the newer, and writes it over the second, also if it cannot read
//! that, before it does anything else (`geometry.rs`), so that the loss of the first can never
//! bring the old one back.

pub(crate) mod enlarge;
pub(crate) mod enlarging;
pub(crate) mod wanted_geometry;

use disk::{Disk, IoError};
use format::BLOCK_BYTES;
use format::superblock::{GEOMETRY_BLOCKS, Geometry};
use thiserror::Error;

use crate::create::{PlanError, can_be, check_data, containers_in, tables_bytes_for};
use crate::devices::Devices;
use crate::geometry::{check_zones, read_geometry, refuse_to_write, write_geometry};
use crate::open::open_error::OpenError;

/// What a store is to get.
#[derive(Clone, Debug, Default)]
pub struct GrowOptions {
    /// Length of the last data zone, if it is to be longer.
    pub last_zone_bytes: Option<u64>,
    /// Lengths of the data zones that follow it.
    pub added_bytes: Vec<u64>,
    /// The longest that zone tables can be, where it cannot be made longer at will; what is left of
    /// a block is not used.
    pub tables_bytes_max: Option<u64>,
}

/// The sizes of everything in a store of `geometry` that has grown. The tables keep an eighth of
/// the capacity, as far as they can.
///
/// # Errors
/// [`PlanError`] says which size cannot be; [`PlanError::NotLarger`] when nothing would grow.
pub fn plan_growth(geometry: &Geometry, options: &GrowOptions) -> Result<Geometry, PlanError> {
    let mut grown = geometry.clone();
    let is_last_there = geometry.has_data_zone((geometry.data.len() - 1) as u16);
    if let (Some(bytes), Some(last), true) =
        (options.last_zone_bytes, grown.data.last_mut(), is_last_there)
    {
        *last = containers_in(bytes)?.max(*last);
    }
    for &bytes in &options.added_bytes {
        grown.data.push(containers_in(bytes)?);
    }
    let numbered_bytes = check_data(&grown.data)?;
    if grown.containers_total() <= geometry.containers_total() || grown.data.contains(&0) {
        if !is_last_there {
            return Err(PlanError::LastZoneGone);
        }
        let (capacity_bytes, present_bytes) = (grown.capacity_bytes(), geometry.capacity_bytes());
        return Err(PlanError::NotLarger { capacity_bytes, present_bytes });
    }
    let block_bytes = BLOCK_BYTES as u64;
    let most_blocks = options.tables_bytes_max.unwrap_or(u64::MAX) / block_bytes;
    let tables_bytes = tables_bytes_for(numbered_bytes).min(most_blocks * block_bytes);
    grown.tables_bytes = grown.tables_bytes.max(tables_bytes);
    can_be(grown)
}

/// The device failed in the middle of a growth.
#[derive(Debug, Error)]
#[error(
    "the new sizes could not be written: {0}; once the device is mended the store opens as it was, \
     or larger"
)]
pub struct GrowError(#[from] IoError);

/// A store whose files are open and whose engine does not run.
pub struct Growing {
    devices: Devices,
    geometry: Geometry,
}

impl Growing {
    /// Reads what the store is made of.
    ///
    /// # Errors
    /// [`OpenError`] as when it is opened.
    pub fn begin(disk: Box<dyn Disk>) -> Result<Self, OpenError> {
        let mut devices = Devices::new(disk);
        let geometry = read_geometry(&mut devices)?;
        refuse_to_write(&geometry)?;
        check_zones(&devices, &geometry)?;
        devices.release_data_zones(geometry.data.len());
        Ok(Self { devices, geometry })
    }

    /// What the store is made of.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Makes the store what [`plan_growth`] said. Its files must be so large, durably.
    ///
    /// # Errors
    /// [`GrowError`] when the device fails; the store is then the old one or the new one.
    pub fn finish(mut self, grown: &Geometry) -> Result<(), GrowError> {
        for block in GEOMETRY_BLOCKS {
            write_geometry(&mut self.devices, block, grown)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTAINER: u64 = 4 << 20;

    fn geometry() -> Geometry {
        Geometry {
            version: format::FORMAT_VERSION_COMMON,
            uuid: [1; 16],
            bucket_seed: [2; 16],
            chunk_bytes: 4096,
            container_bytes: CONTAINER as u32,
            journal_bytes: 16 << 20,
            tables_bytes: 64 << 20,
            data: vec![16, 8],
            detection: Default::default(),
            marked: true,
            features: Default::default(),
        }
    }

    #[test]
    fn a_store_grows_at_its_end_and_its_tables_with_it() {
        let longer =
            GrowOptions { last_zone_bytes: Some(1000 * CONTAINER + 7), ..Default::default() };
        let grown = plan_growth(&geometry(), &longer).unwrap();
        assert_eq!(grown.data, [16, 1000]);
        assert_eq!(grown.tables_bytes, 1016 * CONTAINER / 64 * 9);
        // A device may end inside a block.
        let fixed = GrowOptions { tables_bytes_max: Some((100 << 20) + 512), ..longer };
        assert_eq!(plan_growth(&geometry(), &fixed).unwrap().tables_bytes, 100 << 20);
        let further = GrowOptions { added_bytes: vec![3 * CONTAINER], ..Default::default() };
        let grown = plan_growth(&geometry(), &further).unwrap();
        assert_eq!((grown.data.as_slice(), grown.tables_bytes), ([16, 8, 3].as_slice(), 64 << 20));
    }

    #[test]
    fn what_does_not_grow_is_refused() {
        let present_bytes = 24 * CONTAINER;
        let same = PlanError::NotLarger { capacity_bytes: present_bytes, present_bytes };
        let nothing = GrowOptions::default();
        assert_eq!(plan_growth(&geometry(), &nothing), Err(same.clone()));
        let shorter = GrowOptions { last_zone_bytes: Some(CONTAINER), ..Default::default() };
        assert_eq!(plan_growth(&geometry(), &shorter), Err(same.clone()));
        let tiny = GrowOptions { added_bytes: vec![CONTAINER - 1], ..Default::default() };
        assert_eq!(plan_growth(&geometry(), &tiny), Err(same));
        let many = GrowOptions { added_bytes: vec![CONTAINER; 63], ..Default::default() };
        assert_eq!(plan_growth(&geometry(), &many), Err(PlanError::TooManyZones { zones: 65 }));
        let beyond_tables = GrowOptions {
            last_zone_bytes: Some(17 << 40),
            tables_bytes_max: Some(64 << 20),
            ..Default::default()
        };
        let refused = plan_growth(&geometry(), &beyond_tables);
        assert!(matches!(refused, Err(PlanError::TablesTooSmall { .. })), "{refused:?}");
        let huge = GrowOptions { last_zone_bytes: Some(u64::MAX), ..Default::default() };
        assert!(matches!(plan_growth(&geometry(), &huge), Err(PlanError::TooLarge { .. })));
    }
}
