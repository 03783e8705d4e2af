//! Collection on request: room is made now, container by container, for the caller.
//!
//! The engine collects by itself when free containers become few. A caller that wants room before,
//! or wants what is stored compressed harder, asks for *steps* ([`CollectRequest`]), as for
//! those of a scrub: each is one container, and says where the next begins. So the caller decides
//! how fast, how far and for how long, and nothing has to be kept in mind. What a step chooses is
//! worth it, as ever; one that recompresses takes every container in turn, the oldest first.
//!
//! All steps of one request are about containers that were opened before the first of them: so it
//! comes to an end whatever clients write meanwhile, and takes nothing twice.

use format::units::Compression;

/// Where collection on request goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CollectPosition {
    /// Containers that were opened before this one are done, where each is taken in turn.
    pub from_sequence: u32,
    /// Containers that were opened later are left alone.
    pub until_sequence: u32,
}

/// What a step is to do.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectRequest {
    /// What the step before came back with; none begins.
    pub position: Option<CollectPosition>,
    /// What frames are made anew with, where that makes them shorter; none moves them as they are.
    pub recompress: Option<Compression>,
}

/// What a step did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectStep {
    /// Where the next one begins; none when nothing is left to be done.
    pub next: Option<CollectPosition>,
    /// The container that was collected, if one was.
    pub collected: Option<CollectedContainer>,
    /// Containers that are neither free nor will be in a moment.
    pub containers_used: u64,
    /// Containers in all, without the free ones that collection keeps for itself.
    pub containers: u64,
}

/// A container that was collected.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectedContainer {
    /// Its number.
    pub container: u32,
    /// Whether it is free; it is not where a frame in it is damaged.
    pub freed: bool,
    /// Frames that were in it.
    pub used_bytes: u64,
    /// The part of them that lived.
    pub moved_bytes: u64,
    /// What they take now.
    pub written_bytes: u64,
}
