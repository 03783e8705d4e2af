//! Stores that grow while they run: the room that their disks have for it, and the request.
//!
//! A disk of zones as long as the store's would refuse every growth, so that of a script in which
//! one is asked for has more room behind each, and further zones. All others stay as they are.

use disk::ZoneGrowth;
use engine::{GrowOptions, Reply, Zone, control};
use format::superblock::Geometry;
use format::units::CONTAINER_BYTES;

use crate::failure::Broken;
use crate::session::Session;
use crate::session::waiting::Waiting;
use crate::simulation::opening::strange;

/// What a store grows by, and how often the disk has room for it in each zone and for zones.
const GROWTH_CONTAINERS: u64 = 2;
const GROWTHS: u64 = 3;
const TABLES_GROWTH_BYTES: u64 = 1 << 20;

/// The zones of a store, with room for it to grow.
pub(crate) fn zones_to_grow_into(geometry: &Geometry) -> Vec<(Zone, u64)> {
    let growth_bytes = GROWTHS * GROWTH_CONTAINERS * u64::from(CONTAINER_BYTES);
    let longer = geometry.zones().map(|(zone, bytes)| match zone {
        Zone::Data(_) => (zone, bytes + growth_bytes),
        Zone::Tables => (zone, bytes + TABLES_GROWTH_BYTES),
        Zone::Superblock | Zone::Journal => (zone, bytes),
    });
    let further = (geometry.data.len()..).take(GROWTHS as usize);
    longer.chain(further.map(|zone| (Zone::Data(zone as u16), growth_bytes))).collect()
}

impl Session<'_> {
    /// Asks for more room, which the disk has for a few times.
    pub(crate) fn grow(&mut self, further: bool) -> Result<(), Broken> {
        let done = self.done(Waiting::Plain, None);
        let tag = done.tag;
        self.opening.client.administer(control::GetGeometry {}, done);
        let geometry = match self.wait_for(tag)?.map_err(Broken::Request)? {
            Reply::Geometry(geometry) => geometry,
            other => return Err(strange("a geometry", &other)),
        };
        let step_bytes = GROWTH_CONTAINERS * u64::from(geometry.container_bytes);
        let last = geometry.zones().last().map_or(0, |(_, bytes)| bytes);
        let options = GrowOptions {
            last_zone_bytes: (!further).then_some(last + step_bytes),
            added_bytes: if further { vec![step_bytes] } else { Vec::new() },
            tables_bytes_max: Some(self.shape.tables_bytes + TABLES_GROWTH_BYTES),
        };
        let asked = geometry.containers_total() + GROWTH_CONTAINERS;
        let done = self.done(Waiting::Growth(asked), None);
        let zones = ZoneGrowth::default();
        self.opening.client.administer(control::Grow { options, zones }, done);
        Ok(())
    }
}
