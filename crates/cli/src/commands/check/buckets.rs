//! The buckets of a store that has no damage but lost chunks: each is opened read-only and held to
//! its index.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ::store::{LockWait, Store, Volume};
use admin::ObjectKey;
use buckets::is_being_repaired;
use engine::{Problem, VolumeKind};
use objects::bucket::{
    Bucket, BucketError, CheckOptions, DamagedObject, OpenOptions, UnreadableObjects,
};
use objects::index::IndexError;
use serde::Serialize;

use super::Stages;
use super::bucket_repair::{Repair, key_of};
use crate::error::CliError;
use crate::opener::opener;
use crate::output;
use crate::size::{counted, human_bytes};
use crate::store::question_options;

/// What a check of a bucket found.
#[derive(Default, Serialize)]
pub(super) struct Checked {
    name: String,
    objects: u64,
    object_bytes: u64,
    problem_count: u64,
    /// The first of them as sentences, or that its making was cut off, which is none.
    sentences: Vec<String>,
    damaged_count: u64,
    /// Keys of the first objects of which bytes are lost.
    damaged_keys: Vec<ObjectKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<Repair>,
    /// The first objects of which bytes are lost, in sentences.
    #[serde(skip)]
    damaged: Vec<String>,
}

impl Checked {
    fn damaged(name: String, sentence: String) -> Self {
        Self { name, problem_count: 1, sentences: vec![sentence], ..Self::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn objects(&self) -> u64 {
        self.objects
    }

    /// How many places are wrong.
    pub(super) fn problems(&self) -> u64 {
        self.problem_count
    }

    /// What its repair came to.
    pub(super) fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    pub(super) fn set_repair(&mut self, repair: Repair) {
        self.repair = Some(repair);
    }

    /// Names objects that have bytes in chunks which are lost.
    pub(super) fn set_damaged(&mut self, count: u64, told: &[DamagedObject]) {
        self.damaged_count = count;
        self.damaged_keys = told.iter().filter_map(|one| key_of(&one.owner)).collect();
        self.damaged = told.iter().map(ToString::to_string).collect();
    }

    pub(super) fn add_sentence(&mut self, sentence: String) {
        self.sentences.push(sentence);
    }
}

/// Checks all buckets of the store at `path`, of which `lost` chunks cannot be read; its snapshots
/// are as their bucket was.
pub(super) fn check(
    path: &Path,
    memory_bytes: u64,
    lost: &[Problem],
    stages: &mut Stages,
) -> Result<Vec<Checked>, CliError> {
    let mut options = question_options();
    options.engine.read_only = true;
    options.lock_wait = LockWait::default();
    let store = Store::open(path, options)?;
    let checked = check_all(&store, memory_bytes, lost, stages);
    stages.end_stage();
    let closed = store.close();
    let checked = checked?;
    closed?;
    Ok(checked)
}

fn check_all(
    store: &Store,
    memory_bytes: u64,
    lost: &[Problem],
    stages: &mut Stages,
) -> Result<Vec<Checked>, CliError> {
    let volumes = store.client().volumes()?;
    let buckets = volumes
        .into_iter()
        .filter(|volume| volume.kind == VolumeKind::Bucket && volume.taken_unix_s.is_none());
    buckets.map(|volume| check_one(store, volume.name, memory_bytes, lost, stages)).collect()
}

fn check_one(
    store: &Store,
    name: String,
    memory_bytes: u64,
    lost: &[Problem],
    stages: &mut Stages,
) -> Result<Checked, CliError> {
    if is_being_repaired(&name) {
        let sentence = "a repair of the bucket did not end; the next one removes this".to_owned();
        let unfinished = Checked { problem_count: 0, ..Checked::damaged(name, sentence) };
        return Ok(unfinished);
    }
    let client = store.client();
    let opened = client.open_volume(&name, opener("check"))?;
    let volume = Arc::new(Volume::new(client.clone(), opened));
    let options = OpenOptions { memory_bytes: memory_bytes / 2, read_only: true };
    let unreadable = unreadable_of(&name, lost);
    let found = Bucket::open(volume, &options).and_then(|bucket| {
        let total = bucket.figures().objects.max(1);
        let options = CheckOptions { memory_bytes: memory_bytes / 2, ..CheckOptions::default() };
        let found = bucket.check(&options, |records, _walk| {
            stages.show("checking buckets", records.min(total), total);
            Ok(())
        })?;
        let damaged = match unreadable.is_empty() {
            true => UnreadableObjects::default(),
            false => bucket.find_unreadable(&unreadable, options.problems_max, |records| {
                stages.show("looking for objects with lost chunks", records.min(total), total);
                Ok(())
            })?,
        };
        Ok((found, damaged))
    });
    stages.end_stage();
    match found {
        Ok((found, damaged)) => {
            let of_index = found.index.damage.iter().cloned();
            let of_bucket = found.problems.iter().map(ToString::to_string);
            let mut checked = Checked {
                name,
                objects: found.figures.objects,
                object_bytes: found.figures.object_bytes,
                problem_count: found.problem_count + found.index.damage.len() as u64,
                sentences: of_index.chain(of_bucket).collect(),
                ..Checked::default()
            };
            checked.set_damaged(damaged.count, &damaged.told);
            Ok(checked)
        }
        // A crash left it so; nothing is lost.
        Err(error @ BucketError::Index(IndexError::Unfinished)) => {
            Ok(Checked { name, sentences: vec![error.to_string()], ..Checked::default() })
        }
        // What cannot be opened or walked is damaged, unless it is the store that does not answer.
        Err(error) => match refused(error) {
            Err(error) => Err(error),
            Ok(sentence) => Ok(Checked::damaged(name, sentence)),
        },
    }
}

/// What is wrong with the bucket, or the error of the store.
fn refused(error: BucketError) -> Result<String, CliError> {
    let sentence = error.to_string();
    match CliError::from(admin::ControlError::from(error)) {
        CliError::Request(engine::RequestError::Damaged { .. }) | CliError::Refused(_) => {
            Ok(sentence)
        }
        error => Err(error),
    }
}

/// Chunks of a bucket's volume that are lost, in order.
pub(super) fn unreadable_of(name: &str, lost: &[Problem]) -> Vec<Range<u64>> {
    let of_bucket = lost.iter().filter_map(|problem| match problem {
        Problem::LostChunks { volume, lba, count, .. } if volume == name => {
            Some(*lba..lba.saturating_add(*count))
        }
        _ => None,
    });
    let mut ranges: Vec<Range<u64>> = of_bucket.collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges
}

/// Says what is wrong, what was repaired, and what was checked.
pub(super) fn print(checked: &[Checked]) -> Result<(), CliError> {
    for bucket in checked {
        let name = &bucket.name;
        for sentence in &bucket.sentences {
            output::print_problem(format_args!("bucket {name}: {sentence}"))?;
        }
        let held =
            |objects, bytes| format!("{} of {}", counted(objects, "object"), human_bytes(bytes));
        if let Some(repair) = &bucket.repair {
            let kept = held(repair.objects, repair.object_bytes);
            output::print_line(format_args!("bucket {name} has a new index: it keeps {kept}"))?;
            for sentence in &repair.sentences {
                output::print_problem(format_args!("bucket {name}: {sentence}"))?;
            }
        } else if bucket.sentences.is_empty() && !is_being_repaired(name) {
            let held = held(bucket.objects, bucket.object_bytes);
            let is_sound = if bucket.damaged_count > 0 { "has a sound index" } else { "is sound" };
            output::print_line(format_args!("bucket {name} {is_sound}: {held}"))?;
        }
        for sentence in &bucket.damaged {
            output::print_problem(format_args!("bucket {name}: {sentence}"))?;
        }
        let untold = bucket.damaged_count.saturating_sub(bucket.damaged.len() as u64);
        if untold > 0 {
            let more = counted(untold, "more object");
            output::print_problem(format_args!("bucket {name}: bytes of {more} are lost"))?;
        }
    }
    Ok(())
}
