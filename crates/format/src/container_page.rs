//! Leaves of the container table: how full each container is, and with what is alive.
//!
//! Container `n` is slot `n % SLOTS` of leaf `n / SLOTS`; an absent leaf is all free containers.

use crate::error::{FormatError, Structure};
use crate::field::{put_u32, u32_at};
use crate::page::{PAYLOAD_BYTES, Page};

/// Entries in a leaf.
pub const SLOTS: usize = 254;

pub(crate) const ENTRY_BYTES: usize = 16;
pub(crate) const LIVE_AT: usize = 0;
pub(crate) const USED_AT: usize = 4;
pub(crate) const STATE_AT: usize = 8;
pub(crate) const ZERO_AT: usize = 9;
pub(crate) const SEQUENCE_AT: usize = 12;

const _: () = assert!(ZERO_AT == STATE_AT + 1 && ZERO_AT < SEQUENCE_AT);
const _: () = assert!(SEQUENCE_AT + 4 == ENTRY_BYTES && SLOTS * ENTRY_BYTES == PAYLOAD_BYTES);

/// Where a container is in its life.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum ContainerState {
    /// Holds nothing.
    #[default]
    Free = 0,
    /// Frames are appended to it.
    Open = 1,
    /// Full, with its directory; only read from now on, until collection frees it.
    Sealed = 2,
}

impl ContainerState {
    fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Free),
            1 => Some(Self::Open),
            2 => Some(Self::Sealed),
            _ => None,
        }
    }
}

/// A container as the tables know it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ContainerEntry {
    /// Sum of the frames of live chunks.
    pub live_bytes: u32,
    /// Frames, dead ones and padding included.
    pub used_bytes: u32,
    /// Where it is in its life.
    pub state: ContainerState,
    /// Number of its opening, counted over all containers; 0 when it was never opened.
    pub sequence: u32,
}

/// The entry in `slot`, less than [`SLOTS`].
///
/// # Errors
/// [`FormatError::Field`] when it has a state that is none.
pub fn get(page: &Page, slot: usize) -> Result<ContainerEntry, FormatError> {
    let entry = &page.payload()[slot * ENTRY_BYTES..][..ENTRY_BYTES];
    let number = entry[STATE_AT];
    let state = ContainerState::from_number(number)
        .ok_or_else(|| FormatError::field(Structure::ContainerEntry, "state", u64::from(number)))?;
    Ok(ContainerEntry {
        live_bytes: u32_at(entry, LIVE_AT),
        used_bytes: u32_at(entry, USED_AT),
        state,
        sequence: u32_at(entry, SEQUENCE_AT),
    })
}

/// Changes the entry in `slot`, less than [`SLOTS`].
pub fn set(page: &mut Page, slot: usize, entry: &ContainerEntry) {
    let bytes = &mut page.payload_mut()[slot * ENTRY_BYTES..][..ENTRY_BYTES];
    bytes.fill(0);
    put_u32(bytes, LIVE_AT, entry.live_bytes);
    put_u32(bytes, USED_AT, entry.used_bytes);
    bytes[STATE_AT] = entry.state as u8;
    put_u32(bytes, SEQUENCE_AT, entry.sequence);
}
