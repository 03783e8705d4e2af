//! Whether an index is whole: what `tamis check` asks of a bucket.

use format::BLOCK_BYTES;
use format::objects::header::{HEADER_COPIES_AT_BYTES, INDEX_COPIES_AT_BYTES, IndexLength};

use crate::index::locks::lock;
use crate::index::pages::is_damage;
use crate::index::replay::replay;
use crate::index::volume_index::{VolumeIndex, read_header_copy};
use crate::index::{IndexError, Table};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCheck {
    /// Entries of the map on disk.
    pub entries: u64,
    /// Changes in the log that are not in it.
    pub log_changes: u64,
    /// What is wrong, a sentence each. Nothing: all is whole.
    pub damage: Vec<String>,
}

impl VolumeIndex {
    /// Reads everything: both copies of header and length, the log, every page of the map and the
    /// mirror of it. Merges wait meanwhile, and so does who applies.
    ///
    /// # Errors
    /// [`IndexError::Volume`] when it could not be carried out.
    pub fn check(&self) -> Result<IndexCheck, IndexError> {
        let _merging = lock(&self.merging);
        let log = lock(&self.log);
        let mut check = IndexCheck::default();
        self.check_headers(&mut check)?;
        let replayed = replay(&*self.volume, &self.header, log.merged(), |change| {
            if Table::from_number(change.table).is_none() {
                check.damage.push(format!("the log names table {}", change.table));
            }
            Ok(())
        });
        match told(replayed, &mut check)? {
            Some(replayed) if replayed.next == log.next() => check.log_changes = replayed.changes,
            Some(replayed) => check.damage.push(format!(
                "the log ends at position {} instead of {}",
                replayed.next.position,
                log.next().position
            )),
            None => {}
        }
        self.check_tree(&mut check)?;
        Ok(check)
    }

    fn check_headers(&self, check: &mut IndexCheck) -> Result<(), IndexError> {
        for at_bytes in HEADER_COPIES_AT_BYTES {
            match read_header_copy(&*self.volume, at_bytes)? {
                Ok(header) if header == self.header => {}
                Ok(_) => check.damage.push(format!("the header at {at_bytes} is another one")),
                Err(error) => check.damage.push(format!("the header at {at_bytes}: {error}")),
            }
        }
        let mut block = [0; BLOCK_BYTES];
        for at_bytes in INDEX_COPIES_AT_BYTES {
            let found = match self.volume.read_at(at_bytes, &mut block) {
                Ok(()) => IndexLength::decode(&block).map_err(|error| error.to_string()),
                Err(error) if is_damage(&error) => Err(error.to_string()),
                Err(error) => return Err(error.into()),
            };
            match found {
                Ok(length) if length.uuid == self.header.uuid => {}
                Ok(_) => check.damage.push(format!("the length at {at_bytes} is another bucket's")),
                Err(error) => check.damage.push(format!("the length at {at_bytes}: {error}")),
            }
        }
        Ok(())
    }

    fn check_tree(&self, check: &mut IndexCheck) -> Result<(), IndexError> {
        let (mut entries, mut unknown) = (0, 0_u64);
        let verified = self.tree.verify(|key, _| {
            entries += 1;
            let table = key.first().and_then(|number| Table::from_number(*number));
            unknown += u64::from(table.is_none());
        });
        check.entries = entries;
        if unknown > 0 {
            check.damage.push(format!("{unknown} entries of the map are of no table"));
        }
        let Some((is_sound, pages)) = told(verified, check)? else { return Ok(()) };
        if !is_sound {
            check.damage.push("the pages of the map do not have their checksums".to_owned());
        }
        match pages.unreadable_mirror_chunks()? {
            0 => {}
            count => check.damage.push(format!("{count} chunks of the mirror cannot be read")),
        }
        Ok(())
    }
}

/// What came back; damage goes into the check.
fn told<T>(result: Result<T, IndexError>, check: &mut IndexCheck) -> Result<Option<T>, IndexError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(IndexError::Damaged(error)) => {
            check.damage.push(error);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
