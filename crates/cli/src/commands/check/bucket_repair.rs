//! `tamis check --repair` of buckets: those with faults get a new index, one after the other.

use std::path::Path;

use ::store::{LockWait, Store};
use buckets::{BucketRepairOptions, is_being_repaired, remove_leftovers, repair_bucket};
use engine::Problem;

use super::Stages;
use super::bucket_report::{Checked, Repair};
use super::buckets::unreadable_of;
use crate::error::CliError;
use crate::opener::opener;
use crate::store::question_options;

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
