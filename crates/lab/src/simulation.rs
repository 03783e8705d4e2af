//! One run: life after life of one store, each ended by a crash or a close, and each write of each
//! life looked at aside.

pub(crate) mod aside;
pub(crate) mod damaged;
pub(crate) mod going_back;
pub(crate) mod opening;
pub(crate) mod sealing;
pub(crate) mod tap;
pub(crate) mod trouble;

use disk::{Loss, MemoryDisk};
use engine::{Codec, Compression, ScrubPosition};
use format::mark::Mark;
use format::superblock::Geometry;
use format::units::CONTAINER_BYTES;

use crate::dice::{Digest, mixed};
use crate::failure::{Broken, Failure};
use crate::oracle::{CHUNK_BYTES, Oracle};
use crate::script::{End, Life, Script, Shape};
use crate::session::Session;
use crate::session::growth::zones_to_grow_into;
use crate::simulation::aside::{Points, check, check_crashed, compare, compare_damaged};
use crate::simulation::damaged::Damaged;
use crate::simulation::opening::Opening;
use crate::simulation::tap::{Ear, Watch, leave, lose_slot};
use crate::simulation::trouble::Trouble;
use crate::workload::Plan;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Requests made.
    pub requests: u64,
    /// Lives that ended in a crash, and were followed by an opening.
    pub crashes: u64,
    /// Device writes, those of recoveries included.
    pub writes: u64,
    /// Crashes that were looked at aside.
    pub points: Points,
    /// Journal records that recoveries applied.
    pub records_replayed: u64,
    /// Crashes of the run that cost unflushed records.
    pub cuts: u64,
    /// Crashes of the run that cost a root slot.
    pub slots_lost: u64,
    /// Checkpoints that lives lived to count.
    pub checkpoints: u64,
    /// Containers that were collected.
    pub collected: u64,
    /// Second copies of chunks that were made.
    pub copied: u64,
    /// Lives in which something went wrong with the disk.
    pub troubles: u64,
    /// Requests that failed for it.
    pub failed: u64,
    /// Growths that were answered well.
    pub grown: u64,
    /// Data zones that were taken out.
    pub removed: u64,
    /// Scrubs of everything that came to their end.
    pub scrubbed: u64,
    /// Requests that were refused for want of room.
    pub refused: u64,
    /// Times that a store was filled until it refused.
    pub filled: u64,
    /// Stands for every operation on the disk and every answer, in their order.
    pub digest: u64,
}

impl Summary {
    /// Adds what another run did.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.crashes += other.crashes;
        self.writes += other.writes;
        self.points.add(other.points);
        self.records_replayed += other.records_replayed;
        self.cuts += other.cuts;
        self.slots_lost += other.slots_lost;
        self.checkpoints += other.checkpoints;
        self.collected += other.collected;
        self.copied += other.copied;
        self.troubles += other.troubles;
        self.failed += other.failed;
        self.grown += other.grown;
        self.removed += other.removed;
        self.scrubbed += other.scrubbed;
        self.refused += other.refused;
        self.filled += other.filled;
        self.digest ^= other.digest;
    }
}

/// Where each write is looked at aside.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nowhere: only the crashes of the script happen.
    Nowhere,
    /// In the last life of the script.
    LastLife,
    /// In every life.
    Everywhere,
    /// In every life at one write of so many.
    Sometimes(u64),
}

/// A run that is to come.
pub struct Simulation {
    script: Script,
    look: Look,
    disk: MemoryDisk,
    oracle: Oracle,
    /// Effects that were durable when the last life ended.
    flushed: usize,
    /// Of those, the ones that a later record calls durable.
    proven: usize,
    /// Whether it ended with a close.
    closed: bool,
    /// What went wrong with the disk in the last life.
    trouble: Option<Trouble>,
    /// Where the scrub goes on.
    scrub: ScrubPosition,
    /// A root slot may have been lost with a crash, and no scrub has told of it yet.
    slot_in_doubt: bool,
    /// PBNs that a repair abandoned.
    given_up: u64,
    /// Where in the run we are.
    life: usize,
    last_life: usize,
    request: usize,
    digest: Digest,
    summary: Summary,
}

/// What is wrong, and aside of the run where.
type Outcome<T> = Result<T, (Option<String>, Broken)>;

impl Simulation {
    /// The run of a plan, on a new store.
    ///
    /// # Errors
    /// [`Failure`] when the store cannot be made.
    pub fn new(plan: &Plan) -> Result<Self, Failure> {
        let look = if plan.every_write { Look::Everywhere } else { Look::Nowhere };
        Self::of_script(plan.script(), look)
    }

    /// The run of a script.
    ///
    /// # Errors
    /// [`Failure`] when the store cannot be made.
    pub fn of_script(script: Script, look: Look) -> Result<Self, Failure> {
        let disk = new_store(&script).map_err(|broken| Failure {
            broken,
            life: 0,
            request: 0,
            aside: None,
        })?;
        Ok(Self {
            script,
            look,
            disk,
            oracle: Oracle::default(),
            flushed: 0,
            proven: 0,
            closed: true,
            trouble: None,
            scrub: ScrubPosition::default(),
            slot_in_doubt: false,
            given_up: 0,
            life: 0,
            last_life: 0,
            request: 0,
            digest: Digest::default(),
            summary: Summary::default(),
        })
    }

    /// Runs it.
    ///
    /// # Errors
    /// The first [`Failure`].
    pub fn run(mut self) -> Result<Summary, Failure> {
        match self.run_through() {
            Ok(()) => Ok(self.summary),
            Err((aside, broken)) => {
                let (life, request) = (self.life, self.request);
                Err(Failure { broken, life, request, aside })
            }
        }
    }

    fn run_through(&mut self) -> Outcome<()> {
        let mut lives = std::mem::take(&mut self.script.lives);
        self.last_life = lives.len();
        lives.push(Life { requests: Vec::new(), end: End::Close, root_lost: false });
        for life in &lives {
            self.life += 1;
            self.request = 0;
            if let Some(trouble) = self.trouble.take().filter(|trouble| trouble.damages())
                && !self.mend(trouble)?
            {
                self.closed = false;
                break;
            }
            self.live(life)?;
        }
        if self.closed && self.trouble.is_none() {
            check(&self.disk).map_err(in_run)?;
        }
        self.summary.digest = self.digest.value();
        Ok(())
    }

    /// One life: opening, requests, end.
    fn live(&mut self, life: &Life) -> Outcome<()> {
        let shape = self.script.shape.clone();
        check_crashed(&self.disk).map(drop).map_err(in_run)?;
        let watch = match self.look {
            Look::Everywhere => Watch::Every,
            Look::LastLife if self.life >= self.last_life => Watch::Every,
            Look::Sometimes(of) => Watch::OneIn(of),
            _ => Watch::Nothing,
        };
        let ear = Ear::new(watch, mixed(shape.seed, self.life as u64), self.flushed);
        let opening = self.open(&shape, &ear)?;
        ear.heard().flushed = 0;
        let oracle = std::mem::take(&mut self.oracle);
        let mut session = Session::new(opening, oracle, &shape);
        (session.scrub, session.slot_in_doubt) = (self.scrub, self.slot_in_doubt);
        session.given_up = self.given_up;
        let lived = self.go_through(&mut session, life);
        self.scrub = session.scrub;
        let is_crash = !life.end.is_close() || session.trouble.is_some();
        self.slot_in_doubt = session.slot_in_doubt || is_crash;
        self.note(&session);
        lived.map_err(|broken| (session.aside.take(), broken))?;
        (self.flushed, self.proven) = (session.flushed(), session.proven());
        self.closed = life.end.is_close();
        self.trouble = session.trouble;
        let left = leave(&self.disk, life.end);
        if let (Some(left), Some(slot)) = (&left, ear.heard().newest_slot())
            && life.root_lost
            && self.trouble.is_none()
        {
            lose_slot(left, slot);
            self.summary.slots_lost += 1;
        }
        // A machine that is switched off after a close was answered: all of it is durable.
        let after_close = || match session.is_closed {
            true => self.disk.left_by_power_loss(shape.seed, Loss::All),
            false => self.disk.left_by_kill(shape.seed),
        };
        self.disk = left.unwrap_or_else(after_close);
        self.disk.heal();
        self.closed &= self.trouble.is_none();
        self.oracle = session.oracle;
        self.summary.crashes += u64::from(!self.closed);
        Ok(())
    }

    /// Opens the store, compares it with what the last life left, and begins anew from there.
    fn open(&mut self, shape: &Shape, ear: &Ear) -> Outcome<Opening> {
        let mut opening = Opening::new(&self.disk, shape, ear.clone()).map_err(in_run)?;
        if self.closed && !opening.report.clean {
            let (request, answer) = ("a close".to_owned(), format!("{:?}", opening.report));
            return Err(in_run(Broken::Answer { request, answer }));
        }
        self.summary.records_replayed += opening.report.records_replayed;
        self.summary.cuts += u64::from(opening.report.cut);
        let found = compare(&mut opening, &self.oracle, self.flushed).map_err(in_run)?;
        for point in ear.take_points() {
            aside::look(&point, &self.oracle, shape, &mut self.summary.points)
                .map_err(|(aside, broken)| (Some(aside), broken))?;
        }
        self.oracle.settle(found);
        Ok(opening)
    }

    /// A store whose medium holds wrong bytes is judged, and repaired; false if it cannot be.
    fn mend(&mut self, trouble: Trouble) -> Outcome<bool> {
        let flushed = if trouble.lies() { self.proven } else { self.flushed };
        let damaged = Damaged { disk: &self.disk, shape: &self.script.shape, trouble, flushed };
        let judged = damaged.judge(&mut self.oracle).map_err(in_run)?;
        let Some((disk, given_up)) = judged else { return Ok(false) };
        (self.disk, self.given_up) = (disk, given_up);
        (self.flushed, self.closed) = (self.oracle.written(), true);
        Ok(true)
    }

    fn go_through(&mut self, session: &mut Session<'_>, life: &Life) -> Result<(), Broken> {
        if session.oracle.deleting() {
            session.idle()?;
        }
        for request in &life.requests {
            self.request += 1;
            self.summary.requests += 1;
            session.perform(&request.verb)?;
            for _ in 0..request.steps {
                session.step()?;
            }
            session.take_answers()?;
        }
        if life.end == End::CloseNow && session.trouble.is_none() {
            return session.close();
        }
        session.wait_for_all()?;
        if let Some(trouble) = session.trouble {
            if trouble == Trouble::Passing {
                self.disk.heal();
            }
            // While the store runs it holds all that it was asked to.
            let (opening, oracle) = (&mut session.opening, &session.oracle);
            compare_damaged(opening, oracle, oracle.written(), trouble)?;
        } else {
            session.tally()?;
        }
        if life.end.is_close() { session.close() } else { Ok(()) }
    }

    fn note(&mut self, session: &Session<'_>) {
        let heard = session.opening.ear.heard();
        self.digest.add(session.digest.value());
        self.digest.add(heard.digest.value());
        self.summary.writes += heard.writes;
        self.summary.points.add(session.points);
        self.summary.troubles += u64::from(session.trouble.is_some());
        self.summary.failed += session.failed;
        self.summary.grown += session.grown;
        self.summary.removed += session.removed;
        self.summary.scrubbed += session.scrubbed;
        self.summary.refused += session.refused;
        self.summary.filled += session.filled;
        self.summary.checkpoints += session.figures.checkpoints;
        self.summary.collected += session.figures.containers_collected;
        self.summary.copied += session.figures.chunks_copied;
    }
}

fn in_run(broken: Broken) -> (Option<String>, Broken) {
    (None, broken)
}

/// The disk of a new store. It is smaller than any that a user can make, so that it fills, wraps
/// and checkpoints within a few requests.
pub(crate) fn new_store(script: &Script) -> Result<MemoryDisk, Broken> {
    let shape = &script.shape;
    let geometry = Geometry {
        version: shape.detection.format_version(),
        uuid: [7; 16],
        bucket_seed: [9; 16],
        chunk_bytes: CHUNK_BYTES as u32,
        container_bytes: CONTAINER_BYTES,
        journal_bytes: shape.journal_bytes,
        tables_bytes: shape.tables_bytes,
        data: vec![shape.containers; usize::from(shape.zones)],
        detection: shape.detection,
        marked: true,
        features: Default::default(),
    };
    let zones =
        if script.grows() { zones_to_grow_into(&geometry) } else { geometry.zones().collect() };
    let disk = MemoryDisk::new(&zones, shape.seed);
    let compression = Compression { codec: Codec::Lz4, level: 0 };
    engine::create(Box::new(disk.clone()), &geometry, compression)
        .map_err(|error| Broken::Machine(error.to_string()))?;
    // Zones of files are marked when a growth takes them, before the geometry names them.
    for &(zone, _) in zones.iter().filter(|(zone, _)| geometry.zone_bytes(*zone) == 0) {
        let mark = Mark { uuid: geometry.uuid, zone }.encode();
        (0..).zip(mark).for_each(|(at, marked)| disk.corrupt(zone, at, |byte| *byte = marked));
    }
    Ok(disk)
}
