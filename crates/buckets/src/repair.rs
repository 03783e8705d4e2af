//! A bucket whose index is damaged is made anew beside itself, and then is what was made.
//!
//! ```text
//! NAME ─ snapshot ─> clone NAME~repairing ─ new index ─ checked ─ snapshot ─> NAME goes back to it
//!   └──────────────────────── as it was, until that one record ─────────────────────┘
//! ```
//!
//! The clone shares all values with the bucket, so that only the index is written. `Rollback` lets
//! the bucket hold what the clone's snapshot holds, in one record of the store's journal; it keeps
//! its name, number, snapshots and settings. A kill before that record leaves the bucket as it was,
//! and one behind it leaves it repaired; the clone and the marks are nobody's in both cases, and
//! the next repair removes them.

use std::ops::Range;
use std::sync::Arc;

use engine::control::{DeleteRequest, Rollback, SnapshotRequest};
use engine::{Client, Opener, VolumeInfo, VolumeKind};
use objects::bucket::{
    Bucket, BucketCheck, BucketError, BucketRepair, CheckOptions, OpenOptions, RepairOptions,
    RepairStage,
};
use store::{RequestError, Volume};

use crate::copies::check_not_replicated;
use crate::error::BucketsError;
use crate::now_unix_ms;

/// Ends the names of what a repair that has not ended has made.
pub const REPAIRING_SUFFIX: &str = "~repairing";

/// The snapshot of the clone when its index is whole.
const WHOLE: &str = "whole";

/// How a bucket of a store is repaired.
#[derive(Clone, Debug)]
pub struct BucketRepairOptions {
    /// Memory for the new index and for counting.
    pub memory_bytes: u64,
    /// Chunks of the bucket's volume that the store knows to be lost, in order.
    pub unreadable: Vec<Range<u64>>,
    /// Who opens the volumes, as the store lists it.
    pub opened_by: String,
}

/// Whether a volume is what a repair has made for itself.
///
/// ```
/// assert!(buckets::is_being_repaired("photos~repairing"));
/// assert!(!buckets::is_being_repaired("photos"));
/// ```
#[must_use]
pub fn is_being_repaired(volume: &str) -> bool {
    volume.ends_with(REPAIRING_SUFFIX)
}

/// Repairs the bucket `name`, which nobody else has open. `progress` is called with a stage and how
/// much of it is done; an error of it ends the repair, and the bucket is as it was.
///
/// # Errors
/// [`BucketsError::NoSuchBucket`]; [`BucketsError::NotRepaired`] when the new index is not whole;
/// [`BucketsError`]. The bucket is as it was.
pub fn repair_bucket(
    client: &Client,
    name: &str,
    options: &BucketRepairOptions,
    mut progress: impl FnMut(&'static str, u64) -> Result<(), BucketError>,
) -> Result<BucketRepair, BucketsError> {
    let work = Work { client, name, clone: format!("{name}{REPAIRING_SUFFIX}"), options };
    if find(client, name)?.is_none() {
        return Err(BucketsError::NoSuchBucket { name: name.to_owned() });
    }
    check_not_replicated(client, name, &options.opened_by)?;
    remove_leftovers(client, name)?;
    work.make_clone()?;
    let repaired = work.fill_clone(&mut progress).and_then(|report| {
        progress(SWITCHING, 0)?;
        work.switch()?;
        progress(SWITCHING, 1)?;
        Ok(report)
    });
    // What is left is nobody's, whatever the repair came to; the next one removes it.
    let _ = remove_leftovers(client, name);
    repaired
}

const SWITCHING: &str = "taking the repaired bucket";

/// Removes what repairs of a bucket that were killed have left.
///
/// # Errors
/// [`BucketsError::InUse`], [`BucketsError::Request`].
pub fn remove_leftovers(client: &Client, name: &str) -> Result<(), BucketsError> {
    let clone = format!("{name}{REPAIRING_SUFFIX}");
    if let Some(volume) = find(client, &clone)? {
        delete(client, &volume, true)?;
    }
    match find(client, &format!("{name}@{}", mark()))? {
        Some(snapshot) => delete(client, &snapshot, false),
        None => Ok(()),
    }
}

/// The snapshot of the bucket that the clone is made of.
fn mark() -> String {
    format!("before{REPAIRING_SUFFIX}")
}

fn find(client: &Client, name: &str) -> Result<Option<VolumeInfo>, BucketsError> {
    let all = client.volumes()?;
    let is_it = |volume: &VolumeInfo| volume.name == name && volume.kind == VolumeKind::Bucket;
    Ok(all.into_iter().find(is_it))
}

fn delete(client: &Client, volume: &VolumeInfo, with_snapshots: bool) -> Result<(), BucketsError> {
    let id = Some(volume.id);
    let request = DeleteRequest { id, with_snapshots, ..DeleteRequest::of(&volume.name) };
    client.ask(request).map_err(|error| match error {
        RequestError::InUse { name, .. } => BucketsError::InUse { name },
        error => error.into(),
    })
}

/// One repair.
struct Work<'a> {
    client: &'a Client,
    name: &'a str,
    clone: String,
    options: &'a BucketRepairOptions,
}

impl Work<'_> {
    fn snapshot(&self, volume: &str, name: &str) -> Result<String, BucketsError> {
        self.client.ask(SnapshotRequest {
            volumes: vec![volume.to_owned()],
            name: name.to_owned(),
            taken_unix_s: now_unix_ms() / 1000,
        })?;
        Ok(format!("{volume}@{name}"))
    }

    fn make_clone(&self) -> Result<(), BucketsError> {
        let snapshot = self.snapshot(self.name, &mark())?;
        self.client.clone_volume(&snapshot, &self.clone)?;
        Ok(())
    }

    fn volume(&self, name: &str) -> Result<Volume, BucketsError> {
        let opener = Opener::new(self.options.opened_by.clone(), now_unix_ms() / 1000);
        let opened = self.client.open_volume(name, opener)?;
        Ok(Volume::new(self.client.clone(), opened))
    }

    /// Makes the new index in the clone, and holds it to be whole.
    fn fill_clone(
        &self,
        progress: &mut impl FnMut(&'static str, u64) -> Result<(), BucketError>,
    ) -> Result<BucketRepair, BucketsError> {
        let memory_bytes = self.options.memory_bytes / 2;
        let unreadable = self.options.unreadable.clone();
        let options = RepairOptions { memory_bytes, unreadable, ..RepairOptions::default() };
        let damaged = Arc::new(self.volume(self.name)?);
        let target = Arc::new(self.volume(&self.clone)?);
        let report =
            objects::bucket::repair(damaged, target.clone(), &options, &mut |stage, done| {
                progress(stage_name(stage), done)
            })?;
        let bucket = Bucket::open(target, &OpenOptions { memory_bytes, read_only: true })?;
        let options = CheckOptions { memory_bytes, ..CheckOptions::default() };
        let check = bucket.check(&options, |done, _| progress("checking the new index", done))?;
        match check.is_whole() {
            true => Ok(report),
            false => Err(not_repaired(self.name, &check)),
        }
    }

    /// Lets the bucket be what the clone is, in one record.
    fn switch(&self) -> Result<(), BucketsError> {
        let snapshot = self.snapshot(&self.clone, WHOLE)?;
        let volume = Some(self.name.to_owned());
        self.client.ask(Rollback { snapshot, volume, id: None })?;
        Ok(())
    }
}

fn stage_name(stage: RepairStage) -> &'static str {
    match stage {
        RepairStage::Reading => "reading the damaged index",
        RepairStage::Judging => "looking at records",
        RepairStage::Counting(_) => "counting who names what",
    }
}

fn not_repaired(name: &str, check: &BucketCheck) -> BucketsError {
    let of_bucket = check.problems.first().map(ToString::to_string);
    let first = check.index.damage.first().cloned().or(of_bucket).unwrap_or_default();
    BucketsError::NotRepaired { name: name.to_owned(), first }
}
