//! A store whose medium holds wrong bytes: what a check names, what can be read, and what a repair
//! makes of it.
//!
//! What cannot be read is what the check names, chunk by chunk. A store that is not opened is named
//! by a sentence, and by a check. A repair loses what the check called lost and nothing else: all
//! that was flushed is there but for that. What is lost is then abandoned or written again, and the
//! store lives on like any other.

use std::collections::BTreeSet;

use disk::{Loss, MemoryDisk};
use engine::{CheckReport, GivenUp, Problem, RepairError, RepairReport};

use crate::damage::fate::must_name_a_structure;
use crate::failure::Broken;
use crate::oracle::{CHUNK_BYTES, Oracle, Register};
use crate::range::Range;
use crate::script::Shape;
use crate::session::Session;
use crate::simulation::aside::compare_damaged;
use crate::simulation::opening::{Opening, strange, volume_of_name};
use crate::simulation::tap::{Ear, Watch};
use crate::simulation::trouble::Trouble;
use crate::workload::SECTORS;

/// Lost chunks that are written again, all in all: a page may stand for more of them than a store
/// has room for.
const WRITTEN_AGAIN_MAX: usize = 256;

/// What a check says of a store.
#[derive(Default)]
pub(crate) struct Names {
    /// Chunks of volumes that are lost.
    lost: BTreeSet<Register>,
    /// The same until a repair.
    hidden: BTreeSet<Register>,
    /// Whether a page is damaged: what was in it, and if it was anything, nobody knows.
    page: bool,
    /// Whether it is an inner one.
    inner: bool,
    /// The first of all.
    first: Option<Problem>,
}

impl Names {
    fn of(report: CheckReport) -> Result<Self, Broken> {
        let mut names = Self { first: report.problems.first().cloned(), ..Self::default() };
        for problem in report.problems {
            match &problem {
                Problem::LostChunks { volume, lba, count, .. } => {
                    names.lost.extend(chunks(volume, *lba, *count)?);
                }
                Problem::HiddenChunks { volume, lba, count, .. } => {
                    names.hidden.extend(chunks(volume, *lba, *count)?);
                }
                Problem::DamagedPage { .. } => names.page = true,
                Problem::DamagedInnerPage { .. } => (names.page, names.inner) = (true, true),
                _ => {}
            }
        }
        Ok(names)
    }

    /// Whether a chunk is named, or is in a page that is, where nothing may have been.
    fn has(&self, register: Register, may_be_nothing: bool) -> bool {
        let is_named = |register| self.lost.contains(&register) || self.hidden.contains(&register);
        is_named(register) || self.page && may_be_nothing
    }
}

fn chunks(name: &str, first: u64, count: u64) -> Result<impl Iterator<Item = Register>, Broken> {
    let slot = volume_of_name(name).ok_or_else(|| strange("a check", &name))?;
    Ok((first..first + count).map(move |lba| Register::Chunk(slot, lba)))
}

fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    disk.left_by_power_loss(0, Loss::None)
}

/// A store whose medium holds wrong bytes, in its last life with an oracle that knows no better.
pub(crate) struct Damaged<'a> {
    pub(crate) disk: &'a MemoryDisk,
    pub(crate) shape: &'a Shape,
    pub(crate) trouble: Trouble,
    /// Effects that are there in any case.
    pub(crate) flushed: usize,
}

impl Damaged<'_> {
    /// It is refused, or every chunk reads as it must or not at all; and it can be repaired. Gives
    /// the repaired store, nothing of which is lost any more, closed, and how many PBNs name
    /// nothing in it; none if there can be none.
    pub(crate) fn judge(&self, oracle: &mut Oracle) -> Result<Option<(MemoryDisk, u64)>, Broken> {
        let disk = copy_of(self.disk);
        let names = match engine::check(Box::new(copy_of(&disk)), &mut |_| {}) {
            Ok(report) => Some(Names::of(report)?),
            Err(error) if self.trouble.harms_tables() => {
                must_be_named(&error.to_string())?;
                None
            }
            Err(error) => return Err(Broken::DoesNotOpen(error)),
        };
        self.open(oracle, names.as_ref())?;
        let may_be_too_much = names.as_ref().is_none_or(|of| of.inner);
        let repair = |volumes: &[String]| {
            let given_up = GivenUp { volumes, ..GivenUp::default() };
            engine::repair_without(Box::new(disk.clone()), &given_up, &mut |_| {})
        };
        let repaired = match repair(&[]) {
            // An inner page that is lost stands for more leaves than there may be blocks.
            Err(RepairError::TooMuchLost { volumes, .. }) if may_be_too_much => repair(&volumes),
            repaired => repaired,
        };
        match repaired {
            // Which volumes there were is in one page.
            Err(RepairError::Catalog { .. }) if self.trouble.harms_tables() => Ok(None),
            Err(error) => Err(strange("a repair", &error)),
            Ok(report) => {
                let given_up = self.use_repaired(&disk, oracle, names.as_ref(), &report)?;
                Ok(Some((disk, given_up)))
            }
        }
    }

    fn open(&self, oracle: &Oracle, names: Option<&Names>) -> Result<(), Broken> {
        let ear = Ear::new(Watch::Nothing, 0, 0);
        let mut opening = match Opening::new(self.disk, self.shape, ear) {
            Err(Broken::DoesNotOpen(error)) if self.trouble.harms_tables() => {
                must_be_named(&error.to_string())?;
                return match names {
                    Some(Names { first: None, .. }) => Err(Broken::DoesNotOpen(error)),
                    _ => Ok(()),
                };
            }
            opening => opening?,
        };
        let unreadable = compare_damaged(&mut opening, oracle, self.flushed, self.trouble)?;
        let Some(names) = names else { return Ok(()) };
        for register in unreadable {
            let may_be_nothing = oracle.may_be_nothing(register, self.flushed);
            if !names.has(register, may_be_nothing) && !opening.has_unused_copy(register)? {
                return Err(strange("a read that fails", &(register, "no check names it")));
            }
        }
        Ok(())
    }

    /// What is lost after a repair is what the check had called so, and all else is there.
    fn use_repaired(
        &self,
        disk: &MemoryDisk,
        oracle: &mut Oracle,
        names: Option<&Names>,
        report: &RepairReport,
    ) -> Result<u64, Broken> {
        let check = engine::check(Box::new(copy_of(disk)), &mut |_| {});
        let check = check.map_err(Broken::DoesNotOpen)?;
        let is_loss = |problem: &&Problem| matches!(problem, Problem::LostChunks { .. });
        if let Some(problem) = check.problems.iter().find(|problem| !is_loss(problem)) {
            return Err(strange("a repair, and then a check,", problem));
        }
        let lost = Names::of(check)?.lost;
        if lost.len() as u64 != report.lost_chunks {
            let (what, said) = ("chunks that a repair lost", report.lost_chunks);
            return Err(Broken::Figure { what, said, counted: lost.len() as u64 });
        }
        let gone: Vec<u32> =
            report.given_up.iter().filter_map(|name| volume_of_name(name)).collect();
        for volume in &gone {
            oracle.give_up(*volume);
        }
        let is_gone = |of: &&Register| matches!(of, Register::Chunk(of, _) if gone.contains(of));
        let mut unlike = names.iter().flat_map(|of| lost.symmetric_difference(&of.lost));
        if let Some(register) = unlike.find(|register| !is_gone(register)) {
            return Err(strange("a repair", &(register, "is lost for the check or for it alone")));
        }
        let ear = Ear::new(Watch::Nothing, 0, 0);
        let mut opening = Opening::new(disk, self.shape, ear)?;
        opening.tolerant = Some(self.trouble);
        let given_up = opening.stats()?.given_up_chunks;
        let found = opening.find(oracle)?;
        // Holes in a page that was lost are no holes any more.
        let is_read = |register: &&Register| !found.unreadable.contains(register);
        if let Some(register) = lost.iter().filter(|of| oracle.knows(**of)).find(is_read) {
            return Err(strange("a read of what is lost", register));
        }
        if let Some(register) = found.unreadable.difference(&lost).next() {
            return Err(strange("a read after a repair", &(register, "fails")));
        }
        oracle.explain(self.flushed, &found)?;
        oracle.settle(found);
        let mut session = Session::new(opening, std::mem::take(oracle), self.shape);
        let ended = session.give_up(&lost).and_then(|()| session.close());
        *oracle = session.oracle;
        ended.map(|()| given_up)
    }
}

fn must_be_named(sentence: &str) -> Result<(), Broken> {
    match must_name_a_structure(sentence) {
        Some(failure) => Err(strange("an opening", &failure)),
        None => Ok(()),
    }
}

impl Session<'_> {
    /// What is lost is written again, or unmapped where that needs no reading; snapshots that have
    /// lost anything are deleted.
    fn give_up(&mut self, lost: &BTreeSet<Register>) -> Result<(), Broken> {
        let mut written = 0;
        for register in lost {
            let Register::Chunk(volume, lba) = *register else { continue };
            let Some(entry) = self.oracle.volume(volume).cloned() else { continue };
            if entry.read_only {
                self.delete(volume)?;
                continue;
            }
            let range = Range { volume, first: lba * SECTORS, count: SECTORS };
            let is_whole = (lba + 1) * CHUNK_BYTES as u64 <= entry.size_bytes;
            let may_write = is_whole && !self.shape.tight && entry.quota.is_none();
            if may_write && lba.is_multiple_of(2) && written < WRITTEN_AGAIN_MAX {
                self.write(range, lba, false)?;
                written += 1;
            } else {
                self.trim(range, false)?;
            }
        }
        self.come_to_rest()
    }
}
