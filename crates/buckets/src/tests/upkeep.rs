//! Upkeep gives way to who deletes a bucket.

use objects::bucket::{Condition, DeleteOptions};
use store::Durability;

use super::{buckets, put, store};
use crate::{NewBucket, now_unix_ms};

/// Bytes of a value that lies outside its record, so that upkeep has ranges to free.
const VALUE_BYTES: usize = 600;
const VALUES: u32 = 3000;
/// A round may find upkeep outside the bucket.
const ROUNDS: u32 = 20;

#[test]
fn an_empty_bucket_is_deleted_while_upkeep_frees_what_it_held() {
    let store = store();
    let buckets = buckets(&store);
    let options = DeleteOptions { durability: Durability::Acknowledged, now_ms: now_unix_ms() };
    for round in 0..ROUNDS {
        buckets.create("photos", &NewBucket::default()).unwrap();
        let photos = buckets.open("photos").unwrap();
        let keys: Vec<_> = (0..VALUES).map(|number| number.to_be_bytes()).collect();
        for key in &keys {
            put(&photos, key, &key.repeat(VALUE_BYTES / key.len()));
        }
        // Every other one first, so that ranges are freed one by one.
        for key in keys.iter().step_by(2).chain(keys.iter().skip(1).step_by(2)) {
            photos.delete(key, &Condition::None, options).unwrap();
        }
        drop(photos);
        buckets.delete("photos", false).unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    assert!(buckets.list().unwrap().is_empty());
    buckets.close().unwrap();
    store.close().unwrap();
}
