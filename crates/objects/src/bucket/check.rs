//! Whether a bucket is whole: what `tamis check` asks of it. It repairs nothing.
//!
//! ```text
//! index: every page, twice ─ records: readable, counted, expiry and uploads agree
//!                                  └─ value space: each chunk in one state, a window at a time
//! ```
//!
//! Nobody may change the bucket meanwhile: it is that of a snapshot, or nobody else has opened it.
//! The value space is counted in as many walks over all records as `memory_bytes` asks for: one
//! walk for about `memory_bytes` / 256 ranges that objects have apart from one another. With a
//! gibibyte that is one walk for 4 million objects at random places, and one for any number of
//! objects that were put one behind the other into fewer ranges than that.

use std::sync::Arc;

use format::objects::expiry::{decode_expiry_key, expiry_key};
use format::objects::record::ObjectRecord;
use format::objects::settings::{Figures, STRIPES, VERSIONS_SETTING, stripe_of};
use format::objects::uploads::{UploadEntry, part_key, upload_key};

use super::error::BucketError;
use super::{Bucket, Core, read_figures, read_number};
use crate::index::{Index, IndexCheck, Table, each_entry};
use crate::values::{ChunkProblem, Recount};

/// How a bucket is checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Memory for counting the value space.
    pub memory_bytes: u64,
    /// Most problems that are told one by one.
    pub problems_max: usize,
}

impl Default for CheckOptions {
    /// 256 MiB, a thousand problems.
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, problems_max: 1000 }
    }
}

/// What is wrong with a bucket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketProblem {
    /// Chunks of the value space.
    #[error(transparent)]
    Chunks(ChunkProblem),
    /// An entry of the index is none that a program writes.
    #[error("an entry of table {table:?} with the key {key:?} is damaged: {reason}")]
    Entry {
        /// Of which table.
        table: Table,
        /// Its key.
        key: Vec<u8>,
        /// What is wrong with it.
        reason: String,
    },
    /// An object and the table of what expires say different things.
    #[error("the object {key:?} and its time to expire do not agree")]
    Expiry {
        /// Key of the object.
        key: Vec<u8>,
    },
    /// Entries of an upload do not belong together.
    #[error("the entries of upload {upload} do not agree")]
    Upload {
        /// Which one.
        upload: u64,
    },
    /// The bucket has counted wrong.
    #[error("part {stripe} of the bucket's counts says {counted:?} instead of {found:?}")]
    Figures {
        /// Which part.
        stripe: u8,
        /// What the bucket says.
        counted: Figures,
        /// What there is.
        found: Figures,
    },
    /// A version that will be given again.
    #[error("the object {key:?} has version {version}, which is not given yet")]
    Version {
        /// Key of the object.
        key: Vec<u8>,
        /// Its version.
        version: u64,
    },
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketCheck {
    /// What the index says of itself.
    pub index: IndexCheck,
    /// What there is.
    pub figures: Figures,
    /// Walks over all records.
    pub walks: u64,
    /// How many problems there are, beside those of the index.
    pub problem_count: u64,
    /// The first of them.
    pub problems: Vec<BucketProblem>,
}

impl BucketCheck {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.index.damage.is_empty() && self.problem_count == 0
    }
}

impl Bucket {
    /// Checks all but the bytes of objects, which the engine checks. `progress` is called with how
    /// many records of the walk, and which walk it is; with an error of its own it ends the check.
    ///
    /// # Errors
    /// [`BucketError`] when the check could not be carried out.
    pub fn check(
        &self,
        options: &CheckOptions,
        mut progress: impl FnMut(u64, u64) -> Result<(), BucketError>,
    ) -> Result<BucketCheck, BucketError> {
        let core = &*self.core;
        let check = BucketCheck { index: core.index.check()?, ..BucketCheck::default() };
        let mut walk = CheckWalk { core, options, check, progress: &mut progress, records: 0 };
        walk.check_expiry()?;
        walk.check_uploads()?;
        let mut next = None;
        loop {
            walk.check.walks += 1;
            walk.records = 0;
            let mut recount = core.values.recount(next, options.memory_bytes);
            walk.walk_records(&mut recount)?;
            let window = recount.finish()?;
            let problems = window.problems.into_iter().map(BucketProblem::Chunks);
            problems.for_each(|problem| walk.report(problem));
            next = window.next;
            if next.is_none() {
                return Ok(walk.check);
            }
        }
    }
}

struct CheckWalk<'a> {
    core: &'a Core,
    options: &'a CheckOptions,
    check: BucketCheck,
    progress: &'a mut dyn FnMut(u64, u64) -> Result<(), BucketError>,
    records: u64,
}

impl CheckWalk<'_> {
    fn report(&mut self, problem: BucketProblem) {
        self.check.problem_count += 1;
        if self.check.problems.len() < self.options.problems_max {
            self.check.problems.push(problem);
        }
    }

    fn report_entry(&mut self, table: Table, key: &[u8], reason: impl ToString) {
        let (key, reason) = (key.to_vec(), reason.to_string());
        self.report(BucketProblem::Entry { table, key, reason });
    }

    /// Calls `look` with each entry of a table.
    fn each(
        &mut self,
        table: Table,
        mut look: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<(), BucketError>,
    ) -> Result<(), BucketError> {
        let index = Arc::clone(&self.core.index);
        each_entry(&*index, table, &[], |key, value| look(self, key, value))
    }

    /// Names what objects and parts have; on the first walk looks at the records themselves.
    fn walk_records(&mut self, recount: &mut Recount) -> Result<(), BucketError> {
        let is_first = self.check.walks == 1;
        let mut figures = vec![Figures::default(); STRIPES];
        let versions_end = read_number(&*self.core.index, VERSIONS_SETTING)?.unwrap_or(1);
        self.each(Table::Objects, |walk, key, value| {
            let record = match ObjectRecord::decode(value) {
                Ok(record) => record,
                Err(error) if is_first => {
                    walk.report_entry(Table::Objects, key, error);
                    return Ok(());
                }
                Err(_) => return Ok(()), // The first walk has told of it.
            };
            let stripe = &mut figures[usize::from(stripe_of(key))];
            stripe.objects += 1;
            stripe.object_bytes = stripe.object_bytes.saturating_add(record.size_bytes());
            if is_first {
                walk.look_at_object(key, &record, versions_end)?;
            }
            recount.name(&record.value)?;
            walk.count_record()
        })?;
        let mut key_of_upload = None;
        self.each(Table::Uploads, |walk, entry, value| {
            match UploadEntry::decode(entry) {
                Ok(UploadEntry::Part { number: 0, upload }) => {
                    key_of_upload = Some((upload, value.to_vec()));
                }
                Ok(UploadEntry::Part { upload, .. }) => {
                    let Ok(record) = ObjectRecord::decode(value) else {
                        return Ok(()); // Uploads were looked at before.
                    };
                    let key = key_of_upload.as_ref().filter(|(of, _)| *of == upload);
                    if let Some((_, key)) = key {
                        let stripe = &mut figures[usize::from(stripe_of(key))];
                        stripe.parts += 1;
                        stripe.part_bytes = stripe.part_bytes.saturating_add(record.size_bytes());
                    }
                    recount.name(&record.value)?;
                }
                Ok(UploadEntry::Upload { .. }) | Err(_) => (), // It names nothing.
            }
            walk.count_record()
        })?;
        match is_first {
            true => self.check_figures(&figures),
            false => Ok(()),
        }
    }

    fn count_record(&mut self) -> Result<(), BucketError> {
        self.records += 1;
        (self.progress)(self.records, self.check.walks)
    }

    fn look_at_object(
        &mut self,
        key: &[u8],
        record: &ObjectRecord,
        versions_end: u64,
    ) -> Result<(), BucketError> {
        if record.version >= versions_end {
            let version = record.version;
            self.report(BucketProblem::Version { key: key.to_vec(), version });
        }
        if let Some(expires) = record.expires_unix_ms
            && self.core.index.get(Table::Expiry, &expiry_key(expires, key))?.is_none()
        {
            self.report(BucketProblem::Expiry { key: key.to_vec() });
        }
        Ok(())
    }

    fn check_figures(&mut self, found: &[Figures]) -> Result<(), BucketError> {
        let counted = read_figures(&*self.core.index)?;
        for (stripe, (counted, found)) in (0..=u8::MAX).zip(counted.into_iter().zip(found)) {
            super::locks::add(&mut self.check.figures, found);
            if counted != *found {
                self.report(BucketProblem::Figures { stripe, counted, found: *found });
            }
        }
        Ok(())
    }

    /// Each entry has an object that expires then.
    fn check_expiry(&mut self) -> Result<(), BucketError> {
        self.each(Table::Expiry, |walk, entry, _| {
            let (expires, key) = match decode_expiry_key(entry) {
                Ok(found) => found,
                Err(error) => {
                    walk.report_entry(Table::Expiry, entry, error);
                    return Ok(());
                }
            };
            let record = walk.core.index.get(Table::Objects, key)?;
            let record = record.and_then(|bytes| ObjectRecord::decode(&bytes).ok());
            if record.and_then(|record| record.expires_unix_ms) != Some(expires) {
                walk.report(BucketProblem::Expiry { key: key.to_vec() });
            }
            Ok(())
        })
    }

    /// Each upload has its key, each key its upload, and each part both.
    fn check_uploads(&mut self) -> Result<(), BucketError> {
        self.each(Table::Uploads, |walk, entry, value| {
            let index = &*walk.core.index;
            let (upload, agrees) = match UploadEntry::decode(entry) {
                Err(error) => {
                    walk.report_entry(Table::Uploads, entry, error);
                    return Ok(());
                }
                Ok(UploadEntry::Upload { key, upload }) => {
                    let has_key = index.get(Table::Uploads, &part_key(upload, 0))? == Some(key);
                    (upload, has_key && ObjectRecord::decode(value).is_ok())
                }
                Ok(UploadEntry::Part { upload, number: 0 }) => {
                    (upload, index.get(Table::Uploads, &upload_key(value, upload))?.is_some())
                }
                Ok(UploadEntry::Part { upload, .. }) => {
                    let has_upload = index.get(Table::Uploads, &part_key(upload, 0))?.is_some();
                    (upload, has_upload && ObjectRecord::decode(value).is_ok())
                }
            };
            if !agrees {
                walk.report(BucketProblem::Upload { upload });
            }
            Ok(())
        })
    }
}
