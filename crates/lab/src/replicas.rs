//! A bucket on two stores: whatever dies, whenever they are cut apart, nothing that was
//! acknowledged is lost, and only one acknowledges.
//!
//! ```text
//! side.rs     a server: a disk, a store while it lives     wire.rs    messages, cuts, strikes
//! changes.rs  what clients ask                             deaths.rs  deaths, promotions, judging
//! oracle.rs   what the bucket may hold                     content.rs, plan.rs
//! ```
//!
//! Both engines are real and stepped by this thread; the bucket and the state machines of the
//! replication are those of the servers. An operation that waits for the replica carries messages,
//! and may be struck: one side dies, or the connection, in the middle of it. When the primary has
//! died the replica is promoted, or the primary comes back and meets it. What is found then is
//! judged: of one death nothing acknowledged may be missing, of two nothing that was durable.
//!
//! In some runs the primary goes on alone while its replica is away. Then a death of it may cost
//! what was not durable, and a replica that lacks something is not promoted.

mod changes;
mod content;
mod deaths;
mod oracle;
mod plan;
mod side;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use format::objects::replica::{ReplicaRole, ReplicaState};
use objects::bucket::{Bucket, BucketOptions, OpenOptions};
use objects::index::INDEX_MEMORY_BYTES_MIN;
use objects::volume::BucketVolume;
use replication::{LinkState, Mirrored, Position, Primary, ReplyWait, Secondary};

use crate::dice::{Dice, mixed};
use crate::failure::Broken;
use crate::objects::failures::broken;
use crate::replicas::oracle::Oracle;
use crate::replicas::side::Side;
use crate::replicas::wire::Wire;

pub use crate::replicas::plan::{ReplicaPlan, ReplicaSummary};

/// Steps of a run, unless told otherwise.
const STEPS: u64 = 120;
/// Length of the log's ring: it goes round within a run.
const LOG_RING_BYTES: u64 = 64 << 10;
/// What servers keep of the newest records, one of these: less than an object, some, all of a run.
const KEPT_BYTES: [u64; 3] = [8 << 10, 200 << 10, 64 << 20];
/// Messages carried beside one operation of two, at most.
const CARRIED_MAX: u64 = 30;
/// One of this number of operations beside which there is no connection is followed by one.
const MEND_ONE_IN: u64 = 4;
/// Both copies have this number.
const SET: u64 = 77;

impl ReplicaPlan {
    /// The usual run of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        Self { seed, steps: STEPS }
    }

    /// Runs it.
    ///
    /// # Errors
    /// The first promise that was broken.
    pub fn run(&self) -> Result<ReplicaSummary, Broken> {
        let mut world = World::new(self)?;
        for _ in 0..self.steps {
            world.step()?;
        }
        world.finish()
    }
}

/// The primary's bucket, while it lives.
struct Acting {
    bucket: Bucket,
    mirrored: Arc<Mirrored>,
}

/// The two servers and what was asked of them.
struct World {
    dice: Dice,
    sides: [Side; 2],
    /// Which of them has the primary.
    at: usize,
    acting: Option<Acting>,
    wire: Arc<Wire>,
    oracle: Oracle,
    /// Whether the replica may lack what was acknowledged: it died or was away, and has not caught
    /// up.
    replica_lacks: bool,
    goes_on_alone: bool,
    ring_bytes: u64,
    contents: u64,
    summary: ReplicaSummary,
}

impl World {
    fn new(plan: &ReplicaPlan) -> Result<Self, Broken> {
        let seed = plan.seed;
        let mut dice = Dice::new(mixed(seed, 52));
        let sides = [Side::new(seed * 2)?, Side::new(seed * 2 + 1)?];
        let options = BucketOptions { ring_bytes: LOG_RING_BYTES, ..BucketOptions::new([5; 16]) };
        Bucket::create(sides[0].volume()?, &options)
            .map_err(|error| broken("making a bucket", &error))?;
        let empty = Secondary::empty_state(SET, sides[1].identity()?);
        sides[1].set_state(&empty)?;
        let goes_on_alone = plan.goes_on_alone();
        sides[0].set_state(&ReplicaState {
            role: ReplicaRole::Primary,
            volume: sides[0].identity()?,
            position: Position { epoch: 1, life: 0, sequence: 0 },
            may_go_on_alone: goes_on_alone,
            ..empty
        })?;
        let ring_bytes = KEPT_BYTES[dice.below(KEPT_BYTES.len() as u64) as usize];
        let mut world = Self {
            wire: Wire::new(mixed(seed, 53)),
            dice,
            sides,
            at: 0,
            acting: None,
            oracle: Oracle::default(),
            replica_lacks: true,
            goes_on_alone,
            ring_bytes,
            contents: 0,
            summary: ReplicaSummary::default(),
        };
        world.connect_secondary()?;
        world.open_primary()?;
        Ok(world)
    }

    /// Which side has the replica.
    fn other(&self) -> usize {
        1 - self.at
    }

    /// The replica's side of the connection, as its volume has it.
    fn connect_secondary(&mut self) -> Result<(), Broken> {
        let side = &self.sides[self.other()];
        let secondary = Secondary::new(side.volume()?, side.state()?, self.ring_bytes);
        self.wire.set_secondary(Some(secondary));
        Ok(())
    }

    /// Opens the primary's bucket; false when it has to be the replica's turn.
    fn open_primary(&mut self) -> Result<bool, Broken> {
        let side = &self.sides[self.at];
        let (volume, life) = (side.volume()?, self.dice.roll());
        let primary = Primary::new("bucket", side.state()?, life, self.ring_bytes);
        let reply_wait = Arc::clone(&self.wire) as Arc<dyn ReplyWait>;
        let mirrored = Arc::new(Mirrored::new(volume, primary, reply_wait));
        self.wire.set_primary(&mirrored);
        // One that may go on alone may not meet its replica at once.
        if !self.goes_on_alone || self.dice.once_in(2) {
            self.wire.mend();
        }
        if mirrored.wait_until_met().is_err() {
            return Ok(false);
        }
        let options = OpenOptions { memory_bytes: INDEX_MEMORY_BYTES_MIN, read_only: false };
        let bucket = Bucket::open(Arc::clone(&mirrored) as Arc<dyn BucketVolume>, &options)
            .map_err(|error| broken("opening a primary", &error))?;
        self.acting = Some(Acting { bucket, mirrored });
        Ok(true)
    }

    fn step(&mut self) -> Result<(), Broken> {
        match self.dice.below(100) {
            0..56 => self.put()?,
            56..66 => self.delete()?,
            66..72 => self.tend()?,
            72..76 => self.wire.cut(),
            76..84 => self.mend(),
            84..89 => self.replica_dies()?,
            89..95 => self.primary_dies()?,
            95..97 => self.both_die()?,
            97..99 => self.usurp()?,
            _ => self.settle(),
        }
        if !self.wire.is_there() && self.dice.once_in(MEND_ONE_IN) {
            self.mend();
        }
        if self.dice.once_in(2) {
            let carried = self.dice.below(CARRIED_MAX);
            self.wire.carry(carried);
        }
        self.look_in_step();
        Ok(())
    }

    fn mend(&mut self) {
        if !self.wire.is_there() {
            self.wire.mend();
        }
    }

    /// Carries all there is to say.
    fn settle(&mut self) {
        self.mend();
        self.wire.settle();
        self.look_in_step();
    }

    /// Whether the replica has all there is.
    fn look_in_step(&mut self) {
        let Some(acting) = &self.acting else { return };
        let primary = acting.mirrored.primary();
        let has_all = primary.received() == primary.state().position.sequence;
        if primary.link() == LinkState::InStep && has_all {
            self.replica_lacks = false;
        }
    }
}
