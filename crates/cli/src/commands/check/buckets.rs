//! The buckets of a store that has no damage but lost chunks: each is opened read-only and held to
//! its index.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ::store::{LockWait, Store, Volume};
use buckets::{holds_mixture, is_being_repaired};
use engine::{Problem, VolumeKind};
use objects::bucket::{Bucket, BucketError, CheckOptions, OpenOptions, UnreadableObjects};
use objects::index::IndexError;

use super::Stages;
use super::bucket_report::Checked;
use crate::error::CliError;
use crate::opener::opener;
use crate::store::question_options;

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
        return Ok(Checked::unfinished(name, sentence));
    }
    let client = store.client();
    let opened = client.open_volume(&name, opener("check"))?;
    let volume = Arc::new(Volume::new(client.clone(), opened));
    if holds_mixture(&volume) {
        let sentence = "it is a replica that has not been compared to its end".to_owned();
        return Ok(Checked::unfinished(name, sentence));
    }
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
            let mut checked = Checked::of(name, &found);
            checked.set_damaged(damaged.count, &damaged.told);
            Ok(checked)
        }
        // A crash left it so; nothing is lost.
        Err(error @ BucketError::Index(IndexError::Unfinished)) => {
            Ok(Checked::unfinished(name, error.to_string()))
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
