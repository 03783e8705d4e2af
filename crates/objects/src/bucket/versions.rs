//! Numbers for versions of objects and for uploads: each is given once in the life of the bucket.
//!
//! The index has a number that none given out has reached. It is raised by [`STEP`] before the
//! first of a step is given, so a put changes it once in [`STEP`] times, and what a crash loses is
//! numbers.

use std::sync::{Mutex, PoisonError};

use format::objects::settings::{VERSIONS_SETTING, encode_number};
use store::Durability;

use super::error::BucketError;
use crate::index::{Change, Index, Table};

pub(super) const STEP: u64 = 1 << 16;

pub(super) struct Versions(Mutex<Numbers>);

struct Numbers {
    next: u64,
    /// As the index has it.
    end: u64,
}

impl Versions {
    /// Those from `end` on, which is what the index has.
    pub(super) fn new(end: u64) -> Self {
        Self(Mutex::new(Numbers { next: end, end }))
    }

    /// The number that is given next.
    pub(super) fn peek(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// The next number. Who asks for the version of an object holds the lock of its key.
    pub(super) fn next(&self, index: &dyn Index) -> Result<u64, BucketError> {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if numbers.next == numbers.end {
            let end = numbers.end.saturating_add(STEP);
            let (key, value) = (VERSIONS_SETTING.to_vec(), encode_number(end));
            let change = Change::Set { table: Table::Settings, key, value };
            index.apply(vec![change], Durability::Acknowledged)?;
            numbers.end = end;
        }
        let next = numbers.next;
        numbers.next += 1;
        Ok(next)
    }
}
