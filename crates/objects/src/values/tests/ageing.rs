//! Years of puts and deletions, without bytes: addresses do not run out, pieces stay few.
//!
//! Rule 5 of the design. The value space is 1/15,700 of a bucket's, and so is what is written: a
//! gigabyte a second for five years is 143 times a bucket's space. Lengths are not scaled: seven of
//! ten objects have 4 KiB to 1 MiB, a quarter up to 64 MiB, one in twenty up to a gigabyte, which
//! makes it harder than in a bucket. Victims are chosen at random.

use std::ops::Range;
use std::sync::Arc;

use format::objects::record::Value;
use format::objects::segments::{ListEntry, Run};
use format::objects::{CHUNK_BYTES, VALUES_START_BYTES};
use store::{Durability, RequestError, Reservation, ReservedFor, WriteOptions, WriteRoom};

use super::map_index::MapIndex;
use crate::index::{Index, Table};
use crate::values::extent_use::ExtentQueue;
use crate::values::limits::Limits;
use crate::values::pending::Pending;
use crate::values::{ValueError, Values};
use crate::volume::BucketVolume;

/// A volume of this many bytes, of which nobody asks what is in them.
struct NoBytes(u64);

impl BucketVolume for NoBytes {
    fn size_bytes(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), RequestError> {
        Err(RequestError::Closing)
    }

    fn write_vectored_at(&self, _: &[(u64, &[u8])], _: WriteOptions) -> Result<(), RequestError> {
        Err(RequestError::Closing)
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

    fn trim(&self, _: u64, _: u64) -> Result<(), RequestError> {
        Ok(())
    }

    fn flush(&self) -> Result<(), RequestError> {
        Ok(())
    }
}

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Chunks between two powers of two, as likely in each of those between.
    fn between(&mut self, low: u32, high: u32) -> u64 {
        let power = u64::from(low) + self.below(u64::from(high - low));
        (1 << power) + self.below(1 << power)
    }

    fn chunks(&mut self) -> u64 {
        match self.below(20) {
            0..14 => self.between(0, 8),
            14..19 => self.between(8, 14),
            _ => self.between(14, 18),
        }
    }
}

/// Takes addresses as a writer does, and names them.
fn put(values: &Arc<Values>, index: &MapIndex, chunks: u64) -> Result<Vec<Range<u64>>, ValueError> {
    let mut pending = Pending::new(&values.backing.index);
    let limits = Limits::OF_BUCKETS;
    if chunks * CHUNK_BYTES <= limits.ready_bytes as u64 {
        match values.backing.regions.lease(chunks) {
            Ok(lease) => {
                lease.claim(&mut pending);
                index.apply(pending.take(), Durability::Acknowledged)?;
                let carved = lease.carved();
                lease.settle();
                return Ok(vec![carved]);
            }
            Err(ValueError::NoAddresses { .. }) => (),
            Err(error) => return Err(error),
        }
    }
    let mut data = ExtentQueue::new(&values.backing.regions, limits.data_chunks);
    let (mut left, mut ranges) = (chunks, Vec::<Range<u64>>::new());
    while left > 0 {
        let range = data.next(left.min(256))?;
        left -= range.end - range.start;
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    data.claim_written(&mut pending);
    index.apply(pending.take(), Durability::Acknowledged)?;
    data.settle();
    Ok(ranges)
}

fn delete(values: &Values, index: &MapIndex, ranges: &[Range<u64>]) {
    let run = |range: &Range<u64>| {
        let length_bytes = (range.end - range.start) * CHUNK_BYTES;
        ListEntry::Run(Run { length_bytes, first_chunk: range.start, skip_bytes: 0 })
    };
    let mut changes = values.changes();
    changes.release(&Value::List(ranges.iter().map(run).collect())).unwrap();
    index.apply(changes.take(), Durability::Acknowledged).unwrap();
    changes.applied();
}

#[derive(Debug, Default)]
struct Aged {
    puts: u64,
    objects: u64,
    free_ranges: u64,
    /// Of the space, in hundredths.
    below_mark: u64,
    /// Of long objects that were put in the last tenth: their ranges for each 64 MiB.
    ranges_per_extent: f64,
}

/// Writes `times` the space with `live` hundredths of it in use.
fn age(space_bytes: u64, times: f64, live: u64) -> Aged {
    let index = Arc::new(MapIndex::default());
    let volume = Arc::new(NoBytes(VALUES_START_BYTES + space_bytes));
    let values = Values::open(volume, Arc::clone(&index) as _).unwrap();
    let space = space_bytes / CHUNK_BYTES;
    let (live_max, total) = (space * live / 100, (space as f64 * times) as u64);
    let mut dice = Dice(0x5eed);
    let mut objects: Vec<Vec<Range<u64>>> = Vec::new();
    let (mut in_use, mut written, mut aged) = (0, 0, Aged::default());
    let (mut long_ranges, mut long_chunks) = (0, 0);
    while written < total {
        let chunks = dice.chunks().min(space / 20);
        while in_use + chunks > live_max {
            let victim = objects.swap_remove(dice.below(objects.len() as u64) as usize);
            in_use -= victim.iter().map(|range| range.end - range.start).sum::<u64>();
            delete(&values, &index, &victim);
        }
        values.trim_some(256).unwrap();
        let ranges = put(&values, &index, chunks).unwrap();
        if chunks > 16384 && written > total / 10 * 9 {
            long_ranges += ranges.len();
            long_chunks += chunks;
        }
        objects.push(ranges);
        (in_use, written, aged.puts) = (in_use + chunks, written + chunks, aged.puts + 1);
    }
    aged.objects = objects.len() as u64;
    aged.free_ranges = index.entries(Table::Free).len() as u64;
    let below_mark = values.high_water_bytes() - VALUES_START_BYTES;
    aged.below_mark = below_mark * 100 / space_bytes;
    aged.ranges_per_extent = long_ranges as f64 / (long_chunks as f64 / 16384.0);
    aged
}

#[test]
fn addresses_do_not_run_out_and_pieces_stay_few() {
    for live in [50, 80] {
        let aged = age(16 << 30, 12.0, live);
        assert!(aged.free_ranges < aged.objects * 2, "{aged:?}");
        assert!(aged.ranges_per_extent < 40.0, "{aged:?}");
    }
}

/// Figures of decision 060: `cargo test -p objects --lib -- --ignored --nocapture five_years`.
#[test]
#[ignore = "minutes: five years at a gigabyte a second"]
fn five_years() {
    for live in [30, 50, 80, 90] {
        for years in [1.0, 5.0] {
            let aged = age(64 << 30, 28.6 * years, live);
            println!("{live} % in use, {years} years: {aged:?}");
        }
    }
}
