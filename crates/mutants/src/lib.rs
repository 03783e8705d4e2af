//! Known bugs, each at the place where it would cost data: what hunts bugs is shown to find them.
//!
//! A test that has never failed proves little, and a simulator that found nothing for a month may
//! be right or blind. So the engine carries bugs on purpose: where a promise is kept, a word asks
//! [`mutant!`] whether to break it. In a build without debug assertions the answer is the constant
//! `false`, and no code is left of the question: no release can lose data by it. In the others no
//! bug lives until a program asks for one, as `lab canary` does: it lets one live in each thread
//! and simulates until it is found.
//!
//! A mutant is one decision left out or turned round, as a slip of the keyboard or a wrong thought
//! would do it. What it does is said here; where, the compiler finds.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

#[cfg(debug_assertions)]
use std::cell::Cell;

/// A bug that can be let live.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A flush is answered when its writes have ended, without a sync.
    AnswersFlushUnsynced,
    /// A flush syncs the journal and forgets the frames.
    SkipsDataSync,
    /// A root is written without its pages having been synced.
    WritesRootUnsynced,
    /// A root is written though frames and records that it counts in are not durable.
    WritesRootBeforeRecords,
    /// The journal is released up to the newest root, as if the older one were not there.
    ForgetsOlderJournal,
    /// A group becomes two records: a crash may keep half of it.
    SplitsGroup,
    /// An overwrite inside the open group is dropped, the older bytes stay.
    KeepsOlderWrite,
    /// An unmap of chunk after chunk takes one chunk more than was asked for.
    TrimsOneTooMany,
    /// Leaves of a map are cut off before the part of a leaf that comes before them is unmapped.
    CutsBeforeTheHead,
    /// A chunk that is overwritten keeps its reference.
    ForgetsRelease,
    /// Reference counts stop at four, and go down from there.
    SaturatesCount,
    /// A duplicate of a chunk that is on its way is stored again.
    MissesPendingDuplicate,
    /// Collection forgets a chunk that a group is about to map.
    ForgetsHeldChunk,
    /// A collected chunk stays in the Hash-PBN table.
    KeepsHashEntry,
    /// A freed PBN is handed out before a checkpoint: a repair that goes back takes the new chunk
    /// for the old one.
    ReusesPbnAtOnce,
    /// A container's directory lacks its last chunk.
    DropsDirectoryEntry,
    /// A freed container is written again at once.
    ReusesContainerAtOnce,
    /// A freed container is written again as soon as that is durable, though no record says so yet.
    ReusesContainerUntold,
    /// A block of the tables is given out again as soon as a page has left it.
    ReusesBlockAtOnce,
    /// A block that only the older root names is given out again.
    ForgetsOlderBlocks,
    /// A root is not written once more as a label.
    WritesNoLabel,
    /// The block of a label is given out again as soon as the next root has one.
    ReusesLabelAtOnce,
    /// An opening takes the blocks of labels for free.
    ForgetsLabelAtOpening,
    /// An opening does not write the label of the root that it goes on from.
    TrustsLabelAtOpening,
    /// A repair names the block of a label in its roots, and writes no label there.
    RepairsWithoutLabel,
    /// A repair writes one root, and leaves the other one as it was.
    RepairsOneRoot,
    /// A repair does not say what the records changed that it leaves out.
    TellsLossShort,
    /// After a repair the journal goes on with the number of the first record that was left out.
    RepairsAroundJournal,
    /// A page leaves the cache while it is being written.
    DropsPageBeingWritten,
    /// The space promised to a write is never given back.
    KeepsPromise,
    /// Clients are promised the containers that collection needs in a full store.
    PromisesReserve,
    /// Replay takes a record whose body does not have its checksum.
    BelievesTornRecord,
    /// Replay takes records that do not continue the ones before them.
    BelievesStaleRecord,
    /// Recovery leaves out the frames that records carry.
    ForgetsCarriedFrames,
    /// A root is written though frames of records before it are in no container.
    WritesRootUnplaced,
    /// A round leaves frames unwritten that no record carries.
    LeavesLooseFrames,
    /// Records say that frames are in their containers as soon as they are durable.
    TellsPlacedEarly,
    /// Recovery does not look whether the frames of a record have arrived.
    BelievesFrames,
    /// Replay leaves out what was unmapped.
    ForgetsUnmapAtReplay,
    /// Replay leaves out what collection moved.
    ForgetsMoveAtReplay,
    /// Directories that a crash cut off are not written again.
    SkipsMending,
    /// An opening says that what it believed is durable, and does not sync it.
    AnnouncesUnsynced,
    /// A block of the tables is given out again though another version of the volume names it.
    FreesSharedBlock,
    /// An overwrite releases a chunk that the version's parent still maps.
    ReleasesInherited,
    /// A page is read for one version while it is still being written for another.
    ReadsPageBeingWritten,
    /// A read takes any frame of its chunk, whichever the tables mean.
    BelievesStaleFrame,
    /// A volume near its quota takes what does not fit.
    PassesQuota,
    /// Recovery does not look whether the frame of a second copy has arrived.
    BelievesCopies,
    /// A second copy is put into the container in which the chunk may be.
    CopyBesideChunk,
    /// Collection forgets a dead chunk that is stored twice, and leaves its second copy behind.
    ForgetsCopied,
    /// A merge keeps an entry of the Hash-PBN table that was taken back.
    RevivesTakenBack,
    /// A filter denies an entry that its bucket holds.
    DeniesByFilter,
    /// A chunk whose bytes differ is taken for the one that has its fingerprint.
    ComparesNothing,
    /// An unindexed chunk is entered into the Hash-PBN table.
    IndexesAside,
    /// A frame stays in memory though its PBN is free, and may be another chunk's.
    KeepsForgottenFrame,
    /// Doors go on answering from a frame whose address was written since.
    ForgetsStamp,
    /// A leaf is copied for doors as the map has it, whatever the write buffer holds of it.
    ShowsWhatIsBuffered,
    /// Every chunk is of the default domain, whatever volume it is of.
    SharesAcrossDomains,
    /// A frame does not say of which domain its chunk is.
    ForgetsDomainOfFrame,
    /// A chunk that is aside is not so any more once it has moved.
    ForgetsAside,
    /// The record of a moved chunk that is aside does not say what its frame holds.
    MovesUnnamed,
    /// A record that is to be durable when it is written is written like any other.
    WritesRecordPlainly,
    /// A round does not sync the journal, whatever was written to it.
    TrustsPlainRecords,
    /// A store counts as closed before its last root is synced.
    ClosesUnsynced,
    /// A round answers those too whose groups were applied while it ran.
    AnswersWhatCameLater,
    /// A round that ends takes the records that were written meanwhile for synced.
    ForgetsLaterRecords,
    /// A round syncs before the writes that it covers have ended.
    SyncsBeforeWritten,
    /// A round syncs before segments that it covers are packed.
    SyncsBeforePacked,
    /// Records say that what the round under way covers is durable.
    TellsDurableEarly,
    /// An opening leaves frames that records carry where they are.
    PlacesNoCarried,
    /// The record that opens a store is written before those that it calls durable are synced.
    AnnouncesBeforeJournal,
    /// A store is open before the record that says so is synced.
    OpensUnsynced,
    /// A trim that is to be durable is answered when it is applied.
    ForgetsFuaOfTrim,
    /// A write that is to be durable is answered when it is buffered.
    ForgetsFuaOfWrite,
    /// The writes of a vector are queued last first.
    TurnsVectorRound,
    /// A holder is granted room that is not there.
    HoldsWhatIsNotThere,
    /// A holder that writes does not draw it from what it has reserved.
    DrawsNothing,
    /// What a holder has not written does not come back.
    KeepsReservation,
    /// Everybody takes what is kept for releases.
    LeavesNothingAlone,
    /// Chunks of an unindexed write are looked for and entered like any others.
    ForgetsHint,
    /// A volume's codec is recorded before the geometry says that volumes may have one.
    RecordsCodecAtOnce,
    /// A copy between volumes maps chunks and takes no references.
    CopiesNoReferences,
    /// A copy takes the source's map as it is, whatever is buffered.
    CopiesBeforeBuffered,
    /// A copy maps chunks of another domain.
    CopiesAcrossDomains,
    /// A copy that is to be durable is answered when it is applied.
    ForgetsFuaOfCopy,
    /// A writer of a bucket takes an extent, and the index does not say that it is to be freed.
    ForgetsIntent,
    /// An extent is free in the index before it is trimmed.
    FreesBeforeTrim,
    /// The log of a bucket is given back before its changes are in the map on disk.
    ReleasesLogEarly,
    /// A group of the log is written over those that are in its first chunk already.
    ForgetsTailOfLog,
    /// Pages of a bucket's index are written once.
    WritesNoMirror,
    /// The header of a bucket's index is written before the pages that it names.
    WritesIndexHeaderFirst,
    /// A copy of an object names its extents, and they are not counted as shared.
    ForgetsCountOfCopy,
    /// The record of a small object is written, and what is left of its region is not.
    RecordsRestLate,
    /// The trimmer takes what readers and writers hold.
    TrimsHeld,
    /// An answer does not wait until the replica has the record.
    AnswersBeforeReceived,
    /// A flush does not wait until it is one at the replica as well.
    AnswersFlushAtHome,
    /// A replica is promoted whose comparison has not ended.
    PromotesMixture,
    /// A replica that is compared does not say that it holds a mixture.
    HidesMixture,
    /// A promoted copy takes records of the one that it has taken over from.
    WelcomesTheOvertaken,
    /// A primary does not ask for the records that its crash has lost.
    TakesNothingBack,
    /// A replica is given the records that are kept, whether or not others are missing.
    CatchesUpOverAGap,
    /// A comparison ends before the ranges that differ have been sent.
    EndsBeforeFilled,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 102] = [
        Self::AnswersFlushUnsynced,
        Self::SkipsDataSync,
        Self::WritesRootUnsynced,
        Self::WritesRootBeforeRecords,
        Self::ForgetsOlderJournal,
        Self::SplitsGroup,
        Self::KeepsOlderWrite,
        Self::TrimsOneTooMany,
        Self::CutsBeforeTheHead,
        Self::ForgetsRelease,
        Self::SaturatesCount,
        Self::MissesPendingDuplicate,
        Self::ForgetsHeldChunk,
        Self::KeepsHashEntry,
        Self::ReusesPbnAtOnce,
        Self::DropsDirectoryEntry,
        Self::ReusesContainerAtOnce,
        Self::ReusesContainerUntold,
        Self::ReusesBlockAtOnce,
        Self::ForgetsOlderBlocks,
        Self::WritesNoLabel,
        Self::ReusesLabelAtOnce,
        Self::ForgetsLabelAtOpening,
        Self::TrustsLabelAtOpening,
        Self::RepairsWithoutLabel,
        Self::RepairsOneRoot,
        Self::TellsLossShort,
        Self::RepairsAroundJournal,
        Self::DropsPageBeingWritten,
        Self::KeepsPromise,
        Self::PromisesReserve,
        Self::BelievesTornRecord,
        Self::BelievesStaleRecord,
        Self::ForgetsCarriedFrames,
        Self::WritesRootUnplaced,
        Self::LeavesLooseFrames,
        Self::TellsPlacedEarly,
        Self::BelievesFrames,
        Self::ForgetsUnmapAtReplay,
        Self::ForgetsMoveAtReplay,
        Self::SkipsMending,
        Self::AnnouncesUnsynced,
        Self::FreesSharedBlock,
        Self::ReleasesInherited,
        Self::ReadsPageBeingWritten,
        Self::BelievesStaleFrame,
        Self::PassesQuota,
        Self::BelievesCopies,
        Self::CopyBesideChunk,
        Self::ForgetsCopied,
        Self::RevivesTakenBack,
        Self::DeniesByFilter,
        Self::ComparesNothing,
        Self::IndexesAside,
        Self::KeepsForgottenFrame,
        Self::ForgetsStamp,
        Self::ShowsWhatIsBuffered,
        Self::SharesAcrossDomains,
        Self::ForgetsDomainOfFrame,
        Self::ForgetsAside,
        Self::MovesUnnamed,
        Self::WritesRecordPlainly,
        Self::TrustsPlainRecords,
        Self::ClosesUnsynced,
        Self::AnswersWhatCameLater,
        Self::ForgetsLaterRecords,
        Self::SyncsBeforeWritten,
        Self::SyncsBeforePacked,
        Self::TellsDurableEarly,
        Self::PlacesNoCarried,
        Self::AnnouncesBeforeJournal,
        Self::OpensUnsynced,
        Self::ForgetsFuaOfTrim,
        Self::ForgetsFuaOfWrite,
        Self::TurnsVectorRound,
        Self::HoldsWhatIsNotThere,
        Self::DrawsNothing,
        Self::KeepsReservation,
        Self::LeavesNothingAlone,
        Self::ForgetsHint,
        Self::RecordsCodecAtOnce,
        Self::CopiesNoReferences,
        Self::CopiesBeforeBuffered,
        Self::CopiesAcrossDomains,
        Self::ForgetsFuaOfCopy,
        Self::ForgetsIntent,
        Self::FreesBeforeTrim,
        Self::ReleasesLogEarly,
        Self::ForgetsTailOfLog,
        Self::WritesNoMirror,
        Self::WritesIndexHeaderFirst,
        Self::ForgetsCountOfCopy,
        Self::RecordsRestLate,
        Self::TrimsHeld,
        Self::AnswersBeforeReceived,
        Self::AnswersFlushAtHome,
        Self::PromotesMixture,
        Self::HidesMixture,
        Self::WelcomesTheOvertaken,
        Self::TakesNothingBack,
        Self::CatchesUpOverAGap,
        Self::EndsBeforeFilled,
    ];
}

/// Whether a bug lives: `if mutant!(ForgetsRelease) { return; }`.
#[macro_export]
macro_rules! mutant {
    ($name:ident) => {
        $crate::is_alive($crate::Mutant::$name)
    };
}

/// Whether this bug lives; [`mutant!`] says it shorter.
#[cfg(not(debug_assertions))]
#[inline(always)]
#[must_use]
pub const fn is_alive(_: Mutant) -> bool {
    false
}

#[cfg(debug_assertions)]
thread_local! {
    /// The one that lives. A simulation is one thread, so several are hunted beside each other.
    static ALIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Whether this bug lives; [`mutant!`] says it shorter.
#[cfg(debug_assertions)]
#[must_use]
pub fn is_alive(mutant: Mutant) -> bool {
    ALIVE.get() == Some(mutant)
}

/// Lets one bug live in this thread, or none.
#[cfg(debug_assertions)]
pub fn let_live(mutant: Option<Mutant>) {
    ALIVE.set(mutant);
}

#[cfg(test)]
mod tests {
    use super::Mutant;

    #[test]
    fn every_mutant_is_listed_once() {
        for (number, mutant) in Mutant::ALL.into_iter().enumerate() {
            assert_eq!(mutant as usize, number, "{mutant:?}");
        }
    }

    #[cfg(not(debug_assertions))]
    #[test]
    fn no_release_has_mutants() {
        const { assert!(!mutant!(ForgetsRelease)) };
    }

    #[cfg(debug_assertions)]
    #[test]
    fn only_what_was_asked_for_lives_and_in_its_thread_alone() {
        let living = || Mutant::ALL.into_iter().filter(|&mutant| super::is_alive(mutant)).count();
        assert_eq!(living(), 0);
        super::let_live(Some(Mutant::ForgetsRelease));
        assert!(mutant!(ForgetsRelease));
        assert_eq!(living(), 1);
        let elsewhere = std::thread::spawn(|| mutant!(ForgetsRelease)).join();
        assert!(!elsewhere.unwrap());
        super::let_live(None);
        assert_eq!(living(), 0);
    }
}
