//! The buckets of a store that is sound itself: each is opened read-only and held to its index.

use std::path::Path;
use std::sync::Arc;

use ::store::{LockWait, Store, Volume};
use engine::VolumeKind;
use objects::bucket::{Bucket, BucketError, CheckOptions, OpenOptions};
use objects::index::IndexError;
use serde::Serialize;

use super::Stages;
use crate::error::CliError;
use crate::opener::opener;
use crate::output;
use crate::size::{counted, human_bytes};
use crate::store::question_options;

/// What a check of a bucket found.
#[derive(Serialize)]
pub(super) struct Checked {
    name: String,
    objects: u64,
    object_bytes: u64,
    problem_count: u64,
    /// The first of them as sentences, or that its making was cut off, which is none.
    sentences: Vec<String>,
}

impl Checked {
    /// How many places are wrong.
    pub(super) fn problems(&self) -> u64 {
        self.problem_count
    }
}

/// Checks all buckets of the store at `path`; its snapshots are as their bucket was.
pub(super) fn check(
    path: &Path,
    memory_bytes: u64,
    stages: &mut Stages,
) -> Result<Vec<Checked>, CliError> {
    let mut options = question_options();
    options.engine.read_only = true;
    options.lock_wait = LockWait::default();
    let store = Store::open(path, options)?;
    let checked = check_all(&store, memory_bytes, stages);
    stages.end_stage();
    let closed = store.close();
    let checked = checked?;
    closed?;
    Ok(checked)
}

fn check_all(
    store: &Store,
    memory_bytes: u64,
    stages: &mut Stages,
) -> Result<Vec<Checked>, CliError> {
    let volumes = store.client().volumes()?;
    let buckets = volumes
        .into_iter()
        .filter(|volume| volume.kind == VolumeKind::Bucket && volume.taken_unix_s.is_none());
    buckets.map(|volume| check_one(store, volume.name, memory_bytes, stages)).collect()
}

fn check_one(
    store: &Store,
    name: String,
    memory_bytes: u64,
    stages: &mut Stages,
) -> Result<Checked, CliError> {
    let client = store.client();
    let opened = client.open_volume(&name, opener("check"))?;
    let volume = Arc::new(Volume::new(client.clone(), opened));
    let options = OpenOptions { memory_bytes: memory_bytes / 2, read_only: true };
    let found = Bucket::open(volume, &options).and_then(|bucket| {
        let total = bucket.figures().objects;
        let options = CheckOptions { memory_bytes: memory_bytes / 2, ..CheckOptions::default() };
        bucket.check(&options, |records, _walk| {
            stages.show("checking buckets", records.min(total), total);
            Ok(())
        })
    });
    stages.end_stage();
    match found {
        Ok(found) => {
            let of_index = found.index.damage.iter().cloned();
            let of_bucket = found.problems.iter().map(ToString::to_string);
            Ok(Checked {
                name,
                objects: found.figures.objects,
                object_bytes: found.figures.object_bytes,
                problem_count: found.problem_count + found.index.damage.len() as u64,
                sentences: of_index.chain(of_bucket).collect(),
            })
        }
        // A crash left it so; nothing is lost.
        Err(error @ BucketError::Index(IndexError::Unfinished)) => Ok(Checked {
            name,
            objects: 0,
            object_bytes: 0,
            problem_count: 0,
            sentences: vec![error.to_string()],
        }),
        // What cannot be opened or walked is damaged, unless it is the store that does not answer.
        Err(error) => match refused(error) {
            Err(error) => Err(error),
            Ok(sentence) => Ok(Checked {
                name,
                objects: 0,
                object_bytes: 0,
                problem_count: 1,
                sentences: vec![sentence],
            }),
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

/// Says what is wrong, and what was checked.
pub(super) fn print(checked: &[Checked]) -> Result<(), CliError> {
    for bucket in checked {
        for sentence in &bucket.sentences {
            output::print_problem(format_args!("bucket {}: {sentence}", bucket.name))?;
        }
        if bucket.sentences.is_empty() {
            let (objects, bytes) =
                (counted(bucket.objects, "object"), human_bytes(bucket.object_bytes));
            output::print_line(format_args!(
                "bucket {} is sound: {objects} of {bytes}",
                bucket.name
            ))?;
        }
    }
    Ok(())
}
