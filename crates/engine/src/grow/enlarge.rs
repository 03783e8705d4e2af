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

use disk::{AlignedBuf, ZoneGrowth};
use format::BLOCK_BYTES;
use format::detection::Detection;
use format::features::Features;
use format::superblock::{GEOMETRY_BLOCKS, Geometry};
use format::units::Zone;

use crate::control::{Asked, Grow, Verb};
use crate::core::table_room::dirty_pages_sure;
use crate::devices::Purpose;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::geometry::check_zones;
use crate::grow::enlarging::{After, Growth, Then, Wish};
use crate::grow::{GrowOptions, plan_growth};

/// A write and a sync for each of the geometry's blocks.
const STEPS: usize = 2 * GEOMETRY_BLOCKS.len();

impl Engine {
    pub(crate) fn accept_grow(&mut self, asked: Asked<Grow>) {
        self.enlarging.wishes.push_back(Wish::Growth(asked));
    }

    /// Moves the running growth on, or begins one.
    pub(crate) fn advance_enlarging(&mut self) -> bool {
        if self.enlarging.io_out {
            return false;
        }
        if let Some(error) = self.core.stopped.clone() {
            let any = self.enlarging.any();
            self.enlarging.fail(&error);
            return any;
        }
        let Some(growth) = self.enlarging.running.take() else { return self.begin_enlarging() };
        if growth.steps == STEPS {
            self.end_enlarging(growth);
            return true;
        }
        let block = GEOMETRY_BLOCKS[growth.steps / 2];
        if growth.steps.is_multiple_of(2) {
            let buf = AlignedBuf::padded(&growth.grown.encode());
            let offset_bytes = block * BLOCK_BYTES as u64;
            self.core.devices.write(Zone::Superblock, offset_bytes, buf.into(), Purpose::Geometry);
        } else {
            self.core.devices.sync(Zone::Superblock, Purpose::Geometry);
        }
        self.enlarging.io_out = true;
        self.enlarging.running = Some(Growth { steps: growth.steps + 1, ..growth });
        true
    }

    fn begin_enlarging(&mut self) -> bool {
        if self.enlarging.wishes.is_empty() || self.core.superblock.is_scrubbed {
            return false;
        }
        let Some(wish) = self.enlarging.wishes.pop_front() else { return false };
        let (after, grown) = match wish {
            Wish::Growth(Asked { verb, done }) => {
                (After::Grown(done), self.take_zones(&verb.options, verb.zones))
            }
            Wish::Removal(asked) => {
                let geometry = self.geometry_without(asked.verb.zone);
                (After::Removed(asked), Ok(geometry))
            }
            // Another one was faster.
            Wish::Geometry(then) if self.may_be_recorded(&then) => {
                self.go_on(then);
                return true;
            }
            Wish::Geometry(then) => {
                let geometry = self.geometry_with(&then);
                (After::Then(then), geometry)
            }
        };
        match grown {
            Ok(grown) => self.enlarging.running = Some(Growth { grown, after, steps: 0 }),
            Err(error) => after.fail(error),
        }
        true
    }

    fn may_be_recorded(&self, then: &Then) -> bool {
        match then {
            Then::Make(volume, _) => self.geometry_allows(volume),
            Then::LeaveAside(..) | Then::GoOn => self.core.geometry.detection.asides,
            Then::HaveCodec(..) => self.geometry_knows_codecs(),
            Then::Reserve(_) => self.geometry_knows_reservations(),
        }
    }

    fn go_on(&mut self, then: Then) {
        match then {
            // A request before it may have taken the room that it found.
            Then::Make(verb, done) => self.accept_verb(Verb::NewVolume(Asked { verb, done })),
            Then::LeaveAside(verb, done) => self.accept_dedup(verb, done),
            Then::HaveCodec(verb, done) => self.accept_codec(verb, done),
            Then::Reserve(asked) => self.accept_reservation(asked),
            // The group looks for the mark itself.
            Then::GoOn => {}
        }
    }

    /// The geometry with what is wanted, in the version that knows of it.
    fn geometry_with(&self, then: &Then) -> Result<Geometry, RequestError> {
        let wanted = match then {
            Then::Make(volume, _) => self.geometry_for(volume)?,
            Then::LeaveAside(..) | Then::GoOn => {
                let detection = Detection { asides: true, ..self.core.geometry.detection };
                Geometry { detection, ..self.core.geometry.clone() }
            }
            Then::HaveCodec(..) => self.geometry_with_feature(Features::VOLUME_CODECS),
            Then::Reserve(_) => self.geometry_with_feature(Features::VOLUME_RESERVATIONS),
        };
        let version = wanted.version.max(wanted.least_version());
        Ok(Geometry { version, ..wanted })
    }

    fn geometry_with_feature(&self, feature: u64) -> Geometry {
        let features = self.core.geometry.features.with_incompatible(feature);
        Geometry { features, ..self.core.geometry.clone() }
    }

    /// The geometry is durable in both its blocks.
    fn end_enlarging(&mut self, growth: Growth) {
        let Growth { grown, after, .. } = growth;
        // Its label is to have this geometry before much is stored that needs it.
        self.core.table_room.ask();
        match after {
            After::Then(then) => {
                self.core.geometry = grown;
                self.go_on(then);
            }
            After::Removed(asked) => {
                self.adopt_without(asked.verb.zone, grown);
                asked.done.reply(self.core.geometry.clone());
            }
            After::Grown(done) => {
                self.adopt(grown);
                done.reply(self.core.geometry.clone());
            }
        }
    }

    /// The grown geometry, if the zones are there for it.
    fn take_zones(
        &mut self,
        options: &GrowOptions,
        zones: ZoneGrowth,
    ) -> Result<Geometry, RequestError> {
        let cannot = |reason: String| RequestError::CannotGrow { reason };
        let grown =
            plan_growth(&self.core.geometry, options).map_err(|error| cannot(error.to_string()))?;
        self.core.devices.grow(zones).map_err(|error| cannot(error.to_string()))?;
        if let Err(error) = check_zones(&self.core.devices, &grown) {
            self.core.devices.release_data_zones(self.core.geometry.data.len());
            return Err(cannot(error.to_string()));
        }
        Ok(grown)
    }

    /// From now on all that the grown store has may be used.
    fn adopt(&mut self, grown: Geometry) {
        self.core.placement.space.grow(&grown);
        self.core.state.containers.grow(grown.containers_total());
        self.core.state.store.grow(grown.tables_blocks());
        self.core.table_room.dirty_pages_sure =
            dirty_pages_sure(grown.tables_bytes, self.lending.own_pages());
        self.core.geometry = grown;
        self.core.table_room.relieved();
    }
}
