//! Why bytes are not what they should be.
//!
//! One enum for all structures: what a caller can do about it depends on the variant, not on the
//! structure, which is a field for the reader of the message. [`FormatError::NewerVersion`] asks
//! for a newer program, [`FormatError::OtherStore`] says that a device is in the wrong place; all
//! others mean damage, or bytes that were never such a structure.

use std::fmt;

use thiserror::Error;

use crate::units::PageId;

/// A structure of the format, as messages call it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Structure {
    /// [`crate::superblock::Geometry`].
    Superblock,
    /// [`crate::root::Root`].
    Root,
    /// [`crate::label::Label`].
    Label,
    /// [`crate::mark::Mark`].
    Mark,
    /// [`crate::undo::UndoStart`] or [`crate::undo::UndoEntry`].
    Undo,
    /// [`crate::page::Page`].
    Page,
    /// [`crate::container_page::ContainerEntry`].
    ContainerEntry,
    /// [`crate::catalog::CatalogEntry`].
    CatalogEntry,
    /// [`crate::record::RecordHeader`] and its body.
    Record,
    /// [`crate::record::Change`].
    Change,
    /// [`crate::frame::FrameHeader`] and its payload.
    Frame,
    /// [`crate::directory::Footer`].
    ContainerFooter,
    /// [`crate::directory::DirectoryEntry`] list.
    Directory,
    /// [`crate::stream::StreamHeader`].
    StreamHeader,
    /// [`crate::stream::Section`].
    StreamSection,
    /// [`crate::objects::header::BucketHeader`].
    BucketHeader,
    /// [`crate::objects::header::IndexLength`].
    BucketIndexLength,
    /// A page of [`crate::objects::index_page`].
    BucketIndexPage,
    /// A group of [`crate::objects::log`].
    BucketGroup,
    /// [`crate::objects::log::LoggedChange`].
    BucketChange,
    /// [`crate::objects::record::ObjectRecord`].
    ObjectRecord,
    /// [`crate::objects::segments::ListEntry`].
    ListEntry,
    /// A block of [`crate::objects::segments::ListEntry`].
    SegmentBlock,
    /// A range of [`crate::objects::extents`].
    Extent,
    /// A setting of [`crate::objects::settings`].
    BucketSetting,
    /// A key of [`crate::objects::expiry`].
    ExpiryKey,
    /// A key of [`crate::objects::uploads`].
    UploadKey,
    /// [`crate::objects::replica::ReplicaState`].
    ReplicaState,
    /// [`crate::replication::Message`].
    ReplicationMessage,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Superblock => "superblock",
            Self::Root => "root",
            Self::Label => "label",
            Self::Mark => "mark of a zone",
            Self::Undo => "undo file of a repair",
            Self::Page => "table page",
            Self::ContainerEntry => "entry of the container table",
            Self::CatalogEntry => "entry of the volume catalog",
            Self::Record => "journal record",
            Self::Change => "change in a journal record",
            Self::Frame => "frame",
            Self::ContainerFooter => "container footer",
            Self::Directory => "container directory",
            Self::StreamHeader => "header of the stream",
            Self::StreamSection => "section of the stream",
            Self::BucketHeader => "header of the bucket",
            Self::BucketIndexLength => "length of the bucket's index",
            Self::BucketIndexPage => "page of the bucket's index",
            Self::BucketGroup => "group of the bucket's log",
            Self::BucketChange => "change in the bucket's log",
            Self::ObjectRecord => "record of an object",
            Self::ListEntry => "entry of a list of segments",
            Self::SegmentBlock => "block of a list of segments",
            Self::Extent => "extent of the value space",
            Self::BucketSetting => "setting of a bucket",
            Self::ExpiryKey => "entry for an object that expires",
            Self::UploadKey => "entry for a multi-part upload",
            Self::ReplicaState => "state of the bucket's replication",
            Self::ReplicationMessage => "message of the replication",
        })
    }
}

/// What a program may do with a store of which it does not know a feature ([`crate::features`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum FeatureClass {
    /// Check it, and write nothing.
    ReadOnlyCompatible,
    /// Nothing.
    Incompatible,
}

impl FeatureClass {
    fn what_is_allowed(self) -> &'static str {
        match self {
            Self::ReadOnlyCompatible => "it may check the store but not write to it:",
            Self::Incompatible => "it may not use the store:",
        }
    }
}

impl fmt::Display for FeatureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnlyCompatible => "read-only compatible",
            Self::Incompatible => "incompatible",
        })
    }
}

/// Why bytes are not the structure that they were read as.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// There are too few bytes, or too many, for what they say of themselves.
    #[error("{structure} should be {expected_bytes} bytes long but is {found_bytes}")]
    Length {
        /// What was read.
        structure: Structure,
        /// The least, or exactly, that it takes.
        expected_bytes: u64,
        /// Given.
        found_bytes: u64,
    },
    /// The first bytes do not name the structure: it was never written here.
    #[error("this is no {structure}: it starts with {found:#018x} instead of {expected:#018x}")]
    Magic {
        /// What was read.
        structure: Structure,
        /// The structure's magic number.
        expected: u64,
        /// Its place holds this.
        found: u64,
    },
    /// A newer program wrote it.
    #[error(
        "{structure} has format version {found}, and this program reads versions up to \
         {supported}; use a newer release of Tamis"
    )]
    NewerVersion {
        /// What was read.
        structure: Structure,
        /// Newest version that this program reads.
        supported: u32,
        /// Its version.
        found: u32,
    },
    /// A newer program gave the store what this one does not know.
    #[error(
        "the store has {class} features that this program does not know ({bits:#x}); {} use a \
         newer release of Tamis",
        .class.what_is_allowed()
    )]
    UnknownFeatures {
        /// What a program that does not know them may do.
        class: FeatureClass,
        /// Their bits.
        bits: u64,
    },
    /// The bytes were changed since they were written, or were written in part.
    #[error("checksum of {structure} is {found:#010x} instead of {expected:#010x}")]
    Checksum {
        /// What was read.
        structure: Structure,
        /// The CRC32C that it carries.
        expected: u32,
        /// The CRC32C of what was read.
        found: u32,
    },
    /// The page is whole, but is not the version of it that was asked for.
    #[error("{id} has tag {found:#08x}, but the pointer to it says {expected:#08x}")]
    PageTag {
        /// The page.
        id: PageId,
        /// Low 24 bits of the checksum of the page pointed to.
        expected: u32,
        /// Those of this page.
        found: u32,
    },
    /// The page is whole, but is another one.
    #[error("expected {expected} but found {found}")]
    WrongPage {
        /// Asked for.
        expected: PageId,
        /// Says the page.
        found: PageId,
    },
    /// It was written by another store.
    #[error("{structure} belongs to another store")]
    OtherStore {
        /// What was read.
        structure: Structure,
    },
    /// A field holds what no program writes.
    #[error("{structure} has the impossible {field} {found}")]
    Field {
        /// What was read.
        structure: Structure,
        /// In the words of `docs/format.md`.
        field: &'static str,
        /// Its value; of a text, its length in bytes.
        found: u64,
    },
}

impl FormatError {
    /// Whether a newer program can make sense of what this one cannot.
    #[must_use]
    pub fn asks_for_a_newer_program(&self) -> bool {
        matches!(self, Self::NewerVersion { .. } | Self::UnknownFeatures { .. })
    }

    pub(crate) fn field(structure: Structure, field: &'static str, found: u64) -> Self {
        Self::Field { structure, field, found }
    }

    /// An error unless there are at least `expected_bytes`.
    pub(crate) fn at_least(
        structure: Structure,
        expected_bytes: usize,
        bytes: &[u8],
    ) -> Result<(), Self> {
        if bytes.len() >= expected_bytes {
            return Ok(());
        }
        let (expected_bytes, found_bytes) = (expected_bytes as u64, bytes.len() as u64);
        Err(Self::Length { structure, expected_bytes, found_bytes })
    }

    /// An error unless the two checksums are one.
    pub(crate) fn checksum(structure: Structure, expected: u32, found: u32) -> Result<(), Self> {
        if expected == found {
            return Ok(());
        }
        Err(Self::Checksum { structure, expected, found })
    }
}
