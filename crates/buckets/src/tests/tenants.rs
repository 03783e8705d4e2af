//! Quotas of all buckets in a domain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use objects::bucket::{BucketError, PutOptions, QuotaOf};

use super::{put, store};
use crate::{Buckets, BucketsError, BucketsOptions, DomainQuotas, NewBucket, now_unix_ms};

fn put_zeros(buckets: &Buckets, name: &str, length: usize) -> Result<(), BucketsError> {
    let bucket = buckets.open(name)?;
    let mut writer = bucket.put_hashed(b"key", PutOptions::new(now_unix_ms()))?;
    writer.write(&vec![0; length])?;
    writer.finish().map(drop)
}

#[test]
fn a_quota_counts_buckets_that_nobody_has_opened_yet() {
    let store = store();
    let quota = Arc::new(AtomicU64::new(u64::MAX));
    let of = Arc::clone(&quota);
    let quotas =
        DomainQuotas::new(move |domain| (domain == "acme").then(|| of.load(Ordering::Relaxed)));
    let options = BucketsOptions {
        memory_bytes: 16 << 20,
        domain_quotas: Some(quotas),
        ..BucketsOptions::default()
    };
    let buckets = Buckets::start(store.client().clone(), options.clone()).unwrap();
    let new = NewBucket { domain: Some("acme".to_owned()), ..NewBucket::default() };
    for name in ["acme-1", "acme-2"] {
        buckets.create(name, &new).unwrap();
    }
    buckets.create("other", &NewBucket::default()).unwrap();
    put(&buckets.open("acme-1").unwrap(), b"old", &[1; 600]);
    buckets.close().unwrap();

    quota.store(1000, Ordering::Relaxed);
    let buckets = Buckets::start(store.client().clone(), options).unwrap();
    let refused = put_zeros(&buckets, "acme-2", 401);
    let Err(BucketsError::Bucket(BucketError::QuotaExceeded { of, used_bytes, .. })) = refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!((of, used_bytes), (QuotaOf::Tenant, 600));
    put_zeros(&buckets, "acme-2", 400).unwrap();
    put_zeros(&buckets, "other", 5000).unwrap();
    quota.store(1001, Ordering::Relaxed);
    put_zeros(&buckets, "acme-2", 401).unwrap();
    let usage = buckets.domain_usage("acme").unwrap();
    assert_eq!((usage.buckets, usage.objects, usage.logical_bytes), (2, 2, 1001));
    assert_eq!(buckets.domain_usage("nobody").unwrap().buckets, 0);
    buckets.close().unwrap();
}
