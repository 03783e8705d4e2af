//! A store in memory with a bucket in it, and the short way to put and get.

use std::sync::Arc;

use store::{CreateOptions, Durability, Options, Store};

use crate::bucket::{
    Bucket, BucketCheck, BucketError, BucketOptions, CheckOptions, Condition, DeleteOptions,
    FinishOptions, ListOptions, OpenOptions, Put, PutOptions, Reader,
};
use crate::volume::BucketVolume;
use segments::SegmentPolicy;

pub(super) const UUID: [u8; 16] = *b"bucket of a test";
pub(super) const NOW_MS: u64 = 1_700_000_000_000;
pub(super) const LITTLE: OpenOptions = OpenOptions { memory_bytes: 1 << 20, read_only: false };
pub(super) const DELETE: DeleteOptions =
    DeleteOptions { durability: Durability::Acknowledged, now_ms: NOW_MS };

pub(super) fn store_of(capacity_bytes: u64) -> Store {
    let disk = store::create_in_memory(&CreateOptions::new(capacity_bytes), 3).unwrap();
    let mut options = Options::default();
    options.engine.memory_bytes = 64 << 20;
    options.engine.worker_threads = 0;
    Store::open_in_memory(&disk, options).unwrap()
}

pub(super) fn options() -> BucketOptions {
    let ring_bytes = 1 << 20;
    BucketOptions { segments: SegmentPolicy::Fixed, ring_bytes, ..BucketOptions::new(UUID) }
}

/// A new bucket in a new volume.
pub(super) fn create(store: &Store, name: &str) -> (Arc<dyn BucketVolume>, Bucket) {
    let volume: Arc<dyn BucketVolume> = Arc::new(store.create_volume(name, 1 << 50).unwrap());
    Bucket::create(Arc::clone(&volume), &options()).unwrap();
    let bucket = Bucket::open(Arc::clone(&volume), &LITTLE).unwrap();
    (volume, bucket)
}

/// What tests take for an MD5.
pub(super) fn md5_of(bytes: &[u8]) -> [u8; 16] {
    let mut md5 = [0; 16];
    md5.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    md5
}

/// Bytes that no two values share, compressible by half.
pub(super) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    };
    (0..length).map(|at| if at % 2 == 0 { next() } else { 0x55 }).collect()
}

/// Holds the bucket to be whole: in one walk, and in many little windows.
pub(super) fn check_whole(bucket: &Bucket) -> BucketCheck {
    let [check, walks] = [1 << 20, 0].map(|memory_bytes| {
        let options = CheckOptions { memory_bytes, ..CheckOptions::default() };
        bucket.check(&options, |_, _| Ok(())).unwrap()
    });
    for check in [&check, &walks] {
        assert!(check.is_whole(), "{:?} {:?}", check.index.damage, check.problems);
        assert_eq!(check.figures, bucket.figures());
    }
    check
}

pub(super) trait Shorthand {
    fn put_with(&self, key: &[u8], bytes: &[u8], options: PutOptions) -> Result<Put, BucketError>;
    fn bytes_at(&self, key: &[u8], now_ms: u64) -> Option<Vec<u8>>;
    fn list_all(&self, prefix: &[u8], delimiter: &[u8], limit: usize) -> Keys;

    fn put_bytes(&self, key: &[u8], bytes: &[u8]) -> Put {
        self.put_with(key, bytes, PutOptions::new(NOW_MS)).unwrap()
    }

    fn bytes(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.bytes_at(key, NOW_MS)
    }
}

/// Keys and common prefixes of a listing.
pub(super) type Keys = (Vec<Vec<u8>>, Vec<Vec<u8>>);

impl Shorthand for Bucket {
    fn put_with(&self, key: &[u8], bytes: &[u8], options: PutOptions) -> Result<Put, BucketError> {
        let mut writer = self.put(key, options)?;
        bytes.chunks(10_000).try_for_each(|part| writer.write(part))?;
        writer.finish(FinishOptions::new(md5_of(bytes)))
    }

    fn bytes_at(&self, key: &[u8], now_ms: u64) -> Option<Vec<u8>> {
        Some(read_all(self.get(key, &Condition::None, now_ms).unwrap()?))
    }

    /// All pages of a listing.
    fn list_all(&self, prefix: &[u8], delimiter: &[u8], limit: usize) -> Keys {
        let (mut keys, mut prefixes, mut from) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let options = ListOptions {
                prefix: prefix.to_vec(),
                delimiter: delimiter.to_vec(),
                from,
                limit,
                now_ms: NOW_MS,
            };
            let listing = self.list(&options).unwrap();
            assert!(listing.objects.len() + listing.prefixes.len() <= limit);
            keys.extend(listing.objects.into_iter().map(|listed| listed.key));
            prefixes.extend(listing.prefixes);
            match listing.next {
                Some(next) => from = next,
                None => return (keys, prefixes),
            }
        }
    }
}

pub(super) fn read_all(mut reader: Reader) -> Vec<u8> {
    let length = reader.info().size_bytes as usize;
    let mut bytes = vec![0xee; length + 5];
    assert_eq!(reader.read_at(0, &mut bytes).unwrap(), length);
    bytes.truncate(length);
    bytes
}
