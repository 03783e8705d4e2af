//! The settings of the new bucket: what was chosen is kept, what is counted is counted anew.

use format::objects::CHUNK_BYTES;
use format::objects::extents::HIGH_WATER_SETTING;
use format::objects::settings::{
    QUOTA_SETTING, SEGMENTS_AUTO, SEGMENTS_CDC, SEGMENTS_FIXED, SEGMENTS_SETTING, VERSIONS_SETTING,
    decode_number, encode_number, figures_setting,
};

use super::report::LostPart;
use super::{Batches, Repair};
use crate::bucket::error::BucketError;
use crate::bucket::locks::add;
use crate::bucket::no_bucket;
use crate::bucket::versions::STEP;
use crate::index::{Change, Index, Table};

const TABLE: Table = Table::Settings;

impl Repair<'_> {
    /// Writes the settings that follow from records, and holds the others to what they can be.
    pub(super) fn judge_settings(&mut self) -> Result<(), BucketError> {
        let mut batches = Batches::new(&self.index);
        self.judge_segments(&mut batches)?;
        if let Some(quota) = self.index.get(TABLE, QUOTA_SETTING)?
            && decode_number(&quota).is_err()
        {
            let reason = "the quota of the bucket is no number: it has none".to_owned();
            self.report.lose(LostPart::Settings { reason });
            batches.push(Change::Remove { table: TABLE, key: QUOTA_SETTING.to_vec() })?;
        }
        let mut set = |key: &[u8], value| {
            batches.push(Change::Set { table: TABLE, key: key.to_vec(), value })
        };
        let counted = self.number(VERSIONS_SETTING)?.unwrap_or(1);
        // Lost groups may have given numbers that nothing kept shows.
        let given = if self.lost_anything { STEP } else { 0 };
        let versions_end = self.versions_end.max(counted).saturating_add(given);
        set(VERSIONS_SETTING, encode_number(versions_end))?;
        let mark = self.number(HIGH_WATER_SETTING)?.filter(|bytes| {
            let chunk = bytes / CHUNK_BYTES;
            bytes.is_multiple_of(CHUNK_BYTES)
                && (self.space.start..=self.space.end).contains(&chunk)
        });
        self.lost_anything |= mark.is_none();
        let mark = mark.unwrap_or(0).max(self.named_end * CHUNK_BYTES);
        set(HIGH_WATER_SETTING, encode_number(mark))?;
        for (stripe, figures) in (0..=u8::MAX).zip(&self.figures) {
            set(&figures_setting(stripe), figures.encode())?;
            add(&mut self.report.figures, figures);
        }
        Ok(batches.finish()?)
    }

    fn judge_segments(&mut self, batches: &mut Batches) -> Result<(), BucketError> {
        let reason = match self.index.get(TABLE, SEGMENTS_SETTING)?.as_deref() {
            Some([SEGMENTS_AUTO | SEGMENTS_FIXED | SEGMENTS_CDC]) => return Ok(()),
            Some([_]) => return Err(no_bucket("a newer program chose how it cuts values")),
            Some(_) => "how the bucket cuts values is no choice",
            None => "how the bucket cuts values is not there",
        };
        let reason = format!("{reason}: it chooses by the content from now on");
        self.report.lose(LostPart::Settings { reason });
        let (key, value) = (SEGMENTS_SETTING.to_vec(), vec![SEGMENTS_AUTO]);
        Ok(batches.push(Change::Set { table: TABLE, key, value })?)
    }

    /// The number that a setting holds; none: it is not there, or no number.
    fn number(&self, setting: &[u8]) -> Result<Option<u64>, BucketError> {
        let value = self.index.get(TABLE, setting)?;
        Ok(value.and_then(|value| decode_number(&value).ok()))
    }
}
