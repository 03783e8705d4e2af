//! Removes objects that have expired, a bounded step at a time.
//!
//! They are none for every reader already; this gives back what they take.

use std::sync::atomic::Ordering;

use format::objects::expiry::{decode_expiry_key, expiry_key};

use super::error::BucketError;
use super::{Bucket, Core};
use crate::index::{Index, Table};

/// Objects that are removed in one batch.
const BATCH_OBJECTS: usize = 64;

/// What a call of [`Bucket::expire_some`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Objects that were removed.
    pub objects: u64,
    /// Entries of the table that no object stood behind: a fault of this program, mended.
    pub stale: u64,
    /// Objects that stay because their records are damaged; a check names them.
    pub damaged: u64,
    /// Nothing is left that has expired.
    pub is_done: bool,
}

impl Bucket {
    /// Removes up to about `objects_max` objects that have expired by `now_ms`.
    ///
    /// # Errors
    /// [`BucketError`]; what was removed stays so.
    pub fn expire_some(&self, now_ms: u64, objects_max: u64) -> Result<Expired, BucketError> {
        self.core.check_writable()?;
        let mut expired = Expired::default();
        let mut from = Vec::new();
        while expired.objects + expired.stale < objects_max {
            let left = objects_max - expired.objects - expired.stale;
            let limit = left.min(BATCH_OBJECTS as u64) as usize;
            let entries = self.core.index.scan(Table::Expiry, &from, limit)?;
            let mut due: Vec<(u64, &[u8])> = Vec::with_capacity(entries.len());
            for (key, _) in &entries {
                let (time, key) = decode_expiry_key(key)?;
                if time > now_ms {
                    break;
                }
                due.push((time, key));
            }
            if due.is_empty() {
                expired.is_done = true;
                break;
            }
            self.core.expire(&due, &mut expired)?;
            if let Some(&(time, key)) = due.last() {
                // A damaged one stays; those behind it are looked at next.
                from = [expiry_key(time, key).as_slice(), &[0]].concat();
            }
        }
        Ok(expired)
    }
}

impl Core {
    fn expire(&self, due: &[(u64, &[u8])], expired: &mut Expired) -> Result<(), BucketError> {
        let mut edit = self.edit(due.iter().map(|(_, key)| *key));
        let mut batch = Expired::default();
        for &(time, key) in due {
            let entry = expiry_key(time, key);
            if self.index.get(Table::Expiry, &entry)?.is_none() {
                continue; // The object was replaced since the scan.
            }
            let record = match self.record(key) {
                Err(BucketError::DamagedEntry(_)) => {
                    batch.damaged += 1;
                    continue;
                }
                record => record?,
            };
            match record.filter(|record| record.expires_unix_ms == Some(time)) {
                Some(record) => {
                    edit.remove_object(key, &record)?;
                    batch.objects += 1;
                }
                None => {
                    edit.remove(Table::Expiry, entry);
                    batch.stale += 1;
                }
            }
        }
        edit.apply()?;
        self.expired.fetch_add(batch.objects, Ordering::Relaxed);
        expired.objects += batch.objects;
        expired.stale += batch.stale;
        expired.damaged += batch.damaged;
        Ok(())
    }
}
