//! One hit on a store, and what comes of it: it is checked, opened and read, repaired, read again
//! and written to.
//!
//! What must be reported: a chunk that does not hold what was flushed last lies in what the check,
//! or the repair, names as lost or as older; or in a volume that is named as gone; or a record that
//! cannot be read changed it, and the report says that there are such records; or the report says
//! that the end of the journal, or all of it, is gone. A repair that reports no loss has none.
//!
//! Excused is what the last flush before a crash wrote, if a byte of that was hit: nothing durable
//! says that it was ever there. Where all of the journal is gone from a proven record on to the
//! last, nothing is left either; such hits are counted as untold.

use std::collections::BTreeSet;

use disk::{Disk, MemoryDisk};
use engine::{CheckReport, GivenUp, OpenError, Problem, RepairError, RepairReport, Zone};

use crate::damage::driver::{ChunkRead, Driver};
use crate::damage::fate::{Fate, must_name_a_structure};
use crate::damage::hit::{Hit, Touched};
use crate::damage::named::Named;
use crate::damage::store::Sample;
use crate::damage::truth::{Floor, Place, Reading, VOLUME_CHUNKS, content, volume_name};
use crate::dice::Dice;

pub(crate) struct Trial<'a> {
    sample: &'a Sample,
    hit: &'a Hit,
    seed: u64,
    touched: Touched,
    /// Chunks that records changed which cannot be read any more.
    unread: BTreeSet<Place>,
    pub(crate) failures: Vec<String>,
    pub(crate) refusal: Option<String>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(sample: &'a Sample, hit: &'a Hit, seed: u64) -> Self {
        let (touched, unread) = (Touched::default(), BTreeSet::new());
        Self { sample, hit, seed, touched, unread, failures: Vec::new(), refusal: None }
    }

    fn fail(&mut self, failure: impl Into<String>) {
        self.failures.push(failure.into());
    }

    /// Whether records are gone from a proven one on to the last: nothing behind them is left to
    /// say that they were there.
    fn ends_journal(&self) -> bool {
        let Touched { proven, unproven } = self.touched;
        self.hit.zone == Zone::Journal && proven && unproven
    }

    pub(crate) fn run(&mut self) -> Fate {
        let disk = self.sample.copy(self.seed);
        self.hit.strike(self.sample, &disk);
        self.touched = self.hit.touched(self.sample, &disk);
        self.unread = self.sample.unread(&disk);
        let mut fate = Fate::default();
        // What has a second copy is damaged and not lost.
        let mut loses = true;
        let mut named = Named::default();
        match check(self.hit.view(&disk)) {
            Ok(report) => {
                fate.detected = !report.problems.is_empty();
                loses = !report.problems.iter().all(is_of_one_frame);
                named = Named::of(report);
            }
            Err(sentence) => {
                fate.detected = true;
                self.must_name_a_structure(&sentence);
            }
        }
        let view = self.hit.view(&disk.restart(self.seed));
        // Where proven and unproven bytes were hit together, the unproven may be gone besides.
        let floor = match self.touched.unproven {
            true if self.ends_journal() => Floor::Rooted,
            true => Floor::Proven,
            false => Floor::Flushed,
        };
        match Driver::open(view) {
            Err(sentence) if fate.detected => self.must_name_a_structure(&sentence),
            Err(sentence) => self.fail(format!("clean, but it does not open: {sentence}")),
            Ok(mut driver) => {
                let reading = self.read_all(&mut driver, floor);
                fate.like_a_crash =
                    reading.is_older || self.touched == Touched { proven: false, unproven: true };
                if !loses && !reading.failed.is_empty() {
                    self.fail(format!("nothing is lost, but {} reads fail", reading.failed.len()));
                }
                self.must_be_told("opened", &reading, &named, &mut fate);
            }
        }
        let may_hide = self.hit.brings_a_root_back() || self.ends_journal();
        if self.touched.proven && !may_hide && !fate.detected {
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

    /// Chunks that are older than what was flushed, and not for what nothing proves, are named.
    fn must_be_told(&mut self, when: &str, reading: &Reading, named: &Named, fate: &mut Fate) {
        let truth = &self.sample.truth;
        let is_excused = |place: &&Place| self.touched.unproven && truth.is_unproven(place);
        let older = truth.older(reading);
        let untold = older.iter().filter(|place| !named.tells_of(place, &self.unread));
        let untold: Vec<&Place> = untold.filter(|place| !is_excused(place)).collect();
        if let Some(place) = untold.first() {
            if self.ends_journal() {
                fate.untold = true;
                return;
            }
            let (count, all) = (untold.len(), older.len());
            let sentence =
                format!("{when}: {count} of {all} older chunks are not named: {place:?}");
            self.fail(sentence);
        }
    }

    fn repair(&mut self, disk: &MemoryDisk, floor: Floor, fate: &mut Fate) {
        let journal_from_bytes = self.hit.journal_from_bytes();
        let zones = [self.hit.zone];
        let mut given_up = GivenUp { journal_from_bytes, ..GivenUp::default() };
        let repair = |given_up: &GivenUp<'_>| {
            engine::repair_without(Box::new(disk.clone()), given_up, &mut |_| {})
        };
        let mut repaired = repair(&given_up);
        if let Err(error @ RepairError::Open(OpenError::ForeignZone { .. })) = &repaired {
            self.must_name_a_structure(&error.to_string());
            fate.without_zone = true;
            given_up.zones = &zones;
            repaired = repair(&given_up);
        }
        let report = match repaired {
            Ok(report) => report,
            Err(error) => {
                fate.refused = true;
                self.must_name_a_structure(&error.to_string());
                self.refusal = Some(error.to_string());
                return;
            }
        };
        fate.repaired = true;
        fate.lost = loses(&report);
        let after = self.check_after("after the repair", disk);
        if after.len() as u64 != report.lost_chunks {
            let (lost, said) = (after.len(), report.lost_chunks);
            self.fail(format!("the repair lost {said} chunks, {lost} are"));
        }
        let driver = Driver::open(Box::new(disk.clone()));
        match driver {
            Err(sentence) => self.fail(format!("repaired, but it does not open: {sentence}")),
            Ok(driver) => self.use_repaired(driver, &report, &after, floor, disk, fate),
        }
    }

    /// Chunks that the check says are lost; anything else is a failure.
    fn check_after(&mut self, when: &str, disk: &MemoryDisk) -> BTreeSet<Place> {
        match check(Box::new(disk.clone())) {
            Err(sentence) => self.fail(format!("{when}: {sentence}")),
            Ok(report) => {
                let named = Named::of(report);
                for problem in &named.problems {
                    self.fail(format!("{when}: {problem}"));
                }
                return named.lost;
            }
        }
        BTreeSet::new()
    }

    /// Reads a repaired store, writes what is lost again, and looks at it once more.
    fn use_repaired(
        &mut self,
        mut driver: Driver,
        report: &RepairReport,
        lost: &BTreeSet<Place>,
        floor: Floor,
        disk: &MemoryDisk,
        fate: &mut Fate,
    ) {
        let loses_records = report.lost_records > 0 || report.lost_journal || report.short_journal;
        let loses_to = if loses_records { Floor::Rooted } else { Floor::Flushed };
        let reading = self.read_all(&mut driver, floor.max(loses_to));
        if reading.failed != *lost {
            let (failed, lost) = (reading.failed.len(), lost.len());
            self.fail(format!("{failed} reads fail, and the check names {lost} chunks"));
        }
        let mut named = match loses(report) {
            true => Named::of_problems(report.found.clone()),
            // Who is told that nothing is lost looks no further.
            false => Named::default(),
        };
        named.has_lost_end |= report.lost_journal;
        self.must_be_told("repaired", &reading, &named, fate);
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
        if !self.check_after("written after the repair", disk).is_empty() {
            self.fail("chunks are lost that were written again");
        }
    }

    fn read_all(&mut self, driver: &mut Driver, floor: Floor) -> Reading {
        let mut reading = self.sample.truth.read_all(driver, floor);
        self.failures.append(&mut reading.wrong);
        reading
    }
}

/// Whether a repair reports that something is lost, or may be.
pub(crate) fn loses(report: &RepairReport) -> bool {
    let RepairReport { lost_chunks, lost_records, lost_journal, short_journal, .. } = report;
    *lost_chunks > 0 || *lost_records > 0 || *lost_journal || *short_journal
}

/// Whether it is damage to a frame, which costs nothing where there is a second one.
fn is_of_one_frame(problem: &Problem) -> bool {
    matches!(problem, Problem::DamagedFrame { .. } | Problem::DamagedCopy { .. })
}

fn check(disk: Box<dyn Disk>) -> Result<CheckReport, String> {
    engine::check(disk, &mut |_| {}).map_err(|error| error.to_string())
}
