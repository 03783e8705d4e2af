//! Chunks of a bucket that cannot be read: answers are right or say so, and nothing is wrong when
//! they can be read again.

use std::collections::BTreeSet;

use format::objects::CHUNK_BYTES;
use format::objects::header::{HEADER_COPIES_AT_BYTES, INDEX_COPIES_AT_BYTES, RING_AT_BYTES};
use objects::bucket::BucketError;
use objects::values::ValueError;

use crate::failure::Broken;
use crate::objects::bucket::{Bucket, LookedUp, SlowReader};
use crate::objects::failures::{broken, is_damage};
use crate::objects::kinds;
use crate::objects::life::Life;
use crate::objects::recount::NeededChunks;

/// Chunks at the front of an index and of its log among which some rot.
const INDEX_CHUNKS: u64 = 64;
const RING_CHUNKS: u64 = 16;
/// Bytes that are read at once beside rot, at most.
const PIECE_BYTES: u64 = 9000;

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
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let needed = bucket.needed_chunks();
        let needed = needed.map_err(|error| broken("a walk of all objects", &error))?;
        self.run.summary.rotten += 1;
        self.close(number)?;
        let Some(volume) = self.store.volume(number) else { return Ok(()) };
        let kind = Kind::ALL[self.run.dice.below(Kind::ALL.len() as u64) as usize];
        let rotten = match kind {
            Kind::Values => self.choose_values(&needed),
            kind => self.choose(kind),
        };
        volume.rot(rotten.iter().copied());
        match kinds::open(number, &volume, false) {
            Ok(None) => {
                let what = "a bucket with a rotten chunk is taken for none".to_owned();
                return Err(Broken::Objects { what });
            }
            Ok(Some(bucket)) if kind == Kind::Values => {
                self.read_beside_rot(number, &*bucket, &needed, &rotten)?;
            }
            Ok(Some(bucket)) => self.read_rotten(number, &*bucket, kind)?,
            Err(error) if is_damage(&error) && !kind.has_another_copy() => {}
            Err(error) => return Err(broken("the opening of a bucket that rots", &error)),
        }
        volume.heal();
        self.store.open_bucket(number)?;
        let found = self.store.find()?;
        let newest = self.run.history.newest();
        self.run.history.explain(newest, &found, self.store.stepped.now_ms())
    }

    fn choose(&mut self, kind: Kind) -> BTreeSet<u64> {
        let dice = &mut self.run.dice;
        let chunk = |at_bytes: u64, number: u64| at_bytes / CHUNK_BYTES + number;
        let count = if kind == Kind::Header { 1 } else { 1 + dice.below(4) };
        let [copy, mirror] = INDEX_COPIES_AT_BYTES;
        (0..count)
            .flat_map(|_| {
                let page = dice.below(INDEX_CHUNKS);
                let group = dice.below(RING_CHUNKS);
                match kind {
                    Kind::Pages => vec![chunk(copy, page)],
                    Kind::Mirror => vec![chunk(mirror, page)],
                    Kind::BothPages => vec![chunk(copy, page), chunk(mirror, page)],
                    Kind::Log => vec![chunk(RING_AT_BYTES, group)],
                    Kind::Header => vec![chunk(HEADER_COPIES_AT_BYTES[(page % 2) as usize], 0)],
                    Kind::Values => Vec::new(),
                }
            })
            .collect()
    }

    /// Chunks that objects need.
    fn choose_values(&mut self, needed: &NeededChunks) -> BTreeSet<u64> {
        let all: Vec<u64> = needed.values().flatten().copied().collect();
        let count = if all.is_empty() { 0 } else { 1 + self.run.dice.below(4) };
        (0..count).map(|_| all[self.run.dice.below(all.len() as u64) as usize]).collect()
    }

    /// Each answer is right, or says that something is damaged.
    fn read_rotten(&self, number: u32, bucket: &dyn Bucket, kind: Kind) -> Result<(), Broken> {
        let is_damage = |error: &BucketError| is_damage(error) && !kind.has_another_copy();
        let expected = self.living(number);
        match bucket.keys() {
            Ok(keys) if keys.iter().eq(expected.keys()) => {}
            Ok(_) => return wrong(number, "what is listed"),
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(broken("a listing of a bucket that rots", &error)),
        }
        for (key, object) in expected {
            match bucket.get(&key) {
                Ok(Some(found)) if found == object => {}
                Ok(_) => return wrong(number, &String::from_utf8_lossy(&key)),
                Err(error) if is_damage(&error) => {}
                Err(error) => return Err(broken("a get from a bucket that rots", &error)),
            }
        }
        Ok(())
    }

    /// Only chunks of values cannot be read: everything that is in others is read right, in pieces
    /// as well, and what is lost is told to the byte.
    fn read_beside_rot(
        &mut self,
        number: u32,
        bucket: &dyn Bucket,
        needed: &NeededChunks,
        rotten: &BTreeSet<u64>,
    ) -> Result<(), Broken> {
        let expected = self.living(number);
        let keys = bucket.keys().map_err(|error| broken("a listing beside rot", &error))?;
        if !keys.iter().eq(expected.keys()) {
            return wrong(number, "what is listed");
        }
        for (key, object) in &expected {
            let name = String::from_utf8_lossy(key);
            let found = bucket.reader(key).map_err(|error| broken("a look-up", &error))?;
            let Some(LookedUp { mut reader, .. }) = found else { return wrong(number, &name) };
            let is_hit = needed.get(key).is_some_and(|chunks| !chunks.is_disjoint(rotten));
            let lost_bytes = self.read_in_pieces(number, &object.bytes, &mut reader)?;
            if (lost_bytes > 0) != is_hit {
                let what = format!(
                    "bucket {number}: {name} loses {lost_bytes} bytes, and is hit: {is_hit}"
                );
                return Err(Broken::Objects { what });
            }
            self.run.summary.beside_rot_bytes += object.bytes.len() as u64 - lost_bytes;
        }
        Ok(())
    }

    /// Reads all that can be read; returns how many bytes cannot.
    fn read_in_pieces(
        &mut self,
        number: u32,
        bytes: &[u8],
        reader: &mut SlowReader,
    ) -> Result<u64, Broken> {
        let (mut at, mut lost_bytes, end) = (0, 0, bytes.len() as u64);
        while at < end {
            let length = (1 + self.run.dice.below(PIECE_BYTES)).min(end - at);
            let mut piece = vec![0; length as usize];
            match reader(at, &mut piece) {
                Ok(_) if piece == bytes[at as usize..(at + length) as usize] => at += length,
                Ok(_) => return wrong(number, "a range"),
                Err(BucketError::Value(
                    ValueError::Damaged { bytes: lost, .. }
                    | ValueError::DamagedList { bytes: lost, .. },
                )) if lost.start < at + length && lost.end > at && lost.end <= end => {
                    // What lies before it can be read.
                    let start = lost.start.max(at);
                    let before = &mut piece[..(start - at) as usize];
                    let read = reader(at, before);
                    read.map_err(|error| broken("a get of what is before rot", &error))?;
                    if before != &bytes[at as usize..start as usize] {
                        return wrong(number, "a range before rot");
                    }
                    lost_bytes += lost.end - start;
                    at = lost.end;
                }
                Err(error) => return Err(broken("a get of a range beside rot", &error)),
            }
        }
        Ok(lost_bytes)
    }
}

fn wrong<T>(number: u32, what: &str) -> Result<T, Broken> {
    Err(Broken::Objects { what: format!("bucket {number}: rot changes {what}") })
}
