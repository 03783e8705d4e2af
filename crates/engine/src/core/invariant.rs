//! The invariants that a running engine asserts where a state changes, by the names that decision
//! 076 gives them. What `check` asserts after each step of a debug build has its name beside it.

/// An invariant.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Invariant {
    /// A version that a record has just made or changed is in the catalog.
    CatalogFollows,
    /// A container in use lies in a data zone, also when the store has grown or a zone is gone.
    ContainersKeepNumbers,
    /// The second copy of a chunk lies in another container than the chunk.
    CopyElsewhere,
    /// Each chunk that a group stores has a frame, in the same order.
    FrameForEachStore,
    /// A group is in the write buffer until it is applied, and is applied when it is the oldest.
    GroupStaysUntilApplied,
    /// Who has no room yet stands at the front of the line again.
    LineKeepsOrder,
    /// What collection moves finds the room that was counted for it.
    MoveFindsRoom,
    /// What comes was asked for by the one that waits for it.
    OnePending,
    /// The older of both roots finds the journal from where it begins.
    OlderRootKeepsJournal,
    /// A look-up says something of each fingerprint that it was given.
    OutcomeForEachCandidate,
    /// A page that was found here stays here until its pin is released.
    PinnedWhileRead,
    /// What a write was promised is free when it is applied.
    PromisedRoomIsThere,
    /// What comes for a step of a scrub was asked for by it, and its writes end once.
    ReadsCounted,
    /// The journal takes a record for which it was found to have room.
    RecordFits,
    /// A root is written when all that it counts in is durable and placed.
    RootBehindRecords,
    /// A checkpoint that is under way has the root that it ends with.
    RootIsMade,
    /// Nothing is in a data zone that the geometry says is gone.
    ZoneEmptyWhenGone,
}
