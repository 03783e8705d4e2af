//! Chunks of a bucket that cannot be read: answers are right or say so, and nothing is wrong when
//! they can be read again.

use std::collections::BTreeSet;

use format::objects::header::{HEADER_COPIES_AT_BYTES, INDEX_COPIES_AT_BYTES, RING_AT_BYTES};
use format::objects::{CHUNK_BYTES, VALUES_START_BYTES};
use objects::bucket::BucketError;

use crate::failure::Broken;
use crate::objects::bucket::Bucket;
use crate::objects::failures::{broken, is_damage};
use crate::objects::kinds;
use crate::objects::life::Life;

/// Chunks at the front of an index and of the values among which some rot.
const INDEX_CHUNKS: u64 = 64;
const VALUE_CHUNKS: u64 = 200;
const RING_CHUNKS: u64 = 16;

/// What rots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pages,
    Mirror,
    BothPages,
    Log,
    Header,
    Values,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Pages, Self::Mirror, Self::BothPages, Self::Log, Self::Header, Self::Values];

    /// Whether all of it is stored once more, so that nobody notices.
    fn has_another_copy(self) -> bool {
        matches!(self, Self::Pages | Self::Mirror | Self::Header)
    }
}

impl Life<'_> {
    /// Chunks of a bucket rot while it is closed; then it is opened, read, and, once they have come
    /// back, opened again.
    pub(super) fn rot(&mut self, number: u32) -> Result<(), Broken> {
        self.run.summary.rotten += 1;
        self.close(number)?;
        let Some(volume) = self.store.volume(number) else { return Ok(()) };
        let kind = Kind::ALL[self.run.dice.below(Kind::ALL.len() as u64) as usize];
        volume.rot(self.choose(kind));
        match kinds::open(number, &volume, false) {
            Ok(None) => {
                let what = "a bucket with a rotten chunk is taken for none".to_owned();
                return Err(Broken::Objects { what });
            }
            Ok(Some(bucket)) => self.read_rotten(number, &*bucket, kind)?,
            Err(error) if is_damage(&error) && !kind.has_another_copy() => {}
            Err(error) => return Err(broken("the opening of a bucket that rots", &error)),
        }
        volume.heal();
        self.store.open_bucket(number)?;
        let found = self.store.find()?;
        let newest = self.run.history.newest();
        self.run.history.explain(newest, &found)
    }

    fn choose(&mut self, kind: Kind) -> BTreeSet<u64> {
        let dice = &mut self.run.dice;
        let chunk = |at_bytes: u64, number: u64| at_bytes / CHUNK_BYTES + number;
        let count = if kind == Kind::Header { 1 } else { 1 + dice.below(4) };
        let [copy, mirror] = INDEX_COPIES_AT_BYTES;
        (0..count)
            .flat_map(|_| {
                let page = dice.below(INDEX_CHUNKS);
                let value = dice.below(VALUE_CHUNKS);
                let group = dice.below(RING_CHUNKS);
                match kind {
                    Kind::Pages => vec![chunk(copy, page)],
                    Kind::Mirror => vec![chunk(mirror, page)],
                    Kind::BothPages => vec![chunk(copy, page), chunk(mirror, page)],
                    Kind::Log => vec![chunk(RING_AT_BYTES, group)],
                    Kind::Header => vec![chunk(HEADER_COPIES_AT_BYTES[(page % 2) as usize], 0)],
                    Kind::Values => vec![chunk(VALUES_START_BYTES, value)],
                }
            })
            .collect()
    }

    /// Each answer is right, or says that something is damaged.
    fn read_rotten(&self, number: u32, bucket: &dyn Bucket, kind: Kind) -> Result<(), Broken> {
        let is_damage = |error: &BucketError| is_damage(error) && !kind.has_another_copy();
        let now = self.run.history.now();
        let Some(expected) = now.buckets.get(&number) else { return Ok(()) };
        match bucket.keys() {
            Ok(keys) if keys.iter().eq(expected.keys()) => {}
            Ok(_) => {
                let what = format!("bucket {number}: rot changes what is listed");
                return Err(Broken::Objects { what });
            }
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(broken("a listing of a bucket that rots", &error)),
        }
        for (key, bytes) in expected {
            match bucket.get(key) {
                Ok(Some(found)) if found[..] == bytes[..] => {}
                Ok(_) => {
                    let key = String::from_utf8_lossy(key);
                    let what = format!("bucket {number}: rot changes what {key} holds");
                    return Err(Broken::Objects { what });
                }
                Err(error) if is_damage(&error) => {}
                Err(error) => return Err(broken("a get from a bucket that rots", &error)),
            }
        }
        Ok(())
    }
}
