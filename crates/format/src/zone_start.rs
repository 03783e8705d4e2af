//! Whether a file or a device is a zone of a store, by its beginning: for who is about to write
//! over it and does not have the store.

use crate::field::u64_at;
use crate::frame::{self, FRAME_BYTES_MAX};
use crate::{mark, record, superblock};

/// How many bytes of the beginning are enough to tell.
pub const ZONE_START_BYTES: usize = FRAME_BYTES_MAX;

/// Whether a zone begins with these bytes: the superblock with its geometry, the journal with a
/// record, a data zone with a frame, and each that was marked and not written to since with its
/// mark. Others, of stores from before there were marks, begin with zeros.
#[must_use]
pub fn begins_a_zone(start: &[u8]) -> bool {
    let magic = start.get(..8).map(|magic| u64_at(magic, 0));
    let is_named = magic.is_some_and(|magic| [superblock::MAGIC, mark::MAGIC].contains(&magic));
    is_named || record::decode_header(start).is_ok() || frame::begins_whole(start)
}
