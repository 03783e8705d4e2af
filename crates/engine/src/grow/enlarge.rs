//! Growing while the store runs: as `grow.rs` does it with a store that is closed, in steps of the
//! core.
//!
//! ```text
//! plan -> longer and further zones taken -> block 0 -> sync -> block 3 -> sync -> adopted
//! ```
//!
//! Nothing is stored beyond the old end, and no page is given a block there, before both blocks of
//! the geometry are durable: so at every moment the geometry that an opening goes by, or writes
//! over the other, covers all that the roots and the journal name. Adopting is one step of the
//! core: the containers, the tables' blocks and the bounds that follow from them change together.
//! Writes that wait for space wait for a growth as well.
//!
//! The secret of a store's first keyed domain comes into the geometry in the same steps, and before
//! the volume that it is for is recorded (`new_volumes.rs`); so does the mark that chunks may be
//! aside of the Hash-PBN table, before a volume has no deduplication or a write is unindexed
//! (`dedup.rs`), the feature of a volume that is no block volume, and those of a volume with a
//! codec or room of its own (`codecs.rs`, `reservations.rs`).
//!
//! A scrub judges the superblock by the geometry in memory, so its step there and the writing of
//! another geometry keep out of each other's way.

use containers::ZoneUse;
use disk::{AlignedBuf, ZoneGrowth};
use format::BLOCK_BYTES;
use format::superblock::{GEOMETRY_BLOCKS, Geometry};
use format::units::Zone;

use crate::control::Asked;
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::core::table_room::dirty_pages_sure;
use crate::devices::Purpose;
use crate::door::error::RequestError;
use crate::geometry::check_zones;
use crate::grow::enlarging::{After, Enlarging, Growth, Wish};
use crate::grow::wanted_geometry::{geometry_with, geometry_without, may_be_recorded};
use crate::grow::{GrowOptions, plan_growth};
use crate::part::Part;

/// A write and a sync for each of the geometry's blocks.
const STEPS: usize = 2 * GEOMETRY_BLOCKS.len();

impl Enlarging {
    /// Moves the running growth on, or begins one.
    pub(crate) fn advance(&mut self, core: &mut Core, cache_pages: usize) -> bool {
        if self.io_out {
            return false;
        }
        if let Some(error) = core.stopped.clone() {
            let any = core.superblock.will_grow();
            core.superblock.fail_wishes(&error);
            core.superblock.grows_for = None;
            self.fail(&error);
            return any;
        }
        let Some(growth) = self.running.take() else { return self.begin(core) };
        if growth.steps == STEPS {
            core.superblock.grows_for = None;
            self.end(core, growth, cache_pages);
            return true;
        }
        let block = GEOMETRY_BLOCKS[growth.steps / 2];
        if growth.steps.is_multiple_of(2) {
            let buf = AlignedBuf::padded(&growth.grown.encode());
            let offset_bytes = block * BLOCK_BYTES as u64;
            core.devices.write(Zone::Superblock, offset_bytes, buf.into(), Purpose::Geometry);
        } else {
            core.devices.sync(Zone::Superblock, Purpose::Geometry);
        }
        self.io_out = true;
        self.running = Some(Growth { steps: growth.steps + 1, ..growth });
        true
    }

    fn begin(&mut self, core: &mut Core) -> bool {
        if core.superblock.is_scrubbed {
            return false;
        }
        let Some(wish) = core.superblock.wishes.pop_front() else { return false };
        let (after, grown) = match wish {
            Wish::Growth(Asked { verb, done }) => {
                (After::Grown(done), take_zones(core, &verb.options, verb.zones))
            }
            Wish::Removal(asked) => {
                check_zone_is_empty(core, asked.verb.zone);
                let geometry = geometry_without(&core.geometry, asked.verb.zone);
                (After::Removed(asked), Ok(geometry))
            }
            // Another one was faster.
            Wish::Geometry(then) if may_be_recorded(&core.geometry, &then) => {
                self.resumed = Some(then);
                return true;
            }
            Wish::Geometry(then) => {
                let geometry = geometry_with(&core.geometry, &then, self.offered_secret);
                (After::Then(then), geometry)
            }
        };
        match grown {
            Ok(grown) => {
                core.superblock.grows_for = Some(after.purpose());
                self.running = Some(Growth { grown, after, steps: 0 });
            }
            Err(error) => after.fail(error),
        }
        true
    }

    /// The geometry is durable in both its blocks.
    fn end(&mut self, core: &mut Core, growth: Growth, cache_pages: usize) {
        let Growth { grown, after, .. } = growth;
        // Its label is to have this geometry before much is stored that needs it.
        core.table_room.ask();
        match after {
            After::Then(then) => {
                core.geometry = grown;
                self.resumed = Some(then);
            }
            After::Removed(asked) => {
                adopt_without(core, asked.verb.zone, grown);
                asked.done.reply(core.geometry.clone());
            }
            After::Grown(done) => {
                adopt(core, grown, cache_pages);
                done.reply(core.geometry.clone());
            }
        }
    }

    /// A write or sync of the geometry has ended.
    pub(crate) fn io_ended(&mut self, core: &mut Core) {
        if !std::mem::take(&mut self.io_out) {
            core.violated(Invariant::OnePending);
        }
    }
}

impl Part for Enlarging {
    /// Fails the growth that is being written; the core has the wishes behind it.
    fn fail(&mut self, error: &RequestError) {
        if let Some(growth) = self.running.take() {
            growth.after.fail(error.clone());
        }
        if let Some(then) = self.resumed.take() {
            then.fail(error.clone());
        }
    }

    fn is_idle(&self, core: &Core) -> bool {
        self.running.is_none() && core.superblock.wishes.is_empty()
    }

    fn check(&self, core: &Core) {
        let purpose = self.running.as_ref().map(|growth| growth.after.purpose());
        assert_eq!(purpose, core.superblock.grows_for, "GrowthIsPublished");
        let writers = [core.superblock.is_scrubbed, self.running.is_some()];
        assert!(writers != [true; 2], "SuperblockHasOneWriter");
    }
}

/// The grown geometry, if the zones are there for it.
fn take_zones(
    core: &mut Core,
    options: &GrowOptions,
    zones: ZoneGrowth,
) -> Result<Geometry, RequestError> {
    let cannot = |reason: String| RequestError::CannotGrow { reason };
    let grown = plan_growth(&core.geometry, options).map_err(|error| cannot(error.to_string()))?;
    core.devices.grow(zones).map_err(|error| cannot(error.to_string()))?;
    if let Err(error) = check_zones(&core.devices, &grown) {
        core.devices.release_data_zones(core.geometry.data.len());
        return Err(cannot(error.to_string()));
    }
    Ok(grown)
}

/// From now on all that the grown store has may be used. `cache_pages` is what the cache of the
/// tables has of its own.
fn adopt(core: &mut Core, grown: Geometry, cache_pages: usize) {
    if !keeps_numbers(&core.geometry, &grown) {
        return core.violated(Invariant::ContainersKeepNumbers);
    }
    core.placement.space.grow(&grown);
    core.state.containers.grow(grown.containers_total());
    core.state.store.grow(grown.tables_blocks());
    core.table_room.dirty_pages_sure = dirty_pages_sure(grown.tables_bytes, cache_pages);
    core.geometry = grown;
    core.table_room.relieved();
}

/// Both blocks of the geometry say that the zone is gone.
fn adopt_without(core: &mut Core, zone: u16, geometry: Geometry) {
    check_zone_is_empty(core, zone);
    core.placement.space.retire_zone(zone, &geometry);
    core.placement.leaving = None;
    core.geometry = geometry;
}

fn check_zone_is_empty(core: &mut Core, zone: u16) {
    let ZoneUse { in_use, quarantined, .. } = core.placement.space.zone_use(zone);
    if in_use + quarantined > 0 {
        core.violated(Invariant::ZoneEmptyWhenGone);
    }
}

/// Whether each container of the store has the same place in the one that has grown.
fn keeps_numbers(geometry: &Geometry, grown: &Geometry) -> bool {
    let last = geometry.data.len() - 1;
    grown.data.len() > last
        && grown.data[..last] == geometry.data[..last]
        && grown.data[last] >= geometry.data[last]
}

#[cfg(test)]
mod tests {
    use format::superblock::Geometry;

    use super::{adopt, check_zone_is_empty};
    use crate::core::Core;
    use crate::devices::Purpose;
    use crate::door::error::RequestError;
    use crate::door::opens::Opener;
    use crate::grow::enlarging::{Enlarging, GrowsFor, Then, Wish};
    use crate::part::Part;
    use crate::small_store::{MIB, beside, ended, store};

    /// The mark for chunks that are aside is wished for.
    fn wished(core: &mut Core) -> Enlarging {
        core.superblock.wishes.push_back(Wish::Geometry(Then::GoOn));
        Enlarging::default()
    }

    #[test]
    fn what_waits_for_a_geometry_goes_on_when_both_blocks_say_so() {
        let (mut engine, _client) = store(Default::default());
        let core = &mut engine.core;
        let mut enlarging = wished(core);
        let mut ios = 0;
        while enlarging.resumed.is_none() {
            assert!(!core.geometry.detection.asides && !enlarging.is_idle(core));
            assert!(core.superblock.will_grow_for(GrowsFor::Asides));
            enlarging.advance(core, 0);
            enlarging.check(core);
            for io in ended(core) {
                assert!(matches!(io.purpose, Purpose::Geometry));
                ios += 1;
                enlarging.io_ended(core);
            }
        }
        assert!(core.geometry.detection.asides && enlarging.is_idle(core));
        assert_eq!(ios, 4, "a write and a sync for each block");
    }

    #[test]
    fn no_geometry_is_written_while_a_scrub_judges_it_or_once_the_writing_has_stopped() {
        let (mut engine, _client) = store(Default::default());
        let core = &mut engine.core;
        let mut enlarging = wished(core);
        core.superblock.is_scrubbed = true;
        assert!(!enlarging.advance(core, 0) && enlarging.running.is_none());
        core.superblock.is_scrubbed = false;
        assert!(enlarging.advance(core, 0) && enlarging.running.is_some());
        core.stop_writing(RequestError::WorkerLost);
        assert!(enlarging.advance(core, 0) && enlarging.is_idle(core));
        enlarging.check(core);
    }

    #[test]
    #[should_panic(expected = "OnePending")]
    fn no_write_of_the_geometry_ends_that_was_not_begun() {
        let (mut engine, _client) = store(Default::default());
        Enlarging::default().io_ended(&mut engine.core);
    }

    #[test]
    #[should_panic(expected = "GrowthIsPublished")]
    fn the_core_knows_of_a_geometry_that_is_written() {
        let (mut engine, _client) = store(Default::default());
        engine.core.superblock.grows_for = Some(GrowsFor::Room);
        Enlarging::default().check(&engine.core);
    }

    #[test]
    #[should_panic(expected = "SuperblockHasOneWriter")]
    fn a_scrub_does_not_judge_a_geometry_that_is_written() {
        let (mut engine, _client) = store(Default::default());
        let core = &mut engine.core;
        let mut enlarging = wished(core);
        enlarging.advance(core, 0);
        core.superblock.is_scrubbed = true;
        enlarging.check(core);
    }

    #[test]
    #[should_panic(expected = "ContainersKeepNumbers")]
    fn no_zone_becomes_shorter() {
        let (mut engine, _client) = store(Default::default());
        let core = &mut engine.core;
        let data = vec![core.geometry.data[0] - 1, 100];
        let shorter = Geometry { data, ..core.geometry.clone() };
        adopt(core, shorter, 0);
    }

    #[test]
    #[should_panic(expected = "ZoneEmptyWhenGone")]
    fn no_zone_goes_that_something_is_in() {
        let (mut engine, client) = store(Default::default());
        beside(&mut engine, &client, |client| {
            client.create_volume("v", MIB, false).unwrap();
            let volume = client.open_volume("v", Opener::new("a test", 0)).unwrap();
            client.write_at(&volume, 0, &[7; 4096]).unwrap();
            client.flush_blocking().unwrap();
        });
        check_zone_is_empty(&mut engine.core, 0);
    }
}
