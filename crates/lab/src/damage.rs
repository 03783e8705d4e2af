//! `lab damage`: stores of the real engine are hit, checked, opened, repaired and read to the end.
//!
//! Of every hit it is asked: does the check see it, unless no byte changed that means anything? Is
//! every byte that is read right, or an error? Does a refusal name what is damaged? Is a repaired
//! store sound but for what the repair said is lost, do exactly those chunks fail, and can it be
//! written again? What the last sync before a crash wrote is a class of its own: nothing on disk
//! proves that it was there, so damage to it looks like an earlier crash, and the store must be
//! as it was a moment before.

pub(crate) mod atlas;
pub(crate) mod driver;
pub(crate) mod hit;
pub(crate) mod named;
pub(crate) mod pair;
pub(crate) mod store;
pub(crate) mod truth;
pub(crate) mod twice;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use disk::{Disk, MemoryDisk};
use engine::{CheckReport, Problem, RepairReport};

use crate::damage::driver::{ChunkRead, Driver};
use crate::damage::hit::{Hit, Meaning};
use crate::damage::store::{KINDS, Sample};
use crate::damage::truth::{Floor, Place, Reading, VOLUME_CHUNKS, content, volume_name};
use crate::dice::Dice;

/// What became of hits on one kind of structure.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageRow {
    /// How many.
    pub hits: u64,
    /// Seen by the check.
    pub detected: u64,
    /// Sound after the repair, with nothing lost.
    pub repaired: u64,
    /// Sound after the repair but for what it said is lost.
    pub with_losses: u64,
    /// Refused by the repair, in a sentence.
    pub refused: u64,
    /// Proven to change nothing.
    pub harmless: u64,
    /// Not to be told from a crash a moment earlier.
    pub like_a_crash: u64,
}

/// What a run of hits came to.
#[derive(Clone, Debug, Default)]
pub struct DamageTable {
    /// By what was aimed at.
    pub rows: BTreeMap<String, DamageRow>,
    /// Broken promises, each with its hit.
    pub failures: Vec<String>,
    /// Why repairs refused, and how often.
    pub refusals: BTreeMap<String, u64>,
}

impl DamageTable {
    /// Damages stores `hits` times, each at a structure.
    ///
    /// # Errors
    /// A sentence, when the stores cannot even be made.
    pub fn run(seed: u64, hits: u64, progress: impl FnMut(u64)) -> Result<Self, String> {
        Self::run_of(Hit::choose, seed, hits, progress)
    }

    /// Damages stores `hits` times, each with a contiguous hit of 4 KiB to 1 MiB on one file.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_wide(seed: u64, hits: u64, progress: impl FnMut(u64)) -> Result<Self, String> {
        Self::run_of(Hit::wide, seed, hits, progress)
    }

    fn run_of(
        choose: impl Fn(&Sample, &mut Dice) -> Hit,
        seed: u64,
        hits: u64,
        mut progress: impl FnMut(u64),
    ) -> Result<Self, String> {
        let samples: Result<Vec<Sample>, String> =
            (0..).zip(KINDS).map(|(number, kind)| Sample::make(kind, seed + number)).collect();
        let samples = samples?;
        let mut table = Self::default();
        let mut dice = Dice::new(seed);
        for number in 0..hits {
            let sample = &samples[(number % samples.len() as u64) as usize];
            let hit = choose(sample, &mut dice);
            let seed = dice.roll();
            let mut trial = Trial { sample, hit: &hit, seed, failures: Vec::new(), refusal: None };
            let fate = catch_unwind(AssertUnwindSafe(|| trial.run()));
            let fate = fate.unwrap_or_else(|_| {
                trial.failures.push("a panic".to_owned());
                Fate::default()
            });
            for failure in trial.failures {
                table.failures.push(format!("hit {number}, {hit:?}: {failure}"));
            }
            if let Some(refusal) = trial.refusal {
                *table.refusals.entry(refusal).or_default() += 1;
            }
            fate.count(table.rows.entry(hit.aim.clone()).or_default());
            progress(number + 1);
        }
        Ok(table)
    }

    /// The sum of all rows.
    #[must_use]
    pub fn total(&self) -> DamageRow {
        let mut total = DamageRow::default();
        for row in self.rows.values() {
            total.hits += row.hits;
            total.detected += row.detected;
            total.repaired += row.repaired;
            total.with_losses += row.with_losses;
            total.refused += row.refused;
            total.harmless += row.harmless;
            total.like_a_crash += row.like_a_crash;
        }
        total
    }

    /// The table as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let row = |(name, row): (&String, &DamageRow)| {
            let DamageRow { hits, detected, repaired, with_losses, refused, harmless, .. } = row;
            format!(
                "{{\"structure\":{name:?},\"hits\":{hits},\"detected\":{detected},\
                 \"repaired\":{repaired},\"with_losses\":{with_losses},\"refused\":{refused},\
                 \"harmless\":{harmless},\"like_a_crash\":{}}}",
                row.like_a_crash
            )
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        format!("{{\"rows\":[{}],\"failures\":{:?}}}", rows.join(","), self.failures)
    }
}

impl fmt::Display for DamageTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| structure | hits | detected | repaired | with losses | refused | harmless | \
             like a crash |\n|---|---|---|---|---|---|---|---|"
        )?;
        let total = self.total();
        let all = "all".to_owned();
        for (name, row) in self.rows.iter().chain([(&all, &total)]) {
            let DamageRow { hits, detected, repaired, with_losses, refused, harmless, .. } = row;
            writeln!(
                f,
                "| {name} | {hits} | {detected} | {repaired} | {with_losses} | {refused} | \
                 {harmless} | {} |",
                row.like_a_crash
            )?;
        }
        Ok(())
    }
}

/// What became of one hit.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) detected: bool,
    pub(crate) repaired: bool,
    pub(crate) lost: bool,
    pub(crate) refused: bool,
    pub(crate) like_a_crash: bool,
}

impl Fate {
    pub(crate) fn count(self, row: &mut DamageRow) {
        row.hits += 1;
        row.detected += u64::from(self.detected);
        row.repaired += u64::from(self.repaired && !self.lost);
        row.with_losses += u64::from(self.repaired && self.lost);
        row.refused += u64::from(self.refused);
        row.like_a_crash += u64::from(self.like_a_crash && !self.detected);
        row.harmless += u64::from(!self.detected && !self.like_a_crash);
    }
}

struct Trial<'a> {
    sample: &'a Sample,
    hit: &'a Hit,
    seed: u64,
    failures: Vec<String>,
    refusal: Option<String>,
}

impl Trial<'_> {
    fn fail(&mut self, failure: impl Into<String>) {
        self.failures.push(failure.into());
    }

    fn run(&mut self) -> Fate {
        let disk = self.sample.copy(self.seed);
        self.hit.strike(self.sample, &disk);
        let meaning = self.hit.meaning(self.sample);
        let mut fate = Fate::default();
        // What has a second copy is damaged and not lost.
        let mut loses = true;
        match check(self.hit.view(&disk)) {
            Ok(report) => {
                fate.detected = !report.problems.is_empty();
                loses = !report.problems.iter().all(is_of_one_frame);
            }
            Err(sentence) => {
                fate.detected = true;
                self.must_name_a_structure(&sentence);
            }
        }
        let view = self.hit.view(&disk.restart(self.seed));
        // Where proven and unproven bytes were hit together, the unproven may be gone besides.
        let floor = match self.hit.touches_unproven(self.sample) {
            true if self.hit.ends_journal(self.sample) => Floor::Rooted,
            true => Floor::Proven,
            false => Floor::Flushed,
        };
        match Driver::open(view) {
            Err(sentence) if fate.detected => self.must_name_a_structure(&sentence),
            Err(sentence) => self.fail(format!("clean, but it does not open: {sentence}")),
            Ok(mut driver) => {
                let reading = self.read_all(&mut driver, floor);
                fate.like_a_crash = reading.is_older || meaning == Meaning::Unproven;
                if !loses && !reading.failed.is_empty() {
                    self.fail(format!("nothing is lost, but {} reads fail", reading.failed.len()));
                }
            }
        }
        if meaning == Meaning::Proven && !fate.detected {
            self.fail("not detected");
        }
        if fate.detected {
            self.repair(&disk.restart(self.seed), floor, &mut fate);
        }
        fate
    }

    fn must_name_a_structure(&mut self, sentence: &str) {
        self.failures.extend(must_name_a_structure(sentence));
    }

    fn repair(&mut self, disk: &MemoryDisk, floor: Floor, fate: &mut Fate) {
        let report = match engine::repair(Box::new(disk.clone()), &mut |_| {}) {
            Ok(report) => report,
            Err(error) => {
                fate.refused = true;
                self.must_name_a_structure(&error.to_string());
                self.refusal = Some(error.to_string());
                return;
            }
        };
        fate.repaired = true;
        fate.lost = report.lost_chunks > 0 || report.lost_records > 0;
        let after = self.check_after("after the repair", disk);
        if after != report.lost_chunks {
            self.fail(format!("the repair lost {} chunks, {after} are", report.lost_chunks));
        }
        let driver = Driver::open(Box::new(disk.clone()));
        match driver {
            Err(sentence) => self.fail(format!("repaired, but it does not open: {sentence}")),
            Ok(driver) => self.use_repaired(driver, &report, floor, disk),
        }
    }

    /// Chunks that the check says are lost; anything else is a failure.
    fn check_after(&mut self, when: &str, disk: &MemoryDisk) -> u64 {
        let mut lost = 0;
        match check(Box::new(disk.clone())) {
            Err(sentence) => self.fail(format!("{when}: {sentence}")),
            Ok(report) => {
                for problem in report.problems {
                    match problem {
                        Problem::LostChunks { count, .. } => lost += count,
                        other => self.fail(format!("{when}: {other}")),
                    }
                }
            }
        }
        lost
    }

    /// Reads a repaired store, writes what is lost again, and looks at it once more.
    fn use_repaired(
        &mut self,
        mut driver: Driver,
        report: &RepairReport,
        floor: Floor,
        disk: &MemoryDisk,
    ) {
        let loses = if report.lost_records > 0 { Floor::Rooted } else { Floor::Flushed };
        let reading = self.read_all(&mut driver, floor.max(loses));
        if reading.failed.len() as u64 != report.lost_chunks {
            let (failed, lost) = (reading.failed.len(), report.lost_chunks);
            self.fail(format!("{failed} reads fail, and the repair said {lost} chunks"));
        }
        let mut dice = Dice::new(self.seed);
        let others = (0..20).map(|_| (0, dice.below(VOLUME_CHUNKS)));
        let places: Vec<Place> = reading.failed.iter().copied().chain(others).collect();
        for (number, place) in (1_000_000..).zip(places) {
            let volume = driver
                .call(move |client| client.open_volume(&volume_name(place.0), crate::opener()));
            let Ok(volume) = volume else { return self.fail("a repaired volume is gone") };
            let bytes = content(number);
            let written = driver.write(&volume, place.1, &bytes).is_well();
            if !written || driver.read(&volume, place.1) != ChunkRead::Bytes(bytes) {
                return self.fail(format!("chunk {} of v{} cannot be written", place.1, place.0));
            }
        }
        if driver.close().is_err() {
            return self.fail("a repaired store cannot be closed");
        }
        if self.check_after("written after the repair", disk) > 0 {
            self.fail("chunks are lost that were written again");
        }
    }

    fn read_all(&mut self, driver: &mut Driver, floor: Floor) -> Reading {
        let mut reading = self.sample.truth.read_all(driver, floor);
        self.failures.append(&mut reading.wrong);
        reading
    }
}

/// What is wrong with the sentence of a refusal, if anything is.
pub(crate) fn must_name_a_structure(sentence: &str) -> Option<String> {
    let names = ["journal", "root", "geometry", "tables", "catalog", "superblock", "data"];
    let is_named = names.iter().any(|name| sentence.contains(name));
    (!is_named).then(|| format!("a refusal names no structure: {sentence}"))
}

/// Whether it is damage to a frame, which costs nothing where there is a second one.
fn is_of_one_frame(problem: &Problem) -> bool {
    matches!(problem, Problem::DamagedFrame { .. } | Problem::DamagedCopy { .. })
}

fn check(disk: Box<dyn Disk>) -> Result<CheckReport, String> {
    engine::check(disk, &mut |_| {}).map_err(|error| error.to_string())
}
