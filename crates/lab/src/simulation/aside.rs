//! What is looked at after a crash: does the store open, is it whole, does it hold a prefix?

use std::collections::BTreeSet;

use disk::{Loss, MemoryDisk};
use engine::{CheckReport, Problem, control};

use crate::failure::Broken;
use crate::oracle::{CHUNK_BYTES, Found, Oracle, Register, Value};
use crate::script::Shape;
use crate::simulation::opening::{Opening, strange};
use crate::simulation::tap::{Ear, Point, Watch};
use crate::simulation::trouble::Trouble;

/// One of so many stores that were opened after a crash is closed and checked: what a check leaves
/// to an opening must have been mended by then.
const CLOSED_ONE_IN: u64 = 8;

/// How many crashes were looked at aside of a run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// At a write of the run.
    pub crashes: u64,
    /// At a write of the recovery after such a crash.
    pub recoveries: u64,
    /// Of all, those at which the journal was cut before a record without its frames.
    pub cuts: u64,
    /// Of all, those at which the newest root slot was lost.
    pub older_roots: u64,
}

impl Points {
    /// Adds those of another run.
    pub fn add(&mut self, other: Self) {
        self.crashes += other.crashes;
        self.recoveries += other.recoveries;
        self.cuts += other.cuts;
        self.older_roots += other.older_roots;
    }

    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        self.crashes + self.recoveries
    }
}

/// Looks at what one crash would leave, and at a crash of the recovery from it.
pub(crate) fn look(
    point: &Point,
    oracle: &Oracle,
    shape: &Shape,
    points: &mut Points,
) -> Result<(), (String, Broken)> {
    look_with(point, shape.seed, points, |point, ear, points| {
        recover(point, oracle, shape, ear, points)
    })
}

/// The same with a recovery, and a comparison, of the caller's.
pub(crate) fn look_with(
    point: &Point,
    seed: u64,
    points: &mut Points,
    recover: impl Fn(&Point, &Ear, &mut Points) -> Result<(), Broken>,
) -> Result<(), (String, Broken)> {
    points.crashes += 1;
    let place = format!("{} at write {}", point.crash, point.write);
    let ear = Ear::new(Watch::One, seed ^ point.write, point.flushed);
    recover(point, &ear, points).map_err(|broken| (place.clone(), broken))?;
    for second in ear.take_points() {
        points.recoveries += 1;
        let ear = Ear::new(Watch::Nothing, 0, point.flushed);
        recover(&second, &ear, points).map_err(|broken| {
            let recovery = format!("{} at write {} of the recovery", second.crash, second.write);
            (format!("{place}, {recovery}"), broken)
        })?;
    }
    Ok(())
}

fn recover(
    point: &Point,
    oracle: &Oracle,
    shape: &Shape,
    ear: &Ear,
    points: &mut Points,
) -> Result<(), Broken> {
    let told = check_crashed(&point.disk)?.problems;
    let mut opening = Opening::new(&point.disk, shape, ear.clone())?;
    ear.heard().stop();
    let is_in_doubt = opening.report.cut && told.iter().any(is_slot);
    if told.iter().any(is_cut) != is_in_doubt {
        return Err(strange("what a check says of a cut journal", &told));
    }
    points.cuts += u64::from(opening.report.cut);
    points.older_roots += u64::from(opening.report.older_root);
    compare(&mut opening, oracle, point.flushed)?;
    if point.write.is_multiple_of(CLOSED_ONE_IN) {
        opening.administer(control::Close {})?;
        check_but_for(&point.disk.left_by_power_loss(0, Loss::All), is_slot)?;
    }
    Ok(())
}

/// Every invariant of a store at rest.
pub(crate) fn check(disk: &MemoryDisk) -> Result<(), Broken> {
    check_but_for(disk, |_| false).map(drop)
}

/// The same after a crash. A root slot is lost on purpose with some, and a check has to say so; and
/// that it cannot tell what the crash left unfinished from what it damaged.
pub(crate) fn check_crashed(disk: &MemoryDisk) -> Result<CheckReport, Broken> {
    check_but_for(disk, |problem| is_slot(problem) || is_cut(problem))
}

fn is_slot(problem: &Problem) -> bool {
    matches!(problem, Problem::RootSlot { .. })
}

fn is_cut(problem: &Problem) -> bool {
    matches!(problem, Problem::CutJournal { .. })
}

fn check_but_for(
    disk: &MemoryDisk,
    meant: impl Fn(&Problem) -> bool,
) -> Result<CheckReport, Broken> {
    let report = engine::check(Box::new(disk.clone()), &mut |_| {}).map_err(Broken::DoesNotOpen)?;
    let problems: Vec<_> = report.problems.iter().filter(|problem| !meant(problem)).collect();
    match problems.first() {
        None => Ok(report),
        Some(first) => {
            Err(Broken::Inconsistent { count: problems.len(), first: first.to_string() })
        }
    }
}

/// What an opened store holds, if a prefix explains it and its figures are those of its contents.
pub(crate) fn compare(
    opening: &mut Opening,
    oracle: &Oracle,
    flushed: usize,
) -> Result<Found, Broken> {
    let found = opening.find(oracle)?;
    oracle.explain(flushed, &found)?;
    let geometry = opening.geometry()?;
    let is_there = |(zone, grown): (usize, &u32)| geometry.data.get(zone) >= Some(grown);
    if !oracle.grown.iter().enumerate().all(is_there) {
        return Err(strange("a growth, before a crash", &geometry.data));
    }
    if oracle.zones_gone & !geometry.features.zones_gone != 0 {
        return Err(strange("a zone that was taken out, before a crash", &geometry.features));
    }
    compare_figures(opening, &found, geometry.detection.asides || oracle.has_asides)?;
    Ok(found)
}

/// What an opened store holds on a disk that something is wrong with: a prefix explains what can be
/// read, and no more than a few stored chunks cannot: these.
pub(crate) fn compare_damaged(
    opening: &mut Opening,
    oracle: &Oracle,
    flushed: usize,
    trouble: Trouble,
) -> Result<BTreeSet<Register>, Broken> {
    opening.tolerant = Some(trouble);
    let found = opening.find(oracle)?;
    oracle.explain(flushed, &found)?;
    let said = oracle.contents(&found.unreadable, flushed);
    let most = trouble.costs_chunks_max(opening.has_twins);
    if said > most {
        let what = "stored chunks that cannot be read";
        return Err(Broken::Figure { what, said, counted: most });
    }
    Ok(found.unreadable)
}

/// Deduplication is exact: as many chunks are stored as there are different contents, counted in
/// each domain, once deletions have ended. Where contents have twins, a volume has had no
/// deduplication, or a frame could not be read to be compared, it may be more, for what is aside is
/// not found again; but each is mapped somewhere.
fn compare_figures(opening: &mut Opening, found: &Found, has_asides: bool) -> Result<(), Broken> {
    let chunks = |value: &Value| match value {
        Value::Chunk(bytes) => Some(std::sync::Arc::clone(bytes)),
        _ => None,
    };
    let stats = opening.stats()?;
    if stats.deletions + stats.deletions_held > 0 {
        return Ok(());
    }
    let of_volume = |slot| found.volume(slot).is_some_and(|entry| !entry.is_snapshot());
    let (mut mapped, mut contents) = (0, Vec::new());
    for (at, value) in &found.values {
        let (Register::Chunk(slot, _), Some(bytes)) = (at, chunks(value)) else { continue };
        mapped += u64::from(of_volume(*slot));
        contents.push((found.volume(*slot).and_then(|entry| entry.domain.as_ref()), bytes));
    }
    let most = contents.len() as u64;
    contents.sort_unstable();
    contents.dedup();
    if stats.unique_chunks > most {
        let (what, said) = ("unique chunks, more than LBAs", stats.unique_chunks);
        return Err(Broken::Figure { what, said, counted: most });
    }
    let figures = [
        ("mapped bytes", stats.logical_bytes, mapped * CHUNK_BYTES as u64),
        ("unique chunks", stats.unique_chunks, contents.len() as u64),
    ];
    for (what, said, counted) in figures {
        let may_be_more = what == "unique chunks" && (opening.has_twins || has_asides);
        if said < counted || said > counted && !may_be_more {
            return Err(Broken::Figure { what, said, counted });
        }
    }
    Ok(())
}
