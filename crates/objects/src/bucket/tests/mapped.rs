//! Objects that are copied from another bucket by mapping its chunks.

use std::ops::Range;
use std::sync::Arc;

use store::Volume;

use super::rig::{DELETE, LITTLE, NOW_MS, Shorthand, check_whole, noise, options, store_of};
use crate::bucket::{Bucket, BucketOptions, Condition, CopyOptions, PutOptions};
use crate::values::ChunkCopy;
use crate::volume::BucketVolume;
use segments::SegmentPolicy;

const LENGTH_BYTES: u64 = 9_000_123;

fn open(volume: &Arc<Volume>, segments: SegmentPolicy) -> Bucket {
    let volume: Arc<dyn BucketVolume> = Arc::clone(volume) as _;
    Bucket::create(Arc::clone(&volume), &BucketOptions { segments, ..options() }).unwrap();
    Bucket::open(volume, &LITTLE).unwrap()
}

fn ranges(seed: u64) -> Vec<Range<u64>> {
    let mut ranges = vec![0..LENGTH_BYTES, 1..2, 4096..8192, 4095..4097, 0..600];
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % LENGTH_BYTES
    };
    for _ in 0..20 {
        let (one, other) = (next(), next());
        ranges.push(one.min(other)..one.max(other) + 1);
    }
    ranges
}

#[test]
fn any_range_of_another_bucket_is_mapped() {
    let store = store_of(256 << 20);
    let [from, to] =
        ["from", "to"].map(|name| Arc::new(store.create_volume(name, 1 << 50).unwrap()));
    let (source, target) = (open(&from, SegmentPolicy::Cdc), open(&to, SegmentPolicy::Fixed));
    let bytes = noise(LENGTH_BYTES as usize, 7);
    source.put_bytes(b"whole", &bytes);
    // A list of runs that begin and end at any byte: pieces of the first object, in another order.
    let middle = 3_000_001..LENGTH_BYTES - 5;
    let options = CopyOptions { range: Some(middle.clone()), ..CopyOptions::new(NOW_MS) };
    source.copy(b"whole", b"middle", options).unwrap();
    for (at, range) in (0..).zip(ranges(11)) {
        for (key, start) in [(&b"whole"[..], 0), (b"middle", middle.start)] {
            let mut reader = source.get(key, &Condition::None, NOW_MS).unwrap().unwrap();
            let length = reader.info().size_bytes;
            let range = range.start.min(length)..range.end.min(length);
            let copied = [key, &[at]].concat();
            let mut writer = target.put(&copied, PutOptions::new(NOW_MS)).unwrap();
            let mut map = |copy: ChunkCopy| {
                let ChunkCopy { to_bytes, from_bytes, length_bytes } = copy;
                to.copy_from_blocking(to_bytes, &from, from_bytes, length_bytes, false)
            };
            writer.map_from(&mut reader, range.clone(), &mut map).unwrap();
            let put = writer.finish_as(reader.info().etag, Vec::new()).unwrap();
            assert_eq!(put.size_bytes, range.end - range.start);
            let found = target.bytes_at(&copied, NOW_MS).unwrap();
            let wanted = &bytes[(start + range.start) as usize..(start + range.end) as usize];
            assert!(found == wanted, "{range:?}");
        }
    }
    check_whole(&source);
    check_whole(&target);
    // What the source abandons, the target keeps.
    for key in [&b"whole"[..], b"middle"] {
        source.delete(key, &Condition::None, DELETE).unwrap();
    }
    while !source.trim_some(100).unwrap().is_done {}
    assert!(target.bytes_at(b"whole\0", NOW_MS).unwrap() == bytes);
    for (at, _) in (0..).zip(ranges(11)) {
        for key in [&b"whole"[..], b"middle"] {
            target.delete(&[key, &[at]].concat(), &Condition::None, DELETE).unwrap();
        }
    }
    while !target.trim_some(100).unwrap().is_done {}
    check_whole(&source);
    check_whole(&target);
}
