//! `lab damage`: stores of the real engine are hit, checked, opened, repaired and read to the end.
//!
//! Of every hit it is asked: does the check see it, unless no byte changed that means anything? Is
//! every byte that is read right, or an error? Does a refusal name what is damaged? Is a repaired
//! store sound but for what the repair said is lost, do exactly those chunks fail, and can it be
//! written again? What the last sync before a crash wrote is a class of its own: nothing on disk
//! proves that it was there, so damage to it looks like an earlier crash, and the store must be
//! as it was a moment before.
//!
//! What is reported as lost is held against what is lost (`damage/once.rs`): every chunk that does
//! not hold what was flushed last must have been named, and "nothing is lost" is said only where
//! that is so.

pub(crate) mod atlas;
pub(crate) mod driver;
pub(crate) mod fate;
pub(crate) mod hit;
pub(crate) mod named;
pub(crate) mod once;
pub(crate) mod pair;
pub(crate) mod recorded;
pub(crate) mod store;
pub(crate) mod truth;
pub(crate) mod twice;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::damage::fate::Fate;
use crate::damage::hit::Hit;
use crate::damage::once::Trial;
use crate::damage::store::{KINDS, Sample};
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
    /// Of those that were repaired: without the file that was hit, left out as another's.
    pub without_zone: u64,
    /// Chunks do not hold what was flushed and proven, and nothing is left that could say so: all
    /// of the journal is gone from a record on.
    pub untold: u64,
}

/// What a run of hits came to.
#[derive(Clone, Debug, Default)]
pub struct DamageTable {
    /// By what was aimed at.
    pub rows: BTreeMap<String, DamageRow>,
    /// The same by how the store ended.
    pub ends: BTreeMap<&'static str, DamageRow>,
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
        Self::run_of(Hit::choose, seed, 0..hits, progress)
    }

    /// Damages stores `hits` times, each with a contiguous hit of 4 KiB to 1 MiB on one file.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_wide(seed: u64, hits: u64, progress: impl FnMut(u64)) -> Result<Self, String> {
        Self::run_of(Hit::wide, seed, 0..hits, progress)
    }

    /// Damages stores as [`Self::run`] does, one after the other, until something fails.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn first_failure(seed: u64, hits: u64) -> Result<Option<String>, String> {
        let samples = samples(seed)?;
        let (mut table, mut dice) = (Self::default(), Dice::new(seed));
        for number in 0..hits {
            table.strike(&Hit::choose, &samples, number, &mut dice);
            if let Some(failure) = table.failures.pop() {
                return Ok(Some(failure));
            }
        }
        Ok(None)
    }

    fn run_of(
        choose: impl Fn(&Sample, &mut Dice) -> Hit,
        seed: u64,
        numbers: Range<u64>,
        mut progress: impl FnMut(u64),
    ) -> Result<Self, String> {
        let samples = samples(seed)?;
        let (mut table, mut dice) = (Self::default(), Dice::new(seed));
        for number in numbers {
            table.strike(&choose, &samples, number, &mut dice);
            progress(number + 1);
        }
        Ok(table)
    }

    fn strike(
        &mut self,
        choose: &impl Fn(&Sample, &mut Dice) -> Hit,
        samples: &[Sample],
        number: u64,
        dice: &mut Dice,
    ) {
        let sample = &samples[(number % samples.len() as u64) as usize];
        let hit = choose(sample, dice);
        let mut trial = Trial::new(sample, &hit, dice.roll());
        let fate = catch_unwind(AssertUnwindSafe(|| trial.run()));
        let fate = fate.unwrap_or_else(|_| {
            trial.failures.push("a panic".to_owned());
            Fate::default()
        });
        let kind = sample.kind;
        for failure in trial.failures {
            self.failures.push(format!("hit {number} of {kind:?}, {hit:?}: {failure}"));
        }
        if let Some(refusal) = trial.refusal {
            *self.refusals.entry(refusal).or_default() += 1;
        }
        self.rows.entry(hit.aim.clone()).or_default().count(fate);
        self.ends.entry(kind.end()).or_default().count(fate);
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
            total.without_zone += row.without_zone;
            total.untold += row.untold;
        }
        total
    }

    /// The table as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let row = |(name, row): (&String, &DamageRow)| {
            let DamageRow { hits, detected, repaired, with_losses, refused, harmless, .. } = row;
            let DamageRow { like_a_crash, without_zone, untold, .. } = row;
            format!(
                "{{\"structure\":{name:?},\"hits\":{hits},\"detected\":{detected},\
                 \"repaired\":{repaired},\"with_losses\":{with_losses},\"refused\":{refused},\
                 \"harmless\":{harmless},\"like_a_crash\":{like_a_crash},\
                 \"without_zone\":{without_zone},\"untold\":{untold}}}"
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
             like a crash | without the file | untold |\n|---|---|---|---|---|---|---|---|---|---|"
        )?;
        let total = self.total();
        let ends = self.ends.iter().map(|(end, row)| (*end, row));
        let rows = self.rows.iter().map(|(name, row)| (name.as_str(), row));
        for (name, row) in rows.chain(ends).chain([("all", &total)]) {
            let DamageRow { hits, detected, repaired, with_losses, refused, harmless, .. } = row;
            let DamageRow { like_a_crash, without_zone, untold, .. } = row;
            writeln!(
                f,
                "| {name} | {hits} | {detected} | {repaired} | {with_losses} | {refused} | \
                 {harmless} | {like_a_crash} | {without_zone} | {untold} |"
            )?;
        }
        Ok(())
    }
}

impl DamageRow {
    /// A hit came to this.
    pub(crate) fn count(&mut self, fate: Fate) {
        self.hits += 1;
        self.detected += u64::from(fate.detected);
        self.repaired += u64::from(fate.repaired && !fate.lost);
        self.with_losses += u64::from(fate.repaired && fate.lost);
        self.refused += u64::from(fate.refused);
        self.like_a_crash += u64::from(fate.like_a_crash && !fate.detected);
        self.without_zone += u64::from(fate.without_zone);
        self.untold += u64::from(fate.untold);
        self.harmless += u64::from(!fate.detected && !fate.like_a_crash && !fate.untold);
    }
}

/// A store of each kind.
pub(crate) fn samples(seed: u64) -> Result<Vec<Sample>, String> {
    (0..).zip(KINDS).map(|(number, kind)| Sample::make(kind, seed + number)).collect()
}
