//! Room replication: a bucket on two servers, so that the death of either loses nothing that was
//! acknowledged (decision 068).
//!
//! ```text
//! bucket ──> Mirrored (a BucketVolume) ──> the primary's volume
//!               │  Primary: numbers, ring, who may write
//!               └── messages ──> Secondary ──> the secondary's volume
//! ```
//!
//! What is replicated is the bucket's *volume*: each write and trim is a record with a number, and
//! the secondary does them in their order. Everything of a bucket passes there, so the secondary's
//! volume is at any moment what a crash of the primary could have left: a bucket opens from it. An
//! answer waits until the secondary has the record behind which it comes.
//!
//! ```text
//! the states of the primary's link (primary.rs)
//! away ──connected──> greeting ──met──> open, in step          meeting.rs says which
//!   ^                    │ behind ──> taking back ──┤
//!   │                    └──> open, comparing ──all ranges equal──> in step
//!   └──cut: from each of them            a higher epoch at the peer: fenced, for good
//! ```
//!
//! Invariants: records are done on both sides in the order of their numbers; a copy's state block
//! (`format::objects::replica`) names a record only when the volume holds all before it; a pair of
//! epoch and life has one sequence of records; a copy that holds a mixture says so before it does.
//!
//! No socket, thread or clock: who has them drives both sides, as the simulator does.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod meeting;
mod mirrored;
mod primary;
mod ring;
mod secondary;
mod state_block;
#[cfg(test)]
mod tests;
mod volume;

pub use format::objects::replica::{PEER_BYTES_MAX, ReplicaRole, ReplicaState, VolumeIdentity};
pub use format::replication::{
    BODY_BYTES_MAX, Change, FRAME_HEAD_BYTES, Message, PROTOCOL_VERSION, Position,
};
pub use meeting::{Held, Meeting, meet};
pub use mirrored::{Mirrored, MirroredError, ReplyWait};
pub use primary::{LinkState, Primary, Standing};
pub use ring::{RING_BYTES_MAX, Ring};
pub use secondary::{PromoteError, Secondary, SecondaryError};
pub use state_block::{StateError, identity_of, read_state, write_state};
pub use volume::{ReplicaVolume, Run};
