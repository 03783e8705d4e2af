//! A table page: one block with a header that says which page it is.
//!
//! A page is changed in memory as often as need be, then *sealed*: it gets the generation of
//! the checkpoint and its checksum, goes to a block that no root names, and is never changed there.
//! The pointer to it ([`crate::units::BlockPtr`]) carries a part of the checksum, so that a read is
//! checked three ways: the bytes are whole, they are the version pointed to, and they are the page
//! that was asked for.
//!
//! The payload's meaning follows from the tree and the level: [`crate::pointer_page`] above the
//! leaves, and for leaves [`crate::map_page`] (maps of volumes, the queue of free PBNs),
//! [`crate::pba_page`], [`crate::bucket`], [`crate::container_page`] or [`crate::catalog`].

use std::fmt;

use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::units::{BLOCK_BYTES, BlockPtr};
use crate::{FORMAT_VERSION, FORMAT_VERSION_COMMON};

pub use crate::units::{PageId, TreeId};

/// Header of a page.
pub const PAGE_HEADER_BYTES: usize = 32;

/// What a page holds besides its header.
pub const PAYLOAD_BYTES: usize = BLOCK_BYTES - PAGE_HEADER_BYTES;

pub(crate) const CRC_AT: usize = 0;
pub(crate) const CRC_END: usize = 4;
pub(crate) const KIND_AT: usize = 4;
pub(crate) const LEVEL_AT: usize = 5;
pub(crate) const VERSION_AT: usize = 6;
pub(crate) const INDEX_AT: usize = 8;
pub(crate) const TREE_AT: usize = 16;
pub(crate) const ZERO_AT: usize = 20;
pub(crate) const GENERATION_AT: usize = 24;

const _: () = assert!(TREE_AT + 4 == ZERO_AT && ZERO_AT + 4 == GENERATION_AT);
const _: () = assert!(GENERATION_AT + 8 == PAGE_HEADER_BYTES && PAYLOAD_BYTES == 4064);
const _: () = assert!(size_of::<Page>() == BLOCK_BYTES);
const _: () = assert!(FORMAT_VERSION_COMMON <= u16::MAX as u32);

/// One page in memory.
///
/// Aligned to a cache line and not to a block: where somebody counts beside it, it would otherwise
/// take two.
#[derive(PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Page([u8; BLOCK_BYTES]);

impl Clone for Page {
    fn clone(&self) -> Self {
        Self(self.0)
    }

    /// Without a page on the stack in between.
    fn clone_from(&mut self, source: &Self) {
        self.0.copy_from_slice(&source.0);
    }
}

/// Kind of a volume's map; the trees of the store itself are their own kinds.
const KIND_VOLUME: u8 = 0x80;

fn kind_of(tree: TreeId) -> u8 {
    if tree.volume_id().is_some() { KIND_VOLUME } else { tree.0.to_le_bytes()[0] }
}

impl Page {
    /// Memory for a page: zeros, which are no page yet.
    #[must_use]
    pub fn blank() -> Self {
        Self([0; BLOCK_BYTES])
    }

    /// A page with nothing in it.
    #[must_use]
    pub fn empty(id: PageId) -> Self {
        let mut page = Self::blank();
        page.clear(id);
        page
    }

    /// Makes this the page `id` with nothing in it, whatever it was.
    pub fn clear(&mut self, id: PageId) {
        let bytes = &mut self.0;
        bytes.fill(0);
        bytes[KIND_AT] = kind_of(id.tree);
        bytes[LEVEL_AT] = id.level;
        put_u16(bytes, VERSION_AT, FORMAT_VERSION_COMMON as u16);
        put_u64(bytes, INDEX_AT, id.index);
        put_u32(bytes, TREE_AT, id.tree.0);
    }

    /// A page as it was read, yet to be checked.
    ///
    /// # Errors
    /// [`FormatError::Length`] when there are not `BLOCK_BYTES`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut page = Self::blank();
        page.read(bytes)?;
        Ok(page)
    }

    /// Makes this a page as it was read, yet to be checked.
    ///
    /// # Errors
    /// [`FormatError::Length`] when there are not `BLOCK_BYTES`.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let whole: &[u8; BLOCK_BYTES] = bytes.try_into().map_err(|_| FormatError::Length {
            structure: Structure::Page,
            expected_bytes: BLOCK_BYTES as u64,
            found_bytes: bytes.len() as u64,
        })?;
        self.0.copy_from_slice(whole);
        Ok(())
    }

    /// Which page this is.
    #[must_use]
    pub fn id(&self) -> PageId {
        PageId {
            tree: TreeId(u32_at(&self.0, TREE_AT)),
            level: self.0[LEVEL_AT],
            index: u64_at(&self.0, INDEX_AT),
        }
    }

    /// Generation that it was last sealed in; 0 when it was not.
    #[must_use]
    pub fn generation(&self) -> u64 {
        u64_at(&self.0, GENERATION_AT)
    }

    /// Makes the page fit to be written in a checkpoint; returns its checksum.
    pub fn seal(&mut self, generation: u64) -> u32 {
        put_u64(&mut self.0, GENERATION_AT, generation);
        put_u16(&mut self.0, VERSION_AT, FORMAT_VERSION_COMMON as u16);
        let crc = self.crc();
        put_u32(&mut self.0, CRC_AT, crc);
        crc
    }

    /// Whether this is `expected` ([`PageId::stands_for`]), unharmed, and the version whose pointer
    /// has `tag`.
    ///
    /// # Errors
    /// [`FormatError`] that says what it is instead.
    pub fn check(&self, expected: PageId, tag: u32) -> Result<(), FormatError> {
        let crc = self.crc();
        FormatError::checksum(Structure::Page, u32_at(&self.0, CRC_AT), crc)?;
        let found = self.id();
        if !found.stands_for(expected) {
            return Err(FormatError::WrongPage { expected, found });
        }
        if self.0[KIND_AT] != kind_of(expected.tree) {
            return Err(FormatError::field(Structure::Page, "kind", u64::from(self.0[KIND_AT])));
        }
        let found = BlockPtr::tag_of(crc);
        if found != tag {
            return Err(FormatError::PageTag { id: expected, expected: tag, found });
        }
        self.check_version()
    }

    /// Whether a page that fails its check is what is left of the version whose pointer has `tag`,
    /// and not another page, or an earlier version of this one, that stands in its place: its
    /// checksum has the tag, as it stands there or as its bytes have it. Where the checksum is
    /// damaged together with bytes under it, the rest of the header is as well.
    #[must_use]
    pub fn is_left_of(&self, tag: u32) -> bool {
        let has_tag = |crc: u32| BlockPtr::tag_of(crc) == tag;
        has_tag(u32_at(&self.0, CRC_AT)) || has_tag(self.crc()) || !self.has_sound_header()
    }

    /// Whether the header is one that a page can have, apart from its checksum.
    fn has_sound_header(&self) -> bool {
        let version = u32::from(u16_at(&self.0, VERSION_AT));
        self.0[KIND_AT] == kind_of(self.id().tree)
            && (1..=FORMAT_VERSION).contains(&version)
            && u32_at(&self.0, ZERO_AT) == 0
            && self.generation() > 0
    }

    fn check_version(&self) -> Result<(), FormatError> {
        let found = u32::from(u16_at(&self.0, VERSION_AT));
        if found > FORMAT_VERSION {
            let (structure, supported) = (Structure::Page, FORMAT_VERSION);
            return Err(FormatError::NewerVersion { structure, supported, found });
        }
        Ok(())
    }

    fn crc(&self) -> u32 {
        crc32c(&self.0[CRC_END..])
    }

    /// All bytes, as they are written.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; BLOCK_BYTES] {
        &self.0
    }

    /// All bytes.
    pub fn as_bytes_mut(&mut self) -> &mut [u8; BLOCK_BYTES] {
        &mut self.0
    }

    /// What the page holds.
    #[must_use]
    pub fn payload(&self) -> &[u8; PAYLOAD_BYTES] {
        #[expect(clippy::expect_used, reason = "a block is longer than its payload")]
        self.0.last_chunk().expect("a payload in every page")
    }

    /// What the page holds.
    pub fn payload_mut(&mut self) -> &mut [u8; PAYLOAD_BYTES] {
        #[expect(clippy::expect_used, reason = "a block is longer than its payload")]
        self.0.last_chunk_mut().expect("a payload in every page")
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("id", &self.id())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
