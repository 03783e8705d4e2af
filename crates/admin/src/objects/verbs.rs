//! What is asked about buckets and objects, and answered.

use serde::{Deserialize, Serialize};

use crate::json::plain;
use crate::objects::ObjectKey;

/// Most objects and prefixes in one answer of [`ListObjects`]: a line holds them, whatever their
/// keys are.
pub const OBJECTS_LISTED_MAX: usize = 1000;

/// How values of a bucket are cut into segments.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segments {
    /// As each value has it.
    #[default]
    Auto,
    /// Segments of one length.
    Fixed,
    /// Segments whose ends the content defines.
    Cdc,
}

/// Makes a bucket; durable when it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateBucket {
    /// Its name.
    pub name: String,
    /// How its values are cut.
    pub segments: Segments,
    /// The domain inside which its chunks are deduplicated; none: the default one.
    pub domain: Option<String>,
    /// Most bytes of its objects together.
    pub quota_bytes: Option<u64>,
}

/// Lists buckets and their snapshots, by name, `most` of them behind `after`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListBuckets {
    /// The last name of the list before.
    pub after: Option<String>,
    /// How many at most.
    pub most: usize,
}

/// A bucket or snapshot of one, as it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketListed {
    /// Its name, `BUCKET@SNAPSHOT` for a snapshot.
    pub name: String,
    /// Bytes that its volume maps, before deduplication and compression.
    pub mapped_bytes: u64,
    /// The domain inside which its chunks are deduplicated; none: the default one.
    pub domain: Option<String>,
    /// Of a snapshot, when it was taken, in seconds since 1970.
    pub taken_unix_s: Option<u64>,
}

/// Says what a bucket, or a snapshot of one, holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShowBucket {
    /// Its name.
    pub name: String,
}

/// What a bucket holds, and how it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketShown {
    /// Its name, `BUCKET@SNAPSHOT` for a snapshot.
    pub name: String,
    /// Objects; expired ones count until they are removed.
    pub objects: u64,
    /// Bytes of the objects.
    pub object_bytes: u64,
    /// Parts of uploads that are not complete.
    pub parts: u64,
    /// Bytes of those parts.
    pub part_bytes: u64,
    /// Bytes that its volume maps, before deduplication and compression.
    pub mapped_bytes: u64,
    /// Most bytes of objects and parts together.
    pub quota_bytes: Option<u64>,
    /// How its values are cut.
    pub segments: Segments,
    /// The domain inside which its chunks are deduplicated; none: the default one.
    pub domain: Option<String>,
    /// Whether it refuses changes.
    pub read_only: bool,
    /// Of a snapshot, when it was taken, in seconds since 1970.
    pub taken_unix_s: Option<u64>,
    /// Full names of its snapshots.
    pub snapshots: Vec<String>,
    /// How it is replicated; none: it is not.
    pub replication: Option<ReplicationShown>,
}

/// How a bucket is replicated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicationShown {
    /// `primary`, `replica`, `syncing`, `alone` or `fenced`.
    pub role: String,
    /// Of a primary, the address of its replica; of a fenced copy, who took over.
    pub peer: String,
    /// How often a copy was promoted, and one.
    pub epoch: u64,
    /// Number of its last change.
    pub sequence: u64,
    /// Whether a primary goes on while its replica is away.
    pub alone_allowed: bool,
    /// Whether it has acknowledged something that its replica may not have.
    pub went_on_alone: bool,
    /// How far the connection is: `in step`, `comparing`, `taking back`, `connected` or `away`;
    /// none: there is none.
    pub link: Option<String>,
    /// Whether objects can be seen: not those of a replica, nor of a primary that has not met its
    /// replica since it was started. Then only name, domain and mapped bytes say anything.
    pub objects_known: bool,
}

/// Changes how a bucket is replicated; durable when it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicateBucket {
    /// Its name.
    pub name: String,
    /// What is to change.
    pub change: ReplicationChange,
}

/// What is to change of a replication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicationChange {
    /// The bucket is a primary, and its changes go to a replica.
    To {
        /// Where the replica's server waits for it.
        peer: String,
        /// Whether it goes on while the replica is away.
        alone_allowed: bool,
    },
    /// The primary is a bucket of its own: its changes go to no replica.
    End,
    /// The replica is a bucket, and takes over.
    Promote,
    /// The bucket becomes a replica, and takes all from the new primary.
    Demote,
}

/// Sets the quota of a bucket; durable when it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetBucket {
    /// Its name.
    pub name: String,
    /// Most bytes of objects and parts together; none: no bound.
    pub quota_bytes: Option<u64>,
}

/// Deletes a bucket; its snapshots must have been deleted before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteBucket {
    /// Its name.
    pub name: String,
    /// Whether it may hold objects.
    pub with_objects: bool,
}

/// Closes a bucket or snapshot in this process, so that its volume can be rolled back or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseBucket {
    /// Its name.
    pub name: String,
}

/// Lists objects in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListObjects {
    /// The bucket, or `BUCKET@SNAPSHOT`.
    pub bucket: String,
    /// What the keys begin with.
    pub prefix: ObjectKey,
    /// Keys that have it behind the prefix are listed as one, up to its end. Empty: none are.
    pub delimiter: String,
    /// [`ObjectPage::next`] of the page before; empty for the first.
    pub from: ObjectKey,
    /// Most objects and prefixes, [`OBJECTS_LISTED_MAX`] at most.
    pub most: usize,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPage {
    /// Objects.
    pub objects: Vec<ObjectShown>,
    /// What keys have in common up to the delimiter.
    pub prefixes: Vec<ObjectKey>,
    /// Where the next page begins; none behind the last.
    pub next: Option<ObjectKey>,
}

/// Says what an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadObject {
    /// The bucket, or `BUCKET@SNAPSHOT`.
    pub bucket: String,
    /// The key.
    pub key: ObjectKey,
}

/// An object without its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectShown {
    /// Its key.
    pub key: ObjectKey,
    /// Its bytes.
    pub size_bytes: u64,
    /// The MD5 of its bytes in hexadecimal, `-PARTS` behind it if it was put in parts.
    pub etag: String,
    /// Grows with every put of the bucket.
    pub object_version: u64,
    /// When it was put, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// When it ends, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_ms: Option<u64>,
    /// What kind of content its sender says that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// Deletes objects; durable when it is answered, with whether each was there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteObjects {
    /// The bucket.
    pub bucket: String,
    /// The keys.
    pub keys: Vec<ObjectKey>,
}

/// Copies an object inside the store; durable when it is answered. Inside a bucket no bytes move.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyObject {
    /// The bucket that holds it, or `BUCKET@SNAPSHOT`.
    pub from_bucket: String,
    /// Its key.
    pub from: ObjectKey,
    /// The bucket of the copy.
    pub to_bucket: String,
    /// The key of the copy.
    pub to: ObjectKey,
    /// Whether that key must hold no object yet.
    pub if_absent: bool,
}

/// Puts an object: behind the answer its bytes follow in frames, and behind those its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutObject {
    /// The bucket.
    pub bucket: String,
    /// The key.
    pub key: ObjectKey,
    /// Whether the key must hold no object yet.
    pub if_absent: bool,
    /// When it ends, in milliseconds since 1970.
    pub expires_unix_ms: Option<u64>,
    /// What kind of content it is.
    pub content_type: Option<String>,
    /// Whether the answer may come before the object is durable. A later one that is durable makes
    /// this one durable as well.
    pub acknowledged: bool,
}

/// The frames of the object may follow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutBegun {}

/// An object that was put or copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPut {
    /// Its bytes.
    pub size_bytes: u64,
    /// As [`ObjectShown::etag`].
    pub etag: String,
    /// Grows with every put of the bucket.
    pub object_version: u64,
}

/// Reads an object: it is answered with what it is, and its bytes follow in frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetObject {
    /// The bucket, or `BUCKET@SNAPSHOT`.
    pub bucket: String,
    /// The key.
    pub key: ObjectKey,
}

plain!(
    CreateBucket,
    ListBuckets,
    BucketListed,
    ShowBucket,
    BucketShown,
    ReplicateBucket,
    SetBucket,
    DeleteBucket,
    CloseBucket,
    ListObjects,
    ObjectPage,
    HeadObject,
    ObjectShown,
    DeleteObjects,
    CopyObject,
    PutObject,
    PutBegun,
    ObjectPut,
    GetObject
);
