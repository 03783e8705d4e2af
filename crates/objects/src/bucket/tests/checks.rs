//! A check finds each way in which a bucket can be wrong.

use format::objects::expiry::expiry_key;
use format::objects::extents::{encode_range, encode_shared, extent_key};
use format::objects::settings::{
    Figures, VERSIONS_SETTING, encode_number, figures_setting, stripe_of,
};
use format::objects::uploads::{part_key, upload_key};
use store::Durability;

use super::rig::{NOW_MS, Shorthand, check_whole, create, noise, store_of};
use crate::bucket::{Bucket, BucketCheck, BucketProblem, CheckOptions, CopyOptions, PutOptions};
use crate::index::{Change, Index, Table};
use crate::values::ChunkProblem;

fn set(table: Table, key: impl AsRef<[u8]>, value: Vec<u8>) -> Change {
    Change::Set { table, key: key.as_ref().to_vec(), value }
}

fn remove(table: Table, key: impl AsRef<[u8]>) -> Change {
    Change::Remove { table, key: key.as_ref().to_vec() }
}

/// The first entry of a table.
fn first(bucket: &Bucket, table: Table) -> (Vec<u8>, Vec<u8>) {
    bucket.core.index.scan(table, &[], 1).unwrap().remove(0)
}

/// What a check finds in a bucket that someone has changed.
fn found_behind(spoil: impl Fn(&Bucket) -> Change, memory_bytes: u64) -> BucketCheck {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let expiring = PutOptions { expires_unix_ms: Some(NOW_MS + 5), ..PutOptions::new(NOW_MS) };
    for number in 0..40_u8 {
        bucket.put_with(&[1, number], &noise(5000, number.into()), expiring.clone()).unwrap();
        if number % 3 == 0 {
            bucket.delete(&[1, number / 2], &Default::default(), super::rig::DELETE).unwrap();
        }
    }
    bucket.trim_some(3).unwrap();
    bucket.copy(&[1, 39], &[2], CopyOptions::new(NOW_MS)).unwrap();
    let options = crate::bucket::UploadOptions::new(NOW_MS);
    bucket.begin_upload(b"upload", options).unwrap();
    check_whole(&bucket);
    bucket.core.index.apply(vec![spoil(&bucket)], Durability::Acknowledged).unwrap();
    let options = CheckOptions { memory_bytes, ..CheckOptions::default() };
    bucket.check(&options, |_, _| Ok(())).unwrap()
}

#[test]
fn each_fault_is_found() {
    use BucketProblem::{Chunks, Expiry, Figures as Counts, Upload, Version};
    type Spoil = fn(&Bucket) -> Change;
    type IsFound = fn(&BucketProblem) -> bool;
    let faults: [(Spoil, IsFound); 12] = [
        (
            |bucket| remove(Table::Free, first(bucket, Table::Free).0),
            |problem| matches!(problem, Chunks(ChunkProblem::Leaked(_))),
        ),
        (
            |bucket| remove(Table::ToFree, first(bucket, Table::ToFree).0),
            |problem| matches!(problem, Chunks(ChunkProblem::Leaked(_))),
        ),
        (
            |bucket| remove(Table::Shared, first(bucket, Table::Shared).0),
            |problem| matches!(problem, Chunks(ChunkProblem::Count { named: 2, counted: 0, .. })),
        ),
        (
            |bucket| {
                let start = bucket.core.values.high_water_bytes() / 4096 - 4096;
                set(Table::Shared, extent_key(start + 1), encode_shared(&(start..start + 1), 2))
            },
            |problem| matches!(problem, Chunks(ChunkProblem::Count { counted: 2, .. })),
        ),
        (
            |bucket| {
                let end = bucket.core.values.high_water_bytes() / 4096;
                set(Table::Free, extent_key(end - 1), encode_range(&(end - 2..end - 1)))
            },
            |problem| matches!(problem, Chunks(ChunkProblem::SeveralStates { .. })),
        ),
        (
            |_| set(Table::Free, extent_key(5), encode_range(&(4..5))),
            |problem| matches!(problem, Chunks(ChunkProblem::OutsideSpace(_))),
        ),
        (
            |_| set(Table::Expiry, expiry_key(NOW_MS, b"nobody"), Vec::new()),
            |problem| matches!(problem, Expiry { .. }),
        ),
        (
            |bucket| remove(Table::Expiry, first(bucket, Table::Expiry).0),
            |problem| matches!(problem, Expiry { .. }),
        ),
        (
            |_| set(Table::Uploads, part_key(7, 0), b"nobody".to_vec()),
            |problem| matches!(problem, Upload { upload: 7 }),
        ),
        (
            |_| set(Table::Uploads, upload_key(b"nobody", 8), Vec::new()),
            |problem| matches!(problem, Upload { upload: 8 }),
        ),
        (
            |_| set(Table::Settings, figures_setting(stripe_of(&[2])), Figures::default().encode()),
            |problem| matches!(problem, Counts { .. }),
        ),
        (
            |_| set(Table::Settings, VERSIONS_SETTING, encode_number(3)),
            |problem| matches!(problem, Version { .. }),
        ),
    ];
    for (number, (spoil, is_found)) in faults.into_iter().enumerate() {
        for memory_bytes in [1 << 20, 0] {
            let check = found_behind(spoil, memory_bytes);
            let is_found = check.problems.iter().any(is_found);
            assert!(is_found, "fault {number}: {:?}", check.problems);
            assert!(check.problem_count < 60, "what is right is not told of");
        }
    }
}
