//! What a request comes back with.
//!
//! The core only thinks: a read's reply carries compressed frames and buffered chunks, and who
//! asked puts them together with [`ReadPieces::assemble`] on its own thread. Decompression and
//! verification therefore run in parallel and cost the core nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use disk::AlignedBuf;
use format::catalog::{Dedup, Origin, VolumeKind};
use format::frame;
use format::superblock::Geometry;
use format::units::{Compression, FrameCheck, Pbn};
use mutants::mutant;
use reduce::{ChunkRef, Permit, expand_frame};

use crate::collect::step::CollectStep;
use crate::door::error::RequestError;
use crate::door::reservation::Reservation;
use crate::evacuate::ZoneInfo;
use crate::explain::explanation::Explanation;
use crate::read::frame_cache::HeldFrame;
use crate::scrub::ScrubStep;
use crate::stats::Stats;
use crate::stats::stages::Expanding;
use crate::walk::difference::DifferenceStep;
use crate::walk::weight::WeightStep;

/// A run of a volume that is wholly mapped or wholly not.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length of the run.
    pub length_bytes: u64,
    /// True where nothing is stored: it reads as zeros.
    pub hole: bool,
}

/// A run of a read's bytes that is data or a hole.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From the start of the read.
    pub offset_bytes: u32,
    /// Length of the run.
    pub length_bytes: u32,
    /// True where the bytes are zeros because nothing is stored.
    pub hole: bool,
}

/// A volume as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its name.
    pub name: String,
    /// Its stable number.
    pub id: u32,
    /// Its logical size.
    pub size_bytes: u64,
    /// Bytes of it that are mapped to chunks.
    pub mapped_bytes: u64,
    /// Whether writes are refused.
    pub read_only: bool,
    /// What may be mapped of it at most, if it has a quota.
    pub quota_bytes: Option<u64>,
    /// Of how much of it the room is its own: what it does not map yet of that, nobody else takes.
    pub reservation_bytes: Option<u64>,
    /// What its bytes are.
    pub kind: VolumeKind,
    /// Whether duplicates are looked for among what is written to it.
    pub dedup: Dedup,
    /// What its new frames are compressed with; none: with what the store's are.
    pub compression: Option<Compression>,
    /// Whether all its new chunks are looked up now, which `auto` changes.
    pub dedup_active: bool,
    /// Chunks that were stored without a look-up since the store was opened, or the switch last
    /// turned.
    pub unindexed_chunks: u64,
    /// The domain whose chunks it shares; none: the default one.
    pub domain: Option<String>,
    /// Of a snapshot, when it was taken, in seconds since 1970; 0 when nobody knows.
    pub taken_unix_s: Option<u64>,
    /// The snapshot that it was made from, or that was taken of it last, with whose chunks it
    /// shares.
    pub parent: Option<String>,
    /// Of a snapshot that is a copy, which one of.
    pub origin: Option<Origin>,
}

/// What a request that succeeded comes back with, where answers of all types go one way
/// ([`crate::Completions`]).
#[derive(Debug)]
#[non_exhaustive]
pub enum Reply {
    /// It is done.
    Done,
    /// Bytes, still as they are stored.
    Read(ReadPieces),
    /// Runs of data and holes.
    Extents(Vec<Extent>),
    /// A volume that was opened.
    Volume(crate::door::open_volume::OpenVolume),
    /// Who has a volume open.
    Opens(Vec<crate::door::opens::OpenInfo>),
    /// Room that its holder has from now on.
    Reservation(Reservation),
    /// One volume.
    VolumeInfo(VolumeInfo),
    /// All volumes.
    Volumes(Vec<VolumeInfo>),
    /// What new frames are compressed with.
    Compression(Compression),
    /// Figures of the store.
    Stats(Box<Stats>),
    /// What the store is made of.
    Geometry(Box<Geometry>),
    /// What one address is, all the way down.
    Explanation(Box<Explanation>),
    /// Where two versions differ, as far as a step has looked.
    Difference(Box<DifferenceStep>),
    /// What a volume weighs, as far as a step has gone.
    Weight(Box<WeightStep>),
    /// What a step of a scrub did.
    Scrub(Box<ScrubStep>),
    /// What a step of collection did.
    Collect(Box<CollectStep>),
    /// All data zones.
    Zones(Vec<ZoneInfo>),
}

impl From<()> for Reply {
    fn from((): ()) -> Self {
        Self::Done
    }
}

macro_rules! replies {
    ($($variant:ident: $answer:ty $(=> $boxed:ident)?;)*) => {
        $(impl From<$answer> for Reply {
            fn from(answer: $answer) -> Self {
                Self::$variant($($boxed::new)?(answer))
            }
        })*
    };
}

replies! {
    Read: ReadPieces;
    Extents: Vec<Extent>;
    Volume: crate::door::open_volume::OpenVolume;
    Opens: Vec<crate::door::opens::OpenInfo>;
    Reservation: Reservation;
    VolumeInfo: VolumeInfo;
    Volumes: Vec<VolumeInfo>;
    Compression: Compression;
    Stats: Stats => Box;
    Geometry: Geometry => Box;
    Explanation: Explanation => Box;
    Difference: DifferenceStep => Box;
    Weight: WeightStep => Box;
    Scrub: ScrubStep => Box;
    Collect: CollectStep => Box;
    Zones: Vec<ZoneInfo>;
}

/// Where the bytes of one part of a read come from.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Nothing stored: zeros.
    Zeros,
    /// A chunk that is still in the write buffer.
    Plain(ChunkRef),
    /// A copy of what is taken of one, for which the read's own memory pays.
    Copied(Box<[u8]>),
    /// A frame, and what it should be.
    Frame { bytes: FrameBytes, pbn: Pbn, check: FrameCheck },
    /// A frame whose bytes are still on their way; replaced before the reply is given.
    Pending,
}

/// Where the bytes of a frame are.
#[derive(Debug)]
pub(crate) enum FrameBytes {
    /// In memory, alone.
    Held(Arc<HeldFrame>),
    /// Among others that were read with it.
    Read { buf: Arc<AlignedBuf>, offset_bytes: u32, length_bytes: u32 },
}

impl FrameBytes {
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Held(frame) => Some(frame),
            Self::Read { buf, offset_bytes, length_bytes } => {
                let start = *offset_bytes as usize;
                buf.get(start..start.checked_add(*length_bytes as usize)?)
            }
        }
    }
}

/// One chunk's part of a read.
#[derive(Debug)]
pub(crate) struct PiecePart {
    pub(crate) piece: Piece,
    /// Address of the chunk.
    pub(crate) lba: u64,
    /// Bytes of the chunk to leave out at its start.
    pub(crate) skip_bytes: u32,
    /// Bytes of the chunk to take.
    pub(crate) take_bytes: u32,
}

impl PiecePart {
    /// What of the whole chunk is taken.
    fn taken<'a>(&self, chunk: &'a ChunkRef) -> Option<&'a [u8]> {
        let skip = self.skip_bytes as usize;
        chunk.bytes().get(skip..skip + self.take_bytes as usize)
    }

    /// The same bytes alone, if they lie among others.
    fn own_bytes(&self) -> Option<Piece> {
        match &self.piece {
            Piece::Plain(chunk) => Some(Piece::Copied(Box::from(self.taken(chunk)?))),
            Piece::Frame { bytes: bytes @ FrameBytes::Read { .. }, pbn, check } => {
                let bytes = FrameBytes::Held(HeldFrame::new(bytes.bytes()?));
                Some(Piece::Frame { bytes, pbn: *pbn, check: *check })
            }
            _ => None,
        }
    }
}

/// The bytes of a read, as they are stored: put them together with [`ReadPieces::assemble`].
#[derive(Debug)]
pub struct ReadPieces {
    pub(crate) parts: Vec<PiecePart>,
    pub(crate) chunk_bytes: u32,
    pub(crate) volume: Arc<crate::door::volume::VolumeShared>,
    pub(crate) expanding: Arc<Expanding>,
    /// Gives its memory back to the engine's bound when the reply is dropped.
    pub(crate) permit: Option<Permit>,
}

impl ReadPieces {
    /// Bytes that [`ReadPieces::assemble`] fills.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.take_bytes as usize).sum()
    }

    /// What the read holds of the memory for reads: for a door that keeps bytes that were made of
    /// it.
    #[must_use]
    pub fn into_permit(self) -> Option<Permit> {
        self.permit
    }

    /// From now on it holds no more than it takes: for a door that may keep it long. A chunk of the
    /// write buffer holds the memory of its whole write, which all writers wait for, and a frame
    /// that was read ahead a whole stretch.
    pub fn keep_own_bytes(&mut self) {
        for part in &mut self.parts {
            if let Some(own) = part.own_bytes() {
                part.piece = own;
            }
        }
    }

    /// The read as runs of data and holes, merged, in order.
    #[must_use]
    pub fn segments(&self) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut offset_bytes = 0;
        for part in &self.parts {
            let hole = matches!(part.piece, Piece::Zeros);
            match segments.last_mut() {
                Some(last) if last.hole == hole => last.length_bytes += part.take_bytes,
                _ => segments.push(Segment { offset_bytes, length_bytes: part.take_bytes, hole }),
            }
            offset_bytes += part.take_bytes;
        }
        segments
    }

    /// Decompresses and verifies every part into `out`, which is [`ReadPieces::length_bytes`] long.
    ///
    /// # Errors
    /// [`RequestError::Damaged`] names the first chunk whose stored bytes fail their check.
    pub fn assemble(&self, out: &mut [u8]) -> Result<(), RequestError> {
        let begun = self.expanding.now();
        let mut scratch = Vec::new();
        let mut rest = out;
        for part in &self.parts {
            let Some((target, after)) = rest.split_at_mut_checked(part.take_bytes as usize) else {
                break;
            };
            self.assemble_part(part, target, &mut scratch)?;
            rest = after;
        }
        self.expanding.ended(begun, self.parts.len());
        Ok(())
    }

    fn assemble_part(
        &self,
        part: &PiecePart,
        target: &mut [u8],
        scratch: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        let skip = part.skip_bytes as usize;
        match &part.piece {
            Piece::Zeros => target.fill(0),
            Piece::Plain(chunk) => {
                target.copy_from_slice(part.taken(chunk).ok_or_else(|| self.damage(part))?);
            }
            Piece::Copied(taken) => target.copy_from_slice(taken),
            Piece::Frame { bytes, pbn, check } => {
                let frame = bytes.bytes().ok_or_else(|| self.damage(part))?;
                // Another check: the frame's write was lost, and an older frame stands there.
                if !check.allows(frame::check_of(frame)) && !mutant!(BelievesStaleFrame) {
                    return Err(self.damage(part));
                }
                let whole = target.len() == self.chunk_bytes as usize;
                scratch.resize(if whole { 0 } else { self.chunk_bytes as usize }, 0);
                let expanded = expand_frame(frame, if whole { &mut *target } else { scratch });
                // A sound frame of another chunk is a write that went elsewhere.
                if !expanded.is_ok_and(|header| header.pbn == *pbn) {
                    return Err(self.damage(part));
                }
                if !whole {
                    target.copy_from_slice(&scratch[skip..skip + target.len()]);
                }
            }
            Piece::Pending => return Err(self.damage(part)),
        }
        Ok(())
    }

    fn damage(&self, part: &PiecePart) -> RequestError {
        self.expanding.damaged.fetch_add(1, Ordering::Relaxed);
        RequestError::Damaged { volume: self.volume.name(), lba: part.lba }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use disk::AlignedBuf;
    use format::frame::{ChunkName, check_of};
    use format::units::{Codec, Compression, Pbn, VolumeId};
    use reduce::{ChunkBuf, ChunkRef, compress_frame};

    use super::{FrameBytes, Piece, PiecePart, ReadPieces};
    use crate::door::volume::VolumeShared;

    const CHUNK: usize = 4096;

    #[test]
    fn a_read_that_is_kept_holds_what_it_takes_and_no_more() {
        let write = Arc::new(ChunkBuf::new((0..8 * CHUNK).map(|at| (at / 512) as u8).collect()));
        let mut stretch = AlignedBuf::new_zeroed(8 * CHUNK);
        let compression = Compression { codec: Codec::Lz4, level: 0 };
        let name = ChunkName::unkeyed(Pbn(9));
        let length = compress_frame(compression, name, &[5; CHUNK], &mut stretch[CHUNK..]);
        let check = check_of(&stretch[CHUNK..CHUNK + length]);
        let (offset_bytes, length_bytes) = (CHUNK as u32, length as u32);
        let stretch = Arc::new(stretch);
        let bytes = FrameBytes::Read { buf: Arc::clone(&stretch), offset_bytes, length_bytes };
        let framed = Piece::Frame { bytes, pbn: Pbn(9), check };
        let volume = VolumeShared::new(
            VolumeId(1),
            "v",
            1 << 20,
            false,
            CHUNK as u32,
            None,
            Default::default(),
        );
        let plain = Piece::Plain(ChunkRef::new(Arc::clone(&write), CHUNK as u32, CHUNK as u32));
        let part = |piece, lba, skip_bytes| PiecePart { piece, lba, skip_bytes, take_bytes: 1024 };
        let mut pieces = ReadPieces {
            parts: vec![part(plain, 0, 512), part(framed, 1, 0), part(Piece::Zeros, 2, 0)],
            chunk_bytes: CHUNK as u32,
            volume,
            expanding: Arc::default(),
            permit: None,
        };
        let assembled = |pieces: &ReadPieces| {
            let mut bytes = vec![0xaa; pieces.length_bytes()];
            pieces.assemble(&mut bytes).unwrap();
            bytes
        };
        let before = assembled(&pieces);
        assert_eq!((Arc::strong_count(&write), Arc::strong_count(&stretch)), (2, 2));
        pieces.keep_own_bytes();
        assert_eq!((Arc::strong_count(&write), Arc::strong_count(&stretch)), (1, 1));
        assert!(assembled(&pieces) == before);
    }
}
