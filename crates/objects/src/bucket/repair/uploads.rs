//! Which uploads are kept: those whose record can be read, with the parts that can be.

use format::objects::settings::stripe_of;
use format::objects::uploads::{UploadEntry, part_key, upload_key};

use super::batches::Batches;
use super::report::Owner;
use super::{Repair, RepairStage};
use crate::bucket::error::BucketError;
use crate::index::{Change, Index, Table};

const TABLE: Table = Table::Uploads;

impl Repair<'_> {
    /// Keeps the uploads that can be kept. The entry that says which object's an upload is follows
    /// from the upload's own, and is made again where it is lost; a part without an upload belongs
    /// to nothing.
    pub(super) fn judge_uploads(&mut self) -> Result<(), BucketError> {
        self.judge_begun()?;
        self.judge_parts()
    }

    fn lose_entry(
        &mut self,
        batches: &mut Batches,
        entry: &[u8],
        owner: Option<Owner>,
        reason: &str,
    ) -> Result<(), BucketError> {
        if let Some(owner) = owner {
            self.report.lose_one(owner, reason);
        }
        self.lost_anything = true;
        Ok(batches.push(Change::Remove { table: TABLE, key: entry.to_vec() })?)
    }

    fn judge_begun(&mut self) -> Result<(), BucketError> {
        let mut batches = Batches::new(&self.index);
        self.each(TABLE, &[], |repair, entry, value| {
            repair.step(RepairStage::Judging)?;
            match UploadEntry::decode(entry) {
                Ok(UploadEntry::Upload { key, upload }) => {
                    repair.versions_end = repair.versions_end.max(upload.saturating_add(1));
                    let owner = Owner::Upload { upload };
                    if let Err(reason) = repair.judge(&owner, value)? {
                        return repair.lose_entry(&mut batches, entry, Some(owner), &reason);
                    }
                    let part = part_key(upload, 0);
                    if repair.index.get(TABLE, &part)?.as_deref() != Some(key.as_slice()) {
                        let key_of = Change::Set { table: TABLE, key: part.to_vec(), value: key };
                        batches.push(key_of)?;
                    }
                    Ok(())
                }
                Ok(UploadEntry::Part { .. }) => Ok(()), // They come when all uploads are known.
                Err(error) => {
                    repair.report.lose(super::LostPart::Uploads { reason: error.to_string() });
                    repair.lose_entry(&mut batches, entry, None, "")
                }
            }
        })?;
        Ok(batches.finish()?)
    }

    fn judge_parts(&mut self) -> Result<(), BucketError> {
        let mut batches = Batches::new(&self.index);
        // The upload whose parts follow, and the stripe of its key.
        let mut begun: Option<(u64, u8)> = None;
        self.each(TABLE, &part_key(0, 0), |repair, entry, value| {
            repair.step(RepairStage::Judging)?;
            let Ok(UploadEntry::Part { upload, number }) = UploadEntry::decode(entry) else {
                return Ok(()); // Entries that are none have gone.
            };
            if number == 0 {
                let own = upload_key(value, upload);
                begun = repair.index.get(TABLE, &own)?.map(|_| (upload, stripe_of(value)));
                return match begun {
                    Some(_) => Ok(()),
                    None => {
                        let owner = Some(Owner::Upload { upload });
                        repair.lose_entry(&mut batches, entry, owner, "its record is lost")
                    }
                };
            }
            let owner = Owner::Part { upload, number };
            let Some((_, stripe)) = begun.filter(|(of, _)| *of == upload) else {
                let reason = "the record of its upload is lost";
                return repair.lose_entry(&mut batches, entry, Some(owner), reason);
            };
            match repair.judge(&owner, value)? {
                Ok(record) => {
                    let figures = &mut repair.figures[usize::from(stripe)];
                    figures.parts += 1;
                    figures.part_bytes += record.size_bytes();
                    Ok(())
                }
                Err(reason) => repair.lose_entry(&mut batches, entry, Some(owner), &reason),
            }
        })?;
        Ok(batches.finish()?)
    }
}
