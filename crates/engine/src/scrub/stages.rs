//! What each stage of a scrub's step remembers from one attempt to go on to the next. What is done
//! with it stands in the file of the stage.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::container_page::{ContainerEntry, ContainerState};
use format::directory::DirectoryEntry;
use format::units::{ContainerId, Fingerprint, Pba, Pbn, Zone};
use reduce::Verdict;
use tables::PageRead;

/// The superblock being read.
#[derive(Default)]
pub(crate) struct SuperblockScrub {
    pub(crate) phase: SuperblockPhase,
    /// Of the newest root when the blocks were read.
    pub(crate) generation: u64,
    /// Bytes of the blocks in the order of `superblock.rs`; none could not be read.
    pub(crate) blocks: Vec<(usize, Option<AlignedBuf>)>,
    /// Blocks to be written again.
    pub(crate) to_mend: VecDeque<(u64, AlignedBuf)>,
    pub(crate) mended: Vec<u64>,
    pub(crate) damaged: Vec<u64>,
}

#[derive(Copy, Clone, Default, PartialEq, Eq)]
pub(crate) enum SuperblockPhase {
    /// Until no root is being written.
    #[default]
    Waiting,
    Reading,
    /// A block is to be written, is being written, is being synced.
    Mending,
    Writing(u64),
    Syncing(u64),
    /// The next checkpoint overwrites the damaged slot.
    Checkpoint,
}

/// Pages being read.
pub(crate) struct TablesScrub {
    pub(crate) tree: u32,
    pub(crate) level: Option<u8>,
    pub(crate) index: u64,
    pub(crate) pages: Vec<PageRead>,
    /// By number of the read: where its first page is in `pages`, and how many there are.
    pub(crate) runs: Vec<(usize, usize)>,
    pub(crate) gathered: bool,
    /// All trees have been gone through.
    pub(crate) last: bool,
    /// Pages that failed once.
    pub(crate) again: Vec<PageRead>,
    pub(crate) second: bool,
}

impl TablesScrub {
    pub(crate) fn new(tree: u32, level: Option<u8>, index: u64) -> Self {
        Self {
            tree,
            level,
            index,
            pages: Vec::new(),
            runs: Vec::new(),
            gathered: false,
            last: false,
            again: Vec::new(),
            second: false,
        }
    }
}

/// The container being read.
pub(crate) struct ContainerScrub {
    pub(crate) from: u32,
    pub(crate) id: ContainerId,
    pub(crate) life: ContainerEntry,
    pub(crate) phase: ContainerPhase,
    /// What of it has reached the device.
    pub(crate) length_bytes: u32,
    pub(crate) filling: Vec<u8>,
    pub(crate) image: Arc<Vec<u8>>,
    /// First bytes of the blocks that the device did not give. What lies there was not seen: that
    /// it is wrong is not known, and nothing may be dropped or written over for it.
    pub(crate) unread: BTreeSet<u32>,
    pub(crate) frames: Vec<Listed>,
    pub(crate) next_job: usize,
    /// A job panicked: of its frames nothing is known.
    pub(crate) lacks_verdicts: bool,
    pub(crate) judged: usize,
    pub(crate) live_bytes: u64,
    pub(crate) frames_sound: u64,
    pub(crate) directory_is_sound: bool,
    /// The PBN-PBA table was gone through, up to this leaf; then the table of second copies.
    pub(crate) traced: Option<u64>,
    pub(crate) traces_copies: bool,
    /// A page that may place something here cannot be had: that the tables place nothing else here
    /// is not known, and nothing may follow from it.
    pub(crate) lacks_pages: bool,
    pub(crate) to_heal: Vec<Listed>,
    /// The damaged chunk whose second copy is looked at.
    pub(crate) suspected: Option<Pbn>,
}

/// A frame that should be there.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) pbn: Pbn,
    pub(crate) offset_bytes: u32,
    pub(crate) length_bytes: u32,
    /// As listed; where nothing lists it, as its sound frame has it.
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) verdict: Verdict,
    /// Whether the tables placed its chunk here when it was judged.
    pub(crate) placed: bool,
    /// Whether it is the second copy of its chunk that they placed here.
    pub(crate) is_copy: bool,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContainerPhase {
    Choosing,
    Settling { mark: u64 },
    Reading,
    Tracing,
    Verifying,
    Judging,
    Healing,
    Mending,
    Writing { zone: Zone },
    Syncing,
}

impl Listed {
    /// Its place; which frame is meant there the tables say.
    pub(crate) fn pba(&self, container: ContainerId) -> Pba {
        let Self { offset_bytes, length_bytes, .. } = *self;
        Pba { container, offset_bytes, length_bytes, ..Pba::default() }
    }
}

impl From<&DirectoryEntry> for Listed {
    fn from(entry: &DirectoryEntry) -> Self {
        let DirectoryEntry { fingerprint, pbn, offset_bytes, length_bytes } = *entry;
        let (fingerprint, verdict) = (Some(fingerprint), Verdict::Damaged);
        let (placed, is_copy) = (false, false);
        Self { pbn, offset_bytes, length_bytes, fingerprint, verdict, placed, is_copy }
    }
}

impl ContainerScrub {
    pub(crate) fn new(from: u32) -> Self {
        Self {
            from,
            id: ContainerId(from),
            life: ContainerEntry::default(),
            phase: ContainerPhase::Choosing,
            length_bytes: 0,
            filling: Vec::new(),
            image: Arc::default(),
            unread: BTreeSet::new(),
            frames: Vec::new(),
            next_job: 0,
            lacks_verdicts: false,
            judged: 0,
            live_bytes: 0,
            frames_sound: 0,
            directory_is_sound: true,
            traced: None,
            traces_copies: false,
            lacks_pages: false,
            to_heal: Vec::new(),
            suspected: None,
        }
    }

    /// What was read in the place of a frame.
    pub(crate) fn bytes_of(&self, frame: &Listed) -> &[u8] {
        self.image.get(frame.pba(self.id).range()).unwrap_or_default()
    }

    /// The first byte that the device did not give, of the blocks that frames may lie in.
    pub(crate) fn unread_frames_at(&self) -> Option<u32> {
        self.unread.first().copied().filter(|&at| at < self.life.used_bytes)
    }

    /// Whether the device gave all of a frame.
    pub(crate) fn was_read(&self, frame: &Listed) -> bool {
        let first = frame.offset_bytes - frame.offset_bytes % BLOCK_BYTES as u32;
        let end = frame.offset_bytes.saturating_add(frame.length_bytes);
        self.unread.range(first..end).next().is_none()
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.life.state == ContainerState::Sealed
    }
}

/// Leaves of maps that one step looks at.
const LEAVES_PER_STEP: u32 = 512;

/// The map being gone through.
pub(crate) struct LossesScrub {
    pub(crate) volume: u32,
    pub(crate) leaf: u64,
    pub(crate) leaves_left: u32,
}

impl LossesScrub {
    pub(crate) fn new(volume: u32, leaf: u64) -> Self {
        Self { volume, leaf, leaves_left: LEAVES_PER_STEP }
    }
}
