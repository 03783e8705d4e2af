//! Documents that doors keep in a bucket.

use std::sync::Arc;

use store::Durability::{Acknowledged, Durable};

use super::rig::{LITTLE, create, store_of};
use crate::bucket::{Bucket, BucketError, DOCUMENT_BYTES_MAX};
use crate::index::IndexError;

#[test]
fn a_document_stays_until_it_is_removed_and_has_limits() {
    let store = store_of(64 << 20);
    let (volume, bucket) = create(&store, "bucket");
    assert_eq!(bucket.document("cors").unwrap(), None);
    bucket.set_document("cors", Some(b"one"), Durable).unwrap();
    bucket.set_document("tags", Some(&vec![7; DOCUMENT_BYTES_MAX]), Acknowledged).unwrap();
    bucket.set_document("cors", Some(b"two"), Acknowledged).unwrap();
    let long = bucket.set_document("cors", Some(&vec![7; DOCUMENT_BYTES_MAX + 1]), Acknowledged);
    assert!(matches!(long, Err(BucketError::DocumentTooLong { .. })), "{long:?}");
    for name in [String::new(), "x".repeat(65)] {
        let refused = bucket.set_document(&name, None, Acknowledged);
        assert!(matches!(refused, Err(BucketError::DocumentName { .. })), "{refused:?}");
        assert!(matches!(bucket.document(&name), Err(BucketError::DocumentName { .. })));
    }
    bucket.close().unwrap();
    let bucket = Bucket::open(Arc::clone(&volume), &LITTLE).unwrap();
    assert_eq!(bucket.document("cors").unwrap().unwrap(), b"two");
    assert_eq!(bucket.document("tags").unwrap().unwrap().len(), DOCUMENT_BYTES_MAX);
    bucket.set_document("cors", None, Durable).unwrap();
    bucket.set_document("cors", None, Durable).unwrap();
    assert_eq!(bucket.document("cors").unwrap(), None);
    assert_eq!(bucket.figures(), Default::default());
    bucket.close().unwrap();
    let read_only = crate::bucket::OpenOptions { read_only: true, ..LITTLE };
    let bucket = Bucket::open(volume, &read_only).unwrap();
    let refused = bucket.set_document("cors", None, Acknowledged);
    assert!(matches!(refused, Err(BucketError::Index(IndexError::ReadOnly))), "{refused:?}");
}
