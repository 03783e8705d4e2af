//! The longest object, without its bytes: its list, its batches, its deletion.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use format::objects::record::Value;
use format::objects::segments::{ListEntry, Run};
use format::objects::{CHUNK_BYTES, OBJECT_BYTES_MAX, VALUES_END_BYTES};
use store::{Durability, RequestError, Reservation, ReservedFor, WriteOptions, WriteRoom};

use super::map_index::MapIndex;
use crate::index::{Index, Table};
use crate::values::Values;
use crate::values::extent_use::ExtentQueue;
use crate::values::limits::Limits;
use crate::values::list_builder::{Built, ListBuilder};
use crate::values::list_cursor::ListCursor;
use crate::values::pending::Pending;
use crate::volume::BucketVolume;

/// Runs of the list: of 20 MiB each, where a content-defined one has 8 KiB.
const RUNS: u64 = 1 << 18;

/// A volume of a petabyte that keeps blocks of lists and nothing else.
#[derive(Default)]
struct Blocks {
    blocks: Mutex<BTreeMap<u64, Vec<u8>>>,
    reads: AtomicU64,
}

impl BucketVolume for Blocks {
    fn size_bytes(&self) -> u64 {
        VALUES_END_BYTES
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        out.copy_from_slice(&self.blocks.lock().unwrap()[&offset_bytes]);
        Ok(())
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        assert!(options.unindexed, "blocks have no duplicates");
        let mut blocks = self.blocks.lock().unwrap();
        writes.iter().for_each(|(at, bytes)| drop(blocks.insert(*at, bytes.to_vec())));
        Ok(())
    }

    fn reserve(&self, _: WriteRoom, _: ReservedFor) -> Result<Reservation, RequestError> {
        Err(RequestError::Closing)
    }

    fn write_reserved_at(
        &self,
        _: &Reservation,
        _: &[(u64, &[u8])],
        _: WriteOptions,
    ) -> Result<(), RequestError> {
        Err(RequestError::Closing)
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        let mut blocks = self.blocks.lock().unwrap();
        let end = offset_bytes + length_bytes;
        let trimmed: Vec<u64> = blocks.range(offset_bytes..end).map(|(at, _)| *at).collect();
        trimmed.iter().for_each(|at| drop(blocks.remove(at)));
        Ok(())
    }

    fn flush(&self) -> Result<(), RequestError> {
        Ok(())
    }
}

/// Appends a run of this many bytes, the last of its chunks padded.
fn push(list: &mut ListBuilder, length_bytes: u64) {
    let mut left = length_bytes;
    while left > 0 {
        let place = list.data.next(left.div_ceil(CHUNK_BYTES)).unwrap();
        let length_bytes = left.min((place.end - place.start) * CHUNK_BYTES);
        list.push_written(Run { length_bytes, first_chunk: place.start, skip_bytes: 0 }).unwrap();
        left -= length_bytes;
    }
}

#[test]
fn five_tebibytes_are_named_found_and_freed_in_small_steps() {
    let (volume, index) = (Arc::new(Blocks::default()), Arc::new(MapIndex::default()));
    let values = Values::open(Arc::clone(&volume) as _, Arc::clone(&index) as _).unwrap();
    let data = ExtentQueue::new(&values.backing.regions, Limits::OF_BUCKETS.data_chunks);
    let mut list = ListBuilder::new(&values.backing, Built::Streamed, data);
    let run_bytes = OBJECT_BYTES_MAX / RUNS - 1;
    (0..RUNS).for_each(|_| push(&mut list, run_bytes));
    let entries = list.finish().unwrap();
    let mut pending = Pending::new(&values.backing.index);
    list.claim(&mut pending, &entries);
    let last = pending.take();
    assert!(last.len() <= 64 + 4, "{} changes name it", last.len());
    index.apply(last, Durability::Acknowledged).unwrap();
    drop(list);
    let value = Value::List(entries.clone());
    assert_eq!(value.length_bytes(), Some(run_bytes * RUNS));

    let depth = entries.iter().map(ListEntry::level).max().unwrap();
    assert!(depth <= 3, "{depth} levels");
    let mut cursor = ListCursor::new(&entries);
    for at in [0, run_bytes * 77_777, run_bytes * RUNS - 1] {
        volume.reads.store(0, Ordering::SeqCst);
        let (run, start) = cursor.find(volume.as_ref(), at).unwrap();
        assert!((start..start + run.length_bytes).contains(&at));
        assert!(volume.reads.load(Ordering::SeqCst) <= depth.into());
    }

    let mut changes = values.changes();
    changes.release(&value).unwrap();
    let batch = changes.take();
    assert!(batch.len() <= 64);
    index.apply(batch, Durability::Acknowledged).unwrap();
    changes.applied();
    let mut longest = 0;
    while !values.trim_some(16).unwrap().is_done {
        longest = longest.max(index.entries(Table::ToFree).len());
    }
    assert!(longest <= 64 * 3, "{longest} entries wait to be freed");
    assert!(index.longest_batch.load(Ordering::SeqCst) <= 170 * 4);
    assert_eq!(index.entries(Table::ToFree), []);
    assert_eq!(index.entries(Table::Free).len(), 1);
    assert!(volume.blocks.lock().unwrap().is_empty(), "its blocks are trimmed");
}
