//! `tamis check --repair` of buckets: those with faults get a new index, one after the other.

use std::path::Path;

use ::store::{LockWait, Store};
use admin::ObjectKey;
use buckets::{BucketRepairOptions, is_being_repaired, remove_leftovers, repair_bucket};
use engine::Problem;
use objects::bucket::{BucketRepair, LostPart, Owner};
use serde::Serialize;

use super::Stages;
use super::buckets::{Checked, unreadable_of};
use crate::error::CliError;
use crate::opener::opener;
use crate::store::question_options;

/// What a repair of a bucket came to.
#[derive(Serialize)]
pub(super) struct Repair {
    pub(super) objects: u64,
    pub(super) object_bytes: u64,
    lost_count: u64,
    /// Keys of the first objects that are lost and are known one by one.
    lost_keys: Vec<ObjectKey>,
    /// What is lost, in sentences.
    pub(super) sentences: Vec<String>,
}

impl Repair {
    fn of(report: &BucketRepair) -> Self {
        let lost = report.lost.iter().filter_map(|part| match part {
            LostPart::One { owner, .. } => key_of(owner),
            _ => None,
        });
        Self {
            objects: report.figures.objects,
            object_bytes: report.figures.object_bytes,
            lost_count: report.lost_count,
            lost_keys: lost.collect(),
            sentences: report.lost.iter().map(ToString::to_string).collect(),
        }
    }

    /// How many parts of the bucket are lost.
    pub(super) fn losses(&self) -> u64 {
        self.lost_count
    }
}

/// The key of an object; none: it is a part of an upload.
pub(super) fn key_of(owner: &Owner) -> Option<ObjectKey> {
    match owner {
        Owner::Object { key } => Some(ObjectKey(key.clone())),
        Owner::Upload { .. } | Owner::Part { .. } => None,
    }
}

/// Repairs those of `checked` that have faults; `lost` are chunks that the store cannot read.
/// Returns whether a bucket has a new index.
pub(super) fn repair(
    path: &Path,
    memory_bytes: u64,
    lost: &[Problem],
    checked: &mut Vec<Checked>,
    stages: &mut Stages,
) -> Result<bool, CliError> {
    let is_concerned = |bucket: &Checked| bucket.problems() > 0 || is_being_repaired(bucket.name());
    if !checked.iter().any(is_concerned) {
        return Ok(false);
    }
    let mut options = question_options();
    options.lock_wait = LockWait::default();
    let store = Store::open(path, options)?;
    let repaired = repair_all(&store, memory_bytes, lost, checked, stages);
    stages.end_stage();
    let closed = store.close();
    repaired?;
    checked.retain(|bucket| !is_being_repaired(bucket.name()));
    closed?;
    Ok(checked.iter().any(|bucket| bucket.repair().is_some()))
}

fn repair_all(
    store: &Store,
    memory_bytes: u64,
    lost: &[Problem],
    checked: &mut [Checked],
    stages: &mut Stages,
) -> Result<(), CliError> {
    for bucket in checked {
        if let Some(name) = bucket.name().strip_suffix(buckets::REPAIRING_SUFFIX) {
            remove_leftovers(store.client(), name).map_err(admin::ControlError::from)?;
        } else if bucket.problems() > 0 {
            let options = BucketRepairOptions {
                memory_bytes,
                unreadable: unreadable_of(bucket.name(), lost),
                opened_by: opener("check").who,
            };
            let total = bucket.objects();
            let mut show = |stage, done: u64| {
                stages.show(stage, done.min(total.max(1)), total.max(1));
                Ok(())
            };
            match repair_bucket(store.client(), bucket.name(), &options, &mut show) {
                Ok(report) => {
                    bucket.set_repair(Repair::of(&report));
                    bucket.set_damaged(report.damaged_count, &report.damaged);
                }
                // What is wrong with one bucket keeps no other one from being repaired.
                Err(error) => bucket.add_sentence(format!("the repair failed: {error}")),
            }
            stages.end_stage();
        }
    }
    Ok(())
}
