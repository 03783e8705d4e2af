//! Buckets and objects over the control socket and in this process.
//!
//! ```text
//! verbs.rs ─ carry_out.rs ──> buckets::Buckets            one line asks, one line answers
//! put_object ── answer ── frames of the object ──> ── one line says what came of it
//! get_object ── answer ── <── frames of the object, or a frame that says it failed and a line
//! ```
//!
//! [`PutObject`] and [`GetObject`] turn the connection into a stream of frames ([`frames`]) until
//! the object has ended; then it takes the next verb. A put that fails says so at once and reads
//! the rest of the frames, so that both ends agree where the next line begins.

pub(crate) mod carry_out;
pub mod frames;
mod key;
mod refusals;
mod streams;
mod verbs;

pub use key::ObjectKey;
pub(crate) use streams::serve_stream;
pub use streams::{ObjectSink, ObjectSource};
pub use verbs::{
    BucketListed, BucketShown, CloseBucket, CopyObject, CreateBucket, DeleteBucket, DeleteObjects,
    GetObject, HeadObject, ListBuckets, ListObjects, OBJECTS_LISTED_MAX, ObjectPage, ObjectPut,
    ObjectShown, PutBegun, PutObject, ReplicateBucket, ReplicationChange, ReplicationShown,
    Segments, SetBucket, ShowBucket,
};
