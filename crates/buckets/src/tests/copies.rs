//! Buckets that are one of two copies, where no server has connections.

use std::sync::Arc;

use engine::VolumeKind;
use engine::control::NewVolume;
use objects::volume::BucketVolume;
use replication::{ReplicaRole, ReplicaState};
use store::Volume;

use super::{buckets, get, put, store};
use crate::{BucketsError, NewBucket, Replicator};

#[test]
fn a_copy_is_opened_as_what_it_is_and_nobody_writes_past_its_connection() {
    let store = store();
    let buckets = buckets(&store);
    buckets.create("photos", &NewBucket::default()).unwrap();
    put(&buckets.open("photos").unwrap(), b"cat", b"meow");
    let refused = buckets.promote("photos").unwrap_err().to_string();
    assert!(refused.contains("no replica"), "{refused}");
    assert_eq!(buckets.replication("photos").unwrap(), None);
    buckets.replicate("photos", "unix:/b", false).unwrap();
    let primary = buckets.open("photos").unwrap();
    assert!(primary.is_read_only(), "nobody has a connection");
    assert_eq!(get(&primary, b"cat").unwrap(), b"meow");
    drop(primary);
    let refused = buckets.close_bucket("photos");
    assert!(matches!(refused, Err(BucketsError::Replication { .. })), "{refused:?}");
    buckets.demote("photos").unwrap();
    let role = |name| buckets.replication(name).unwrap().unwrap().state.role;
    assert!(matches!(buckets.end_replication("photos"), Err(BucketsError::IsReplica { .. })));
    assert_eq!(role("photos"), ReplicaRole::Syncing);
    assert!(matches!(buckets.open("photos"), Err(BucketsError::IsReplica { .. })));
    let refused = buckets.promote("photos").unwrap_err().to_string();
    assert!(refused.contains("mixture"), "{refused}");
    assert!(matches!(buckets.delete("photos", false), Err(BucketsError::IsReplica { .. })));
    buckets.delete("photos", true).unwrap();
    buckets.close().unwrap();
    store.close().unwrap();
}

/// Changes are not counted while it stands alone, so nobody may take its place in the sequence of
/// records for the truth.
#[test]
fn a_bucket_that_replicates_no_more_takes_changes_and_has_a_new_epoch() {
    let store = store();
    let buckets = buckets(&store);
    buckets.create("photos", &NewBucket::default()).unwrap();
    let refused = buckets.end_replication("photos").unwrap_err().to_string();
    assert!(refused.contains("not replicated"), "{refused}");
    buckets.replicate("photos", "unix:/b", false).unwrap();
    let state = || buckets.replication("photos").unwrap().unwrap().state;
    let before = state();
    buckets.end_replication("photos").unwrap();
    buckets.end_replication("photos").unwrap();
    put(&buckets.open("photos").unwrap(), b"cat", b"meow");
    let after = state();
    assert_eq!((after.role, after.peer.as_str()), (ReplicaRole::Alone, ""));
    assert_eq!(after.position.epoch, before.position.epoch + 1);
    buckets.replicate("photos", "unix:/b", false).unwrap();
    assert_eq!(state().position, after.position);
    buckets.close().unwrap();
    store.close().unwrap();
}

/// A replica whose primary has not sent anything yet looks as a bucket whose making was cut off.
#[test]
fn a_replica_that_holds_nothing_yet_is_not_made_anew() {
    let store = store();
    let buckets = buckets(&store);
    let request = NewVolume {
        name: "photos".to_owned(),
        size_bytes: 1 << 50,
        kind: VolumeKind::Bucket,
        ..NewVolume::default()
    };
    store.client().ask(request).unwrap();
    buckets.replicate("photos", "unix:/b", false).unwrap();
    buckets.demote("photos").unwrap();
    let again = buckets.create("photos", &NewBucket::default());
    assert!(matches!(again, Err(BucketsError::Exists { .. })), "{again:?}");
    buckets.close().unwrap();
    store.close().unwrap();
}

/// Connections that are there at once, and count nothing.
struct Plain;

impl Replicator for Plain {
    fn mirror(
        &self,
        _name: &str,
        volume: Volume,
        _state: ReplicaState,
    ) -> Result<Arc<dyn BucketVolume>, BucketsError> {
        Ok(Arc::new(volume))
    }

    fn suspend(&self, _name: &str) -> bool {
        true
    }

    fn resume(&self, _name: &str) {}

    fn link(&self, _name: &str) -> Option<String> {
        Some("in step".to_owned())
    }
}

#[test]
fn a_bucket_with_a_replica_takes_bytes_and_no_chunks() {
    let store = store();
    let buckets = buckets(&store);
    buckets.set_replicator(Arc::new(Plain));
    for name in ["source", "target"] {
        buckets.create(name, &NewBucket::default()).unwrap();
    }
    buckets.replicate("target", "unix:/b", false).unwrap();
    let (from, to) = (buckets.open("source").unwrap(), buckets.open("target").unwrap());
    assert!(!to.is_read_only());
    let bytes = vec![7; 3 << 20];
    put(&from, b"long", &bytes);
    let mut reader = from.get(b"long", &super::Condition::None, 1).unwrap().unwrap();
    let options = super::PutOptions::new(1);
    assert!(to.map_object(&from, &mut reader, b"copy", options).unwrap().is_none());
    let none = super::Condition::None;
    to.copy_object(&from, &mut reader, b"copy", none, super::Durability::Acknowledged).unwrap();
    assert_eq!(get(&to, b"copy").unwrap(), bytes);
    drop((from, to, reader));
    buckets.close().unwrap();
    store.close().unwrap();
}
