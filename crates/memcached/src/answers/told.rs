//! What a read is told: which bytes of a value are sent, and how many elements they are.

use crate::answer::Fault;
use crate::elements::{Found, Missing};
use crate::hit::Hit;
use crate::layout::Part;
use crate::operation::{Get, Operation};
use crate::request::Request;

/// What is sent of a value, and what is told of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) found: Found,
    /// How long the whole value is.
    pub(super) value_bytes: u64,
    /// How many elements that has, where the client asks for it and there are such; with a range
    /// of bytes, how many the whole value has.
    pub(super) count: Option<u64>,
}

impl Told {
    /// # Errors
    /// If there is no such part, or the value cannot be read.
    pub(super) fn of(
        get: &Get<'_>,
        hit: &Hit,
        value_bytes: u64,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), Fault>,
    ) -> Result<Self, Missing> {
        let layout = hit.item.layout;
        let whole = Found { offset: 0, bytes: value_bytes, layout };
        let found = match get.part {
            None => whole,
            Some(part) => part.find(layout, value_bytes, &mut read)?,
        };
        let end = found.offset.saturating_add(found.bytes);
        assert!(end <= value_bytes, "a part of a value is inside it");
        let count = match get.part {
            _ if !get.wants_count => None,
            Some(Part::Elements { .. }) => found.count(&mut read)?,
            // A range of bytes is of an array, and is none.
            Some(Part::Bytes { .. }) | None => whole.count(&mut read)?,
        };
        Ok(Told { found, value_bytes, count })
    }
}

/// The read that a value answers.
pub(super) fn get_of<'a>(request: &Request<'a>) -> Get<'a> {
    match request.operation {
        Operation::Get(get) => get,
        operation => panic!("a value answers a read, and not {operation:?}"),
    }
}

/// Reads of a value that is in memory.
pub(super) fn from_memory(
    value: &[u8],
) -> impl FnMut(u64, &mut [u8]) -> Result<(), Fault> + use<'_> {
    |offset, out| {
        let offset = offset as usize;
        out.copy_from_slice(&value[offset..offset + out.len()]);
        Ok(())
    }
}

/// Reads of a value that comes only as a whole.
pub(super) fn no_part(_offset: u64, _out: &mut [u8]) -> Result<(), Fault> {
    Err(Fault::Other("this cache reads no parts of long values".into()))
}
