//! Buckets in the simulator: one store with two of them and a block volume that competes for room,
//! life after life, and each write of it looked at aside.
//!
//! ```text
//! life.rs      operations by the seed, what goes wrong; reading.rs, versions.rs, rot.rs, terms.rs,
//!              mapped.rs
//! content.rs   their bytes
//! store.rs     an opened store: all that it holds             bucket.rs   what is asked of one:
//!              parts.rs on index and values, whole.rs as doors have it
//! history.rs   what it held, state after state: the oracle    recount.rs who names which PBN
//! aside.rs     a crash at one write, and one of the opening   step_volume.rs  the engine, stepped
//! ```
//!
//! What is found after a crash is one state of the history at or behind the durable one, for all
//! buckets, snapshots and volumes at once: the store has one order of writes.

pub(crate) mod aside;
pub(crate) mod bucket;
mod content;
pub(crate) mod failures;
pub(crate) mod history;
pub(crate) mod kinds;
mod life;
mod mapped;
pub(crate) mod parts;
mod reading;
pub(crate) mod recount;
mod rot;
mod run;
pub(crate) mod step_volume;
pub(crate) mod store;
mod terms;
#[cfg(test)]
mod tests;
mod versions;
pub(crate) mod whole;

use disk::Loss;
use engine::{Detection, control};

use crate::dice::{Dice, Digest, mixed};
use crate::failure::{Broken, Failure};
use crate::objects::history::{History, State};
use crate::objects::life::Life;
use crate::objects::run::{Outcome, Run, in_run};
use crate::objects::store::Store;
use crate::script::{End, Script, Shape};
use crate::simulation::aside::{check, check_crashed};
use crate::simulation::new_store;
use crate::simulation::tap::{Ear, Watch, leave};
use crate::simulation::trouble::is_of_writes;

pub use crate::objects::run::{ObjectPlan, ObjectSummary};

/// When a run begins, in milliseconds since 1970.
const START_MS: u64 = 1_700_000_000_000;

impl ObjectPlan {
    /// The usual run of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        Self { seed, steps: 40, lives: 3, one_in: 4 }
    }

    /// Runs it.
    ///
    /// # Errors
    /// The first [`Failure`].
    pub fn run(&self) -> Result<ObjectSummary, Failure> {
        let mut run = Run::new(*self).map_err(|broken| Failure {
            broken,
            life: 0,
            request: 0,
            aside: None,
        })?;
        match run.run_through() {
            Ok(()) => Ok(run.summary),
            Err((aside, broken)) => {
                Err(Failure { broken, life: run.life, request: run.step, aside })
            }
        }
    }

    /// The store: two of three are tight, some have few pages in memory.
    fn shape(&self) -> Shape {
        let tight = !self.seed.is_multiple_of(3);
        let few_pages = self.seed / 3 % 3 == 1;
        Shape {
            seed: self.seed,
            zones: 1,
            containers: if tight { 3 } else { 24 },
            tables_bytes: 16 << 20,
            journal_bytes: 4 << 20,
            cache_pages: if few_pages { 96 } else { 4096 },
            dirty_pages_max: if few_pages { 16 } else { 48 },
            young_max: 200,
            contents: 1000,
            tight,
            copies_above: if self.seed % 4 == 1 { 3 } else { 0 },
            detection: Detection::default(),
            domains: 0,
            varies: self.seed.is_multiple_of(2),
        }
    }
}

impl Run {
    fn new(plan: ObjectPlan) -> Result<Self, Broken> {
        let shape = plan.shape();
        let disk = new_store(&Script { shape: shape.clone(), lives: Vec::new() })?;
        Ok(Self {
            plan,
            shape,
            disk,
            history: History::of(State::default()),
            flushed: 0,
            closed: true,
            dice: Dice::new(mixed(plan.seed, 77)),
            digest: Digest::default(),
            summary: ObjectSummary::default(),
            life: 0,
            step: 0,
            now_ms: START_MS,
            snapshots: store::SNAPSHOTS,
        })
    }

    fn run_through(&mut self) -> Outcome<()> {
        for _ in 0..self.plan.lives {
            self.life += 1;
            self.step = 0;
            self.live()?;
        }
        // What the last life has left is looked at as well.
        let (store, _) = self.open(Watch::Nothing)?;
        store.check_buckets(true).map_err(in_run)?;
        self.summary.full = u64::from(self.summary.refused > 0);
        self.summary.digest = self.digest.value();
        Ok(())
    }

    /// Opens the store, compares it with what the last life left, and begins anew from there.
    fn open(&mut self, watch: Watch) -> Outcome<(Store, Ear)> {
        check_crashed(&self.disk).map_err(in_run)?;
        let ear = Ear::new(watch, mixed(self.plan.seed, self.life as u64), self.flushed);
        let store = Store::open(&self.disk, &self.shape, ear.clone(), self.now_ms);
        let store = store.map_err(in_run)?;
        let found = store.find().map_err(in_run)?;
        self.history.explain(self.flushed, &found, self.now_ms).map_err(in_run)?;
        for point in ear.take_points() {
            aside::look(&point, &self.history, &self.shape, self.now_ms, &mut self.summary.points)
                .map_err(|(aside, broken)| (Some(aside), broken))?;
        }
        self.history = History::of(found);
        ear.heard().flushed = 0;
        store.check_buckets(false).map_err(in_run)?;
        Ok((store, ear))
    }

    fn live(&mut self) -> Outcome<()> {
        let watch = match self.plan.one_in {
            0 => Watch::Nothing,
            1 => Watch::Every,
            of => Watch::OneIn(of),
        };
        let (store, ear) = self.open(watch)?;
        let mut life = Life::new(self, store);
        life.go_through()?;
        let (stopped, fails) = (life.stopped, life.fails());
        let (last, store) = (life.last.take(), life.store);
        self.now_ms = store.stepped.now_ms();
        let closes = !stopped && self.dice.once_in(8);
        let closed = match closes {
            true => self.close(&store, fails)?,
            false => false,
        };
        self.closed = closed;
        self.summary.writes += ear.heard().writes;
        self.digest.add(ear.heard().digest.value());
        self.flushed = if closed { self.history.newest() } else { ear.heard().flushed };
        if closed {
            self.disk = self.disk.left_by_power_loss(self.plan.seed, Loss::All);
            check(&self.disk).map_err(in_run)?;
        } else if let Some(point) = last.filter(|_| !stopped && self.dice.once_in(2)) {
            // In the middle of the last operation.
            self.flushed = point.flushed;
            self.disk = point.disk;
        } else {
            let end = End::of_number(self.dice.roll());
            if let Some(left) = leave(&self.disk, end) {
                self.disk = left;
            }
        }
        self.disk.heal();
        self.summary.crashes += u64::from(!self.closed);
        Ok(())
    }

    /// Closes the store. False: the disk fails, no operation noticed it, and the last writes of the
    /// store could not be done; what was durable before is what there is.
    fn close(&mut self, store: &Store, disk_fails: bool) -> Outcome<bool> {
        match store.stepped.administer(control::Close {}) {
            Ok(()) => Ok(true),
            Err(error) if disk_fails && is_of_writes(&error) => {
                self.summary.stopped += 1;
                Ok(false)
            }
            Err(error) => Err(in_run(Broken::Request(error))),
        }
    }
}
