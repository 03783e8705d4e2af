//! The bucket that doors have.

use std::ops::Range;
use std::sync::Arc;

use engine::Durability;
use format::objects::record::ETag;
use objects::bucket::{
    Bucket as Doors, BucketError, BucketOptions, CheckOptions, CompleteOptions, Condition,
    CopiedMetadata, CopyOptions, CopyPartOptions, DeleteOptions, FinishOptions, ListOptions,
    Metadata, PartOptions, PutOptions, UploadOptions, Writer,
};
use objects::index::{INDEX_MEMORY_BYTES_MIN, IndexOptions, VolumeIndex};

use crate::dice::Digest;
use crate::failure::Broken;
use crate::objects::bucket::{Bucket, Cut, LookedUp, PART_BYTES, RING_BYTES};
use crate::objects::failures::broken;
use crate::objects::recount::{Counted, NeededChunks, Recount, needed_chunks};
use crate::objects::step_volume::StepVolume;

/// Keys of a listing: several listings come to a bucket.
const LISTED: usize = 10;
/// Objects up to this length have one part.
const ONE_PART_BYTES: usize = 60_000;
const OPTIONS: IndexOptions =
    IndexOptions { memory_bytes: INDEX_MEMORY_BYTES_MIN, read_only: false };

/// One of them.
pub(crate) struct Whole {
    volume: Arc<StepVolume>,
    bucket: Doors,
}

impl Whole {
    pub(crate) fn create(volume: &Arc<StepVolume>, uuid: [u8; 16]) -> Result<(), BucketError> {
        let options = BucketOptions { ring_bytes: RING_BYTES, ..BucketOptions::new(uuid) };
        Doors::create(Arc::clone(volume) as _, &options)
    }

    pub(crate) fn open(volume: &Arc<StepVolume>, read_only: bool) -> Result<Self, BucketError> {
        let options = IndexOptions { read_only, ..OPTIONS };
        let bucket = Doors::open(Arc::clone(volume) as _, &options)?;
        Ok(Self { volume: Arc::clone(volume), bucket })
    }

    fn now_ms(&self) -> u64 {
        self.volume.stepped.now_ms()
    }

    /// An index of its own: what the bucket has in memory does not count.
    fn index(&self) -> Result<VolumeIndex, BucketError> {
        let options = IndexOptions { read_only: true, ..OPTIONS };
        Ok(VolumeIndex::open(Arc::clone(&self.volume) as _, &options)?)
    }

    /// Puts an object in two parts, and a third that the object does not have. A part is what
    /// `second` says, or bytes of another object.
    fn put_parts(
        &self,
        key: &[u8],
        first: &[u8],
        second: Part<'_>,
        durability: Durability,
    ) -> Result<(), BucketError> {
        let options = UploadOptions::new(self.now_ms());
        let upload = self.bucket.begin_upload(key, options)?;
        let part = PartOptions { durability: Durability::Acknowledged, now_ms: self.now_ms() };
        let put = |number: u16, bytes: &[u8]| -> Result<ETag, BucketError> {
            let mut writer = self.bucket.put_part(key, upload, number, part)?;
            bytes.chunks(PART_BYTES).try_for_each(|piece| writer.write(piece))?;
            Ok(writer.finish(FinishOptions::new([number as u8; 16]))?.etag)
        };
        let mut parts = vec![(1, put(1, first)?)];
        put(2, b"a part that is dropped")?;
        let third = match second {
            Part::Bytes(bytes) => put(3, bytes)?,
            Part::Range(from, range) => {
                let options = CopyPartOptions {
                    source_condition: Condition::None,
                    range: Some(range),
                    md5: None,
                    part,
                };
                self.bucket.copy_part(from, key, upload, 3, options)?.etag
            }
        };
        parts.push((3, third));
        let options = CompleteOptions {
            condition: Condition::None,
            md5: [9; 16],
            checksums: Vec::new(),
            durability,
            now_ms: self.now_ms(),
        };
        self.bucket.complete(key, upload, &parts, options).map(drop)
    }
}

/// Puts an object whose ETag follows from its bytes.
pub(crate) fn put_with(
    bucket: &Doors,
    key: &[u8],
    bytes: &[u8],
    options: PutOptions,
) -> Result<(), BucketError> {
    let mut writer = bucket.put(key, options)?;
    bytes.chunks(PART_BYTES).try_for_each(|part| writer.write(part))?;
    finish(writer, bytes)
}

/// Ends an object of these bytes.
pub(super) fn finish(writer: Writer, bytes: &[u8]) -> Result<(), BucketError> {
    let mut digest = Digest::default();
    digest.add_bytes(bytes);
    let mut md5 = [7; 16];
    md5[..8].copy_from_slice(&digest.value().to_le_bytes());
    writer.finish(FinishOptions::new(md5)).map(drop)
}

/// What the last part is.
enum Part<'a> {
    Bytes(&'a [u8]),
    Range(&'a [u8], Range<u64>),
}

impl Bucket for Whole {
    fn volume(&self) -> &Arc<StepVolume> {
        &self.volume
    }

    fn put(
        &self,
        key: &[u8],
        bytes: &[u8],
        cut: Cut,
        durability: Durability,
    ) -> Result<(), BucketError> {
        if cut == Cut::Fixed && bytes.len() > ONE_PART_BYTES {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            return self.put_parts(key, first, Part::Bytes(second), durability);
        }
        let options = PutOptions { durability, ..PutOptions::new(self.now_ms()) };
        put_with(&self.bucket, key, bytes, options)
    }

    fn give_up(&self, bytes: &[u8], _: Cut, ends: bool) -> Result<(), BucketError> {
        if ends {
            return self.bucket.expire_uploads(self.now_ms() + 1, 10).map(drop);
        }
        let mut writer = self.bucket.put(b"dropped", PutOptions::new(self.now_ms()))?;
        bytes.chunks(PART_BYTES).try_for_each(|part| writer.write(part))
    }

    fn delete(&self, keys: &[&[u8]], durability: Durability) -> Result<(), BucketError> {
        let options = DeleteOptions { durability, now_ms: self.now_ms() };
        if let [key] = keys {
            return self.bucket.delete(key, &Condition::None, options).map(drop);
        }
        let keys: Vec<_> = keys.iter().map(|key| (*key, Condition::None)).collect();
        let answers = self.bucket.delete_many(&keys, options)?;
        answers.into_iter().try_for_each(|answer| answer.map(drop))
    }

    fn copy(&self, from: &[u8], to: &[u8]) -> Result<(), BucketError> {
        self.bucket.copy(from, to, CopyOptions::new(self.now_ms())).map(drop)
    }

    fn copy_range(
        &self,
        from: &[u8],
        to: &[u8],
        head: &[u8],
        range: Range<u64>,
    ) -> Result<(), BucketError> {
        if range.is_empty() {
            return self.put(to, head, Cut::Content, Durability::Acknowledged);
        }
        if head.is_empty() {
            let metadata =
                CopiedMetadata::Replace { metadata: Metadata::default(), expires_unix_ms: None };
            let range = Some(range);
            let options = CopyOptions { range, metadata, ..CopyOptions::new(self.now_ms()) };
            return self.bucket.copy(from, to, options).map(drop);
        }
        self.put_parts(to, head, Part::Range(from, range), Durability::Acknowledged)
    }

    fn reader(&self, key: &[u8]) -> Result<Option<LookedUp>, BucketError> {
        let Some(mut reader) = self.bucket.get(key, &Condition::None, self.now_ms())? else {
            return Ok(None);
        };
        let (length_bytes, expires_ms) = (reader.info().size_bytes, reader.info().expires_unix_ms);
        let reader = Box::new(move |offset, out: &mut [u8]| reader.read_at(offset, out));
        Ok(Some(LookedUp { length_bytes, expires_ms, reader }))
    }

    fn keys(&self) -> Result<Vec<Vec<u8>>, BucketError> {
        let (mut keys, mut from) = (Vec::new(), Vec::new());
        loop {
            let listing = self.bucket.list(&ListOptions {
                prefix: b"key-".to_vec(),
                delimiter: Vec::new(),
                from,
                limit: LISTED,
                now_ms: self.now_ms(),
            })?;
            keys.extend(listing.objects.into_iter().map(|object| object.key));
            match listing.next {
                Some(next) => from = next,
                None => return Ok(keys),
            }
        }
    }

    fn merge(&self) -> Result<(), BucketError> {
        self.bucket.clone().close()
    }

    fn trim_some(&self, entries_max: u64) -> Result<bool, BucketError> {
        if entries_max % 2 == 1 {
            self.bucket.free_released(entries_max)?;
            return Ok(false);
        }
        Ok(self.bucket.trim_some(entries_max)?.is_done)
    }

    fn needed_chunks(&self) -> Result<NeededChunks, BucketError> {
        needed_chunks(&self.index()?, &*self.volume)
    }

    fn doors(&self) -> Option<&Doors> {
        Some(&self.bucket)
    }

    fn recount(&self) -> Result<Counted, Broken> {
        let index = self.index().map_err(|error| broken("a recount", &error))?;
        Recount::of(&index, &*self.volume).count()
    }

    fn check(&self) -> Result<(), Broken> {
        let check = self.bucket.check(&CheckOptions::default(), |_, _| Ok(()));
        let check = check.map_err(|error| broken("a check", &error))?;
        if check.is_whole() {
            return Ok(());
        }
        let what = match (check.problems.first(), check.index.damage.first()) {
            (Some(problem), _) => problem.to_string(),
            (None, damage) => damage.cloned().unwrap_or_default(),
        };
        Err(Broken::Objects { what: format!("its check says: {what}") })
    }
}
