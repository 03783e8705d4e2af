//! `lab damage --twice`: two places of a store are hit, and between the hits it may have been open.
//!
//! The two are chosen so that one is what the other is mended from, or what would tell of it
//! (`damage_pair.rs`). What must hold:
//!
//! 1. No read gives bytes that the chunk never held. What is there is what all volumes held at one
//!    moment: since the last flush, or before it where nothing proved what came last, or, but not
//!    before the older root, where `check` or the repair says that records are lost.
//! 2. Nothing panics, hangs, or answers an opening with a sentence that names no structure.
//! 3. `check` says something, if a byte changed of what something durable proves.
//! 4. What cannot be read is a chunk that `check` names: as lost, or as hidden until a repair.
//! 5. A store that opens goes on working until a write needs a page that is damaged, and says so
//!    from then on: what is written and flushed is there when it is opened again, and `check` names
//!    nothing that it did not name.
//! 6. A repair loses what `check` called lost, no more and no less; a chunk only if both its
//!    frames, or the page of a map that leads to it, were hit; and records only if it says so.
//! 7. A second repair finds nothing but those lost chunks. They can be written again, and then
//!    `check` says nothing.
//! 8. While a block cannot be read a repair changes nothing; once it can, all of this holds for
//!    what the other hit left.
//!
//! Not promised, since the device lied about the superblock: a root that comes back from an earlier
//! moment proves less than the one that it replaces, so beside a second hit the store may be as it
//! was a moment before.

pub(crate) mod life;
pub(crate) mod mend;

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use disk::{Disk, MemoryDisk};
use engine::{Problem, Structure, Zone, structures};

use crate::damage::atlas::Atlas;
use crate::damage::driver::{COPIES_ABOVE, Driver};
use crate::damage::fate::{Fate, must_name_a_structure};
use crate::damage::hit::{Blow, Hit};
use crate::damage::named::{Named, is_of_tables};
use crate::damage::pair::{Pair, blow};
use crate::damage::store::{KINDS, Sample, copy_of};
use crate::damage::truth::{Floor, Place, Reading, Truth, volume_name};
use crate::damage::{DamageTable, samples};
use crate::dice::Dice;

/// Of a pair that goes wrong so many failures are told.
const FAILURES_TOLD: usize = 4;
/// Where the contents begin that are written to damaged stores.
const FIRST_CONTENT: u64 = 1_000_000;

/// What happens between the hits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    Nothing,
    /// The store is opened, written to and closed.
    Closed,
    /// It is opened and written to, and then the power goes.
    Cut,
}

impl DamageTable {
    /// Damages stores in two places, once for each of these numbers.
    ///
    /// # Errors
    /// A sentence, when the stores cannot even be made.
    pub fn run_twice(
        seed: u64,
        numbers: Range<u64>,
        mut progress: impl FnMut(u64),
    ) -> Result<Self, String> {
        let samples = samples(seed)?;
        let atlases: Vec<Atlas> =
            samples.iter().map(|sample| Atlas::of(&sample.disk, &sample.structures)).collect();
        let mut table = Self::default();
        for number in numbers {
            let at = (number % samples.len() as u64) as usize;
            let (sample, atlas) = (&samples[at], &atlases[at]);
            let mut dice = Dice::new(crate::dice::mixed(seed, number));
            let pair = Pair::choose(&mut dice);
            let mut trial = Trial::new(sample, dice);
            let fate = catch_unwind(AssertUnwindSafe(|| trial.run(pair, atlas)));
            let fate = fate.unwrap_or_else(|payload| {
                let sentence = payload.downcast::<String>();
                trial.fail(sentence.map_or_else(|_| "a panic".to_owned(), |sentence| *sentence));
                Fate::default()
            });
            if !trial.failures.is_empty() {
                let Trial { hits, between, failures, checks, .. } = &trial;
                let (name, kind) = (pair.name(), KINDS[at]);
                let what = format!("pair {number}, {name} of {kind:?}, {between:?}, {hits:?}");
                let told = failures.iter().take(FAILURES_TOLD);
                table.failures.extend(told.map(|failure| format!("{what}: {failure}")));
                table.failures.extend(checks.iter().map(|said| format!("  {said}")));
            }
            if let Some(refusal) = trial.refusal {
                *table.refusals.entry(refusal).or_default() += 1;
            }
            table.rows.entry(pair.name()).or_default().count(fate);
            table.ends.entry(sample.kind.end()).or_default().count(fate);
            progress(number + 1);
        }
        Ok(table)
    }
}

/// Two hits on a store, and what comes of them.
pub(crate) struct Trial<'a> {
    pub(crate) sample: &'a Sample,
    pub(crate) dice: Dice,
    pub(crate) truth: Truth,
    pub(crate) hits: Vec<Hit>,
    /// Bytes that are not what they were, or cannot be read.
    pub(crate) touched: Vec<(Zone, Range<u64>)>,
    pub(crate) between: Between,
    /// Which effects may be missing.
    pub(crate) floor: Floor,
    /// Whether records were hit that something proves, and whether the one that nothing does.
    journal_hit: [bool; 2],
    /// Whether writing may stop in the store that is open, since a page is damaged; and has.
    pub(crate) may_stop: bool,
    pub(crate) has_stopped: bool,
    /// Whether something changed that something durable proves.
    pub(crate) is_proven: bool,
    pub(crate) next_content: u64,
    /// Chunks that were written as others are, whose frames may be damaged.
    pub(crate) copied: BTreeSet<Place>,
    pub(crate) is_lengthened: bool,
    /// What checks said, in short.
    pub(crate) checks: Vec<String>,
    pub(crate) failures: Vec<String>,
    pub(crate) refusal: Option<String>,
}

impl<'a> Trial<'a> {
    fn new(sample: &'a Sample, dice: Dice) -> Self {
        Self {
            sample,
            dice,
            truth: sample.truth.clone(),
            hits: Vec::new(),
            touched: Vec::new(),
            between: Between::Nothing,
            floor: Floor::Flushed,
            journal_hit: [false; 2],
            may_stop: false,
            has_stopped: false,
            is_proven: false,
            next_content: FIRST_CONTENT,
            copied: BTreeSet::new(),
            is_lengthened: false,
            checks: Vec::new(),
            failures: Vec::new(),
            refusal: None,
        }
    }

    pub(crate) fn fail(&mut self, failure: impl Into<String>) {
        self.failures.push(failure.into());
    }

    /// So much may be missing as well.
    pub(crate) fn lower(&mut self, floor: Floor) {
        self.floor = self.floor.max(floor);
    }

    /// What a check says is not applied may be missing.
    pub(crate) fn expect_cut(&mut self, named: Option<&Named>) {
        let cuts = named.is_some_and(|named| named.cuts);
        self.lower(if cuts { Floor::Rooted } else { Floor::Flushed });
    }

    fn run(&mut self, pair: Pair, atlas: &Atlas) -> Fate {
        let mut disk = self.sample.copy(self.dice.roll());
        let Some(first) = pair.first(atlas, &mut self.dice) else { return Fate::default() };
        self.between = match self.dice.below(5) {
            0 => Between::Closed,
            1 => Between::Cut,
            _ => Between::Nothing,
        };
        let original = copy_of(&disk);
        self.strike(atlas, &first, &disk);
        let mut moved = None;
        if self.between != Between::Nothing {
            disk = self.live_between(&disk);
            moved = Some(self.atlas_of(&disk));
            // It may be mended by now.
            self.is_proven = false;
        }
        let sound = copy_of(&disk);
        let atlas_now = moved.as_ref().unwrap_or(atlas);
        let first = atlas_now.again(&first, atlas).unwrap_or(first);
        if let Some(second) = pair.second(atlas_now, &first, &mut self.dice) {
            self.strike(atlas_now, &second, &disk);
        }
        self.is_proven &= self.between != Between::Nothing || self.has_changed(&original, &disk);
        self.judge(&disk, &sound, atlas_now)
    }

    /// Whether the second hit did not undo the first.
    fn has_changed(&self, original: &MemoryDisk, disk: &MemoryDisk) -> bool {
        let fails = |hit: &Hit| hit.shortens() || hit.blow == Blow::Unreadable;
        let differs = |(zone, range): &(Zone, Range<u64>)| {
            let bytes =
                |of: &MemoryDisk| of.peek(*zone, range.start, (range.end - range.start) as usize);
            bytes(original) != bytes(disk)
        };
        self.hits.iter().any(fails) || self.touched.iter().any(differs)
    }

    fn atlas_of(&self, disk: &MemoryDisk) -> Atlas {
        let all = structures(Box::new(copy_of(disk)));
        Atlas::of(disk, &all.unwrap_or_else(|_| self.sample.structures.clone()))
    }

    fn strike(&mut self, atlas: &Atlas, aim: &Structure, disk: &MemoryDisk) {
        let mut blow = blow(&mut self.dice);
        if self.between != Between::Nothing && blow == Blow::Truncate {
            blow = Blow::Zero;
        }
        let mut hit = Hit::on(aim, &atlas.of_kind(&aim.kind), blow, &mut self.dice);
        if hit.brings_a_root_back() && self.hits.iter().any(Hit::brings_a_root_back) {
            hit.blow = Blow::Flip;
        }
        let touched = hit.strike_seen(self.sample, disk);
        let touches = |proven: bool| {
            atlas.structures.iter().filter(|structure| structure.proven == proven).any(|of| {
                let end = of.offset_bytes + of.length_bytes;
                let meets = |range: &Range<u64>| range.start < end && of.offset_bytes < range.end;
                touched.iter().any(|(zone, range)| *zone == of.zone && meets(range))
            })
        };
        let (proven, unproven) = (touches(true), touches(false));
        if hit.zone == Zone::Journal {
            self.journal_hit = [self.journal_hit[0] | proven, self.journal_hit[1] | unproven];
        }
        // Nothing is left behind them to say that records were there.
        let ends_journal = self.journal_hit == [true; 2];
        self.lower(if ends_journal { Floor::Rooted } else { Floor::Flushed });
        let is_stale = hit.brings_a_root_back();
        self.is_proven |= (proven && !is_stale) || hit.shortens();
        self.lower(if unproven { Floor::Proven } else { Floor::Flushed });
        self.lower(if is_stale { Floor::Nothing } else { Floor::Flushed });
        self.touched.extend(touched);
        self.hits.push(hit);
    }

    /// The disk as the store sees it: who repairs it has made its files as long as they were.
    pub(crate) fn view(&self, disk: &MemoryDisk) -> Box<dyn Disk> {
        let whole: Box<dyn Disk> = Box::new(disk.clone());
        if self.is_lengthened {
            return whole;
        }
        self.hits.iter().fold(whole, |disk, hit| hit.shortened(disk))
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.dice.roll()
    }

    pub(crate) fn check(&mut self, disk: &MemoryDisk) -> Option<Named> {
        let copy = copy_of(disk);
        match engine::check(self.view(&copy), &mut |_| {}) {
            Ok(report) => {
                let named = Named::of(report);
                self.checks.push(named.to_string());
                Some(named)
            }
            Err(error) => {
                self.checks.push(format!("check: {error}"));
                self.failures.extend(must_name_a_structure(&error.to_string()));
                None
            }
        }
    }

    /// Writing may stop in a store that is opened now, if a check named a page of a table, or could
    /// not be made.
    pub(crate) fn expect_stop(&mut self, named: Option<&Named>) {
        self.may_stop = named.is_none_or(|named| named.problems.iter().any(is_of_tables));
        self.has_stopped = false;
    }

    /// Reads an opened store, which goes on from what it holds.
    pub(crate) fn read_opened(&mut self, driver: &mut Driver, when: &str) -> Reading {
        let reading = self.read_all(driver, when);
        self.truth.settle(&reading);
        // It may come back once more when the other root is hit.
        let is_stale = self.hits.iter().any(Hit::brings_a_root_back);
        self.floor = if is_stale { Floor::Nothing } else { Floor::Flushed };
        reading
    }

    pub(crate) fn read_all(&mut self, driver: &mut Driver, when: &str) -> Reading {
        let mut reading = self.truth.read_all(driver, self.floor);
        self.failures.extend(reading.wrong.drain(..).map(|wrong| format!("{when}: {wrong}")));
        reading
    }

    /// What fails to be read must be named by a check.
    pub(crate) fn must_be_named(
        &mut self,
        driver: &mut Driver,
        when: &str,
        reading: &Reading,
        named: Option<&Named>,
    ) {
        let Some(named) = named else { return };
        // Of a page of a map that is damaged nobody knows what are holes in it.
        let of_page = |problem: &Problem| matches!(problem, Problem::DamagedPage { .. });
        let names_page = named.problems.iter().any(of_page);
        let is_named = |place: &&Place| {
            named.lost.contains(place)
                || named.hidden.contains(place)
                || names_page && self.truth.may_be_hole(**place, self.floor)
        };
        let mut unnamed = reading.failed.iter().filter(|place| !is_named(place));
        if let Some(place) = unnamed.find(|place| !has_unused_copy(driver, **place)) {
            let (count, error) = (reading.failed.len(), &reading.error);
            let sentence = format!("{count} reads fail, and no check names {place:?}; {error}");
            self.fail(format!("{when}: {sentence}"));
        }
    }

    fn judge(&mut self, disk: &MemoryDisk, sound: &MemoryDisk, atlas: &Atlas) -> Fate {
        let mut fate = Fate::default();
        let named = self.check(disk);
        fate.detected = named.as_ref().is_none_or(|named| !named.is_clean());
        self.expect_cut(named.as_ref());
        // A root of an earlier moment names what only the newest one had no more.
        let is_stale = self.hits.iter().any(Hit::brings_a_root_back);
        if self.is_proven && !is_stale && !fate.detected {
            self.fail("not detected");
        }
        let (truth, floor) = (self.truth.clone(), self.floor);
        self.work(&copy_of(disk), named.as_ref(), fate.detected, &mut fate);
        (self.truth, self.floor) = (truth, floor);
        if fate.detected {
            self.mend(disk, sound, atlas, &mut fate);
        }
        fate
    }
}

/// Whether a chunk has a second copy that no read looks for, since few map it by now. A check names
/// the damaged frame, but no chunk of a volume: scrub, collection and repair take the copy.
fn has_unused_copy(driver: &mut Driver, place: Place) -> bool {
    let explained = driver.explain(&volume_name(place.0), place.1);
    let stored = explained.and_then(|explained| explained.chunk).and_then(|chunk| chunk.place);
    stored
        .is_some_and(|stored| stored.second_copy.is_some() && stored.references <= COPIES_ABOVE / 2)
}
