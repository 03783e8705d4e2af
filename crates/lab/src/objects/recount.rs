//! The invariant of decision 060, counted anew: each chunk of the value space is in one state, and
//! who names it is counted right.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use format::objects::extents::{
    HIGH_WATER_SETTING, ToFree, decode_free, decode_shared, decode_to_free,
};
use format::objects::record::ObjectRecord;
use format::objects::segments::{ListEntry, Subtree, decode_block};
use format::objects::uploads::UploadEntry;
use format::objects::{CHUNK_BYTES, VALUES_START_BYTES};
use objects::bucket::BucketError;
use objects::index::{Entry, Index, Table};
use objects::volume::BucketVolume;

use crate::failure::Broken;
use crate::objects::failures::{broken, said};

/// Entries that are read at a time.
const SCAN_ENTRIES: usize = 500;

/// What holds of the chunks from one place on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Here {
    /// Entries that name them.
    named: i64,
    to_free: i64,
    free: i64,
    /// Ranges of `Shared` that they are in, and the counts of these.
    shared: i64,
    counted: i64,
}

/// Counts a bucket.
pub(crate) struct Recount<'a> {
    index: &'a dyn Index,
    volume: &'a dyn BucketVolume,
    /// What changes at a chunk.
    changes: BTreeMap<u64, Here>,
    blocks_seen: BTreeSet<u64>,
}

/// Numbers of the chunks of a volume that an object needs, by the keys of objects.
pub(crate) type NeededChunks = BTreeMap<Vec<u8>, BTreeSet<u64>>;

/// What a recount comes to, in chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) named: u64,
    pub(crate) to_free: u64,
    pub(crate) high_water: u64,
}

/// All entries of a table.
pub(crate) fn entries(index: &dyn Index, table: Table) -> Result<Vec<Entry>, BucketError> {
    let (mut all, mut from) = (Vec::new(), Vec::new());
    loop {
        let some = index.scan(table, &from, SCAN_ENTRIES)?;
        let is_last = some.len() < SCAN_ENTRIES;
        if let Some((key, _)) = some.last() {
            from.clone_from(key);
            from.push(0);
        }
        all.extend(some);
        if is_last {
            return Ok(all);
        }
    }
}

impl<'a> Recount<'a> {
    pub(crate) fn of(index: &'a dyn Index, volume: &'a dyn BucketVolume) -> Self {
        Self { index, volume, changes: BTreeMap::new(), blocks_seen: BTreeSet::new() }
    }

    /// Counts.
    ///
    /// # Errors
    /// [`Broken::Objects`] with the first chunk that is in no state, in two, or counted wrong.
    pub(crate) fn count(mut self) -> Result<Counted, Broken> {
        self.gather().map_err(|error| broken("a recount", &error))?;
        let high_water = self.high_water().map_err(|error| broken("a recount", &error))?;
        self.sweep(high_water)
    }

    fn gather(&mut self) -> Result<(), BucketError> {
        for table in [Table::Objects, Table::Uploads] {
            for (key, record) in entries(self.index, table)? {
                if table == Table::Uploads && names_an_upload(&key)? {
                    continue;
                }
                let record = ObjectRecord::decode(&record)?;
                record.value.entries().iter().try_for_each(|entry| self.name(entry))?;
            }
        }
        let mut trees = Vec::new();
        for (key, value) in entries(self.index, Table::ToFree)? {
            let (range, kind) = decode_to_free(&key, &value)?;
            self.add(&range, Here { to_free: 1, ..Here::default() });
            if let ToFree::Tree { subtree, position } = kind {
                trees.push((subtree, position));
            }
        }
        for (key, value) in entries(self.index, Table::Free)? {
            self.add(&decode_free(&key, &value)?, Here { free: 1, ..Here::default() });
        }
        for (key, value) in entries(self.index, Table::Shared)? {
            let (range, count) = decode_shared(&key, &value)?;
            self.add(&range, Here { shared: 1, counted: count as i64, ..Here::default() });
        }
        trees.iter().try_for_each(|(subtree, position)| self.block(subtree, *position))
    }

    fn add(&mut self, range: &Range<u64>, here: Here) {
        for (at, sign) in [(range.start, 1), (range.end, -1)] {
            let change = self.changes.entry(at).or_default();
            change.named += sign * here.named;
            change.to_free += sign * here.to_free;
            change.free += sign * here.free;
            change.shared += sign * here.shared;
            change.counted += sign * here.counted;
        }
    }

    fn name(&mut self, entry: &ListEntry) -> Result<(), BucketError> {
        self.add(&entry.chunks(), Here { named: 1, ..Here::default() });
        match entry {
            ListEntry::Subtree(subtree) => self.block(subtree, 0),
            ListEntry::Run(_) => Ok(()),
        }
    }

    /// What a block names; once, however many name the block.
    fn block(&mut self, subtree: &Subtree, position: u16) -> Result<(), BucketError> {
        if !self.blocks_seen.insert(subtree.block_chunk) {
            return Ok(());
        }
        let mut bytes = vec![0; CHUNK_BYTES as usize];
        self.volume.read_at(subtree.block_chunk * CHUNK_BYTES, &mut bytes).map_err(said)?;
        let entries = decode_block(subtree, &bytes)?;
        entries[position.into()..].iter().try_for_each(|entry| self.name(entry))
    }

    fn high_water(&self) -> Result<u64, BucketError> {
        let setting = self.index.get(Table::Settings, HIGH_WATER_SETTING)?;
        let bytes = setting.and_then(|value| <[u8; 8]>::try_from(value).ok());
        Ok(bytes.map_or(VALUES_START_BYTES, u64::from_le_bytes) / CHUNK_BYTES)
    }

    fn sweep(&self, high_water: u64) -> Result<Counted, Broken> {
        let start = VALUES_START_BYTES / CHUNK_BYTES;
        let mut counted = Counted { high_water, ..Counted::default() };
        let (mut here, mut at) = (Here::default(), 0);
        let last = (high_water.max(start), &Here::default());
        let beyond = self.changes.iter().map(|(at, change)| (*at, change));
        for (next, change) in beyond.chain([last]) {
            // The last comes behind all that is in the space, so it may be before where we are.
            if at < next {
                is_right(&here, at, start..high_water)?;
                if at < start && next > start {
                    is_right(&here, start, start..high_water)?;
                }
                let length = next - at.max(start).min(next);
                counted.named += if here.named > 0 { length } else { 0 };
                counted.to_free += if here.to_free > 0 { length } else { 0 };
            }
            at = at.max(next);
            here.named += change.named;
            here.to_free += change.to_free;
            here.free += change.free;
            here.shared += change.shared;
            here.counted += change.counted;
        }
        Ok(counted)
    }
}

/// The chunks that each object's bytes are in, and the blocks that say so.
pub(crate) fn needed_chunks(
    index: &dyn Index,
    volume: &dyn BucketVolume,
) -> Result<NeededChunks, BucketError> {
    let mut needed = NeededChunks::new();
    for (key, record) in entries(index, Table::Objects)? {
        let chunks = needed.entry(key).or_default();
        let mut entries = ObjectRecord::decode(&record)?.value.entries().to_vec();
        while let Some(entry) = entries.pop() {
            chunks.extend(entry.chunks());
            if let ListEntry::Subtree(subtree) = entry {
                let mut bytes = vec![0; CHUNK_BYTES as usize];
                volume.read_at(subtree.block_chunk * CHUNK_BYTES, &mut bytes).map_err(said)?;
                entries.extend(decode_block(&subtree, &bytes)?);
            }
        }
    }
    Ok(needed)
}

/// Whether an entry only says of which object an upload is.
fn names_an_upload(key: &[u8]) -> Result<bool, BucketError> {
    Ok(matches!(UploadEntry::decode(key)?, UploadEntry::Part { number: 0, .. }))
}

/// Whether a chunk is in one state; beyond the mark and before the space, in none.
fn is_right(here: &Here, chunk: u64, space: Range<u64>) -> Result<(), Broken> {
    let states = i64::from(here.named > 0) + here.to_free + here.free;
    let is_right = match space.contains(&chunk) {
        true => states == 1,
        false => states == 0,
    };
    let expected = if here.named > 1 { (1, here.named) } else { (0, 0) };
    if is_right && (here.shared, here.counted) == expected {
        return Ok(());
    }
    let what = format!("chunk {chunk} of the value space {space:?} is {here:?}");
    Err(Broken::Objects { what })
}

#[cfg(test)]
mod tests {
    use super::{Here, is_right};

    #[test]
    fn a_chunk_is_in_one_state_and_counted_when_several_name_it() {
        let none = Here::default();
        let named = Here { named: 1, ..none };
        assert!(is_right(&named, 5, 0..9).is_ok() && is_right(&named, 9, 0..9).is_err());
        assert!(is_right(&none, 9, 0..9).is_ok() && is_right(&none, 5, 0..9).is_err());
        assert!(is_right(&Here { free: 1, ..named }, 5, 0..9).is_err());
        assert!(is_right(&Here { named: 2, ..none }, 5, 0..9).is_err());
        assert!(is_right(&Here { named: 2, shared: 1, counted: 2, ..none }, 5, 0..9).is_ok());
        assert!(is_right(&Here { named: 1, shared: 1, counted: 2, ..none }, 5, 0..9).is_err());
    }
}
