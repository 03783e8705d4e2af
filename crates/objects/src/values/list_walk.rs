//! A walk over all of a value's list: what a repair and a recount ask for.

use format::objects::record::Value;
use format::objects::segments::ListEntry;

use super::error::ValueError;
use super::list_cursor::{push_reversed, read_block};
use crate::volume::BucketVolume;

/// Calls `look` with each entry in and below the list of `value`, in the order of the value's
/// bytes, and with the offset of the entry's first byte.
///
/// # Errors
/// [`ValueError::Damaged`] and [`ValueError::DamagedList`] when a block cannot be read;
/// [`ValueError::Volume`]; those of `look`.
pub(crate) fn walk_list(
    volume: &dyn BucketVolume,
    value: &Value,
    mut look: impl FnMut(&ListEntry, u64) -> Result<(), ValueError>,
) -> Result<(), ValueError> {
    let mut stack = Vec::new();
    push_reversed(&mut stack, value.entries(), 0);
    while let Some((entry, start_bytes)) = stack.pop() {
        look(&entry, start_bytes)?;
        if let ListEntry::Subtree(subtree) = entry {
            let entries = read_block(volume, &subtree, start_bytes)?;
            push_reversed(&mut stack, &entries, start_bytes);
        }
    }
    Ok(())
}
