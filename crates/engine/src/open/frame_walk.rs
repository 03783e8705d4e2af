//! What a container holds according to its frames, walked from one to the next.
//!
//! Where the store was once opened after a cut, bytes of frames that were never promised may lie
//! between the cut and the block at which the container went on: the walk takes up again at the
//! next block. An entry for such a frame does no harm, since the tables place its chunk elsewhere.
//!
//! Behind a frame that is damaged the walk takes up where that says that it ends, if a frame is
//! there. A frame that was cut says so too, and what it claims may reach over frames that the next
//! life has written from the next block on: to one of them, or to the padding behind a few. So
//! those are walked as well.

use containers::scan;
use format::BLOCK_BYTES;
use format::directory::DirectoryEntry;
use format::frame::{self, FRAME_BYTES_MAX, FrameHeader};
use format::superblock::Geometry;
use format::units::{ContainerId, Pba};
use reduce::expand_frame;

use crate::geometry::fingerprinters;

/// What a container holds according to its frames.
pub(crate) struct ScannedEntries {
    pub(crate) entries: Vec<DirectoryEntry>,
    /// All of its bytes are frames of these, and paddings: there was nothing else.
    pub(crate) is_all: bool,
}

/// What a container holds according to its frames: each is expanded and fingerprinted.
pub(crate) fn entries_by_scan(
    id: ContainerId,
    image: &[u8],
    geometry: &Geometry,
) -> ScannedEntries {
    let mut found = ScannedEntries { entries: Vec::new(), is_all: true };
    let length_bytes = image.len() as u32;
    let walk = |at: u32, end: u32| scan(id, image, at..end, frame::claimed_bytes);
    let entry = |&(header, pba): &(FrameHeader, Pba)| entry_of(header, pba, image, geometry);
    let (mut at, mut scanned) = (0, walk(0, length_bytes));
    while at < length_bytes {
        let before = found.entries.len();
        found.entries.extend(scanned.frames.iter().filter_map(entry));
        found.is_all &= found.entries.len() - before == scanned.frames.len();
        at = scanned.end_bytes;
        if at < length_bytes {
            found.is_all = false;
            let claimed_bytes = image.get(at as usize..).and_then(frame::claimed_bytes);
            let behind = at.saturating_add(claimed_bytes.unwrap_or(0) as u32);
            let block = (at + 1).next_multiple_of(BLOCK_BYTES as u32);
            scanned = walk(behind, length_bytes);
            if scanned.frames.is_empty() {
                at = block;
                scanned = walk(at, length_bytes);
            } else if block < behind {
                let end = behind.saturating_add(FRAME_BYTES_MAX as u32).min(length_bytes);
                let frames = walk(block, end).frames;
                let claimed = frames.iter().filter(|(_, pba)| pba.offset_bytes < behind);
                found.entries.extend(claimed.filter_map(entry));
            }
        }
    }
    found
}

pub(crate) fn entry_of(
    header: FrameHeader,
    pba: Pba,
    image: &[u8],
    geometry: &Geometry,
) -> Option<DirectoryEntry> {
    let mut plain = vec![0; geometry.chunk_bytes as usize];
    let (offset_bytes, length_bytes) = (pba.offset_bytes, pba.length_bytes);
    expand_frame(image.get(pba.range())?, &mut plain).ok()?;
    let fingerprint = fingerprinters(geometry).of(header.domain).one(&plain)?;
    Some(DirectoryEntry { fingerprint, pbn: header.pbn, offset_bytes, length_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::domain::DomainId;
    use format::frame::FRAME_HEADER_BYTES;
    use format::units::{Codec, Pbn};

    const BLOCK: usize = BLOCK_BYTES;
    const CHUNK: usize = 512;
    const FRAME: usize = FRAME_HEADER_BYTES + CHUNK;

    fn geometry() -> Geometry {
        Geometry {
            version: format::FORMAT_VERSION_COMMON,
            uuid: [1; 16],
            bucket_seed: [2; 16],
            chunk_bytes: CHUNK as u32,
            container_bytes: 4 << 20,
            journal_bytes: 16 << 20,
            tables_bytes: 64 << 20,
            data: vec![16],
            detection: Default::default(),
            marked: true,
            features: Default::default(),
        }
    }

    /// Puts the frame of a chunk of this length into `image`.
    fn put(image: &mut [u8], at: usize, pbn: u64, plain_bytes: usize) {
        let frame = &mut image[at..at + FRAME_HEADER_BYTES + plain_bytes];
        frame[FRAME_HEADER_BYTES..].fill(pbn as u8);
        let header = FrameHeader {
            codec: Codec::Raw,
            stored_bytes: plain_bytes as u32,
            plain_bytes: plain_bytes as u32,
            pbn: Pbn(pbn),
            domain: DomainId::DEFAULT,
        };
        frame::write_header(frame, &header);
    }

    fn pbns(image: &[u8]) -> Vec<u64> {
        let found = entries_by_scan(ContainerId(0), image, &geometry());
        let mut pbns: Vec<u64> = found.entries.iter().map(|entry| entry.pbn.0).collect();
        pbns.sort_unstable();
        pbns
    }

    /// Three blocks. A frame whose chunk has `plain_bytes` begins `before` the second, and was cut
    /// there; the next life has put 3 into the second block, and 4 at `last`.
    fn cut_frame(before: usize, plain_bytes: usize, last: usize) -> Vec<u8> {
        let mut image = vec![0; 3 * BLOCK];
        put(&mut image, BLOCK - before, 2, plain_bytes);
        image[BLOCK..].fill(0);
        put(&mut image, BLOCK, 3, CHUNK);
        put(&mut image, last, 4, CHUNK);
        image
    }

    #[test]
    fn what_a_cut_frame_claims_is_walked_when_it_ends_in_padding() {
        assert_eq!(pbns(&cut_frame(20, BLOCK, 2 * BLOCK)), [3, 4]);
    }

    #[test]
    fn what_a_cut_frame_claims_is_walked_when_it_ends_where_another_frame_does() {
        let (before, plain_bytes) = (CHUNK, 2 * CHUNK);
        assert_eq!(BLOCK - before + FRAME_HEADER_BYTES + plain_bytes, BLOCK + FRAME);
        assert_eq!(pbns(&cut_frame(before, plain_bytes, BLOCK + FRAME)), [3, 4]);
    }

    #[test]
    fn behind_a_damaged_frame_the_walk_goes_on() {
        let mut image = vec![0; BLOCK];
        for number in 0..3 {
            put(&mut image, number * FRAME, 1 + number as u64, CHUNK);
        }
        image[FRAME + 100] ^= 1;
        assert_eq!(pbns(&image), [1, 3]);
    }
}
