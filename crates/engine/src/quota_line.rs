//! Writes that wait for their volume's quota, and the memory in which they wait.
//!
//! Such a wait may last as long as a deletion does, and everybody else needs the write buffer
//! meanwhile. So all that waits keeps a small part of it. What comes beyond that waits *aside*, in
//! memory of its own, and doors take no further writes to its volume until none of them waits any
//! more ([`VolumeShared::holds_writers_up`]). What was on its way already, finds no memory aside
//! either, and would wait for something to be given back, is refused.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::client::pooled_bytes;
use crate::credits::Credits;
use crate::intake::WriteRequest;
use crate::volume::VolumeShared;

/// What waits may keep this part of the write buffer.
const KEPT_PART: usize = 4;
/// Memory aside: as much as a write buffer, if that is not large.
const ASIDE_BYTES_MAX: usize = 32 << 20;

/// Until when writes to a volume wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Pages have come, or what is under way has ended.
    Soon,
    /// Something has been given back.
    GivenBack,
}

/// Writes that wait for their volume's quota.
pub(crate) struct QuotaLine {
    /// In the order in which they came.
    pub(crate) writes: VecDeque<WriteRequest>,
    kept_bytes_max: usize,
    aside: Arc<Credits>,
    /// Volumes whose writers are held up.
    held_up: Vec<Arc<VolumeShared>>,
}

/// The volumes whose writes wait, and what these keep of the write buffer, found in one pass over
/// the line.
#[derive(Default)]
pub(crate) struct Pass {
    waiting: Vec<(Arc<VolumeShared>, Until)>,
    kept_bytes: usize,
}

impl Pass {
    /// Until when the first write to this volume waits; none if it has not been met yet.
    pub(crate) fn until(&self, volume: &Arc<VolumeShared>) -> Option<Until> {
        let mut waiting = self.waiting.iter();
        waiting.find(|(of, _)| Arc::ptr_eq(of, volume)).map(|(_, until)| *until)
    }

    /// The first write to this volume waits.
    pub(crate) fn begin(&mut self, volume: &Arc<VolumeShared>, until: Until) {
        self.waiting.push((Arc::clone(volume), until));
    }
}

impl QuotaLine {
    pub(crate) fn new(write_buffer_bytes: usize) -> Self {
        Self {
            writes: VecDeque::new(),
            kept_bytes_max: write_buffer_bytes / KEPT_PART,
            aside: Arc::new(Credits::new(write_buffer_bytes.min(ASIDE_BYTES_MAX) as u64)),
            held_up: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.held_up.is_empty()
    }

    /// Memory aside that is taken.
    pub(crate) fn aside_bytes(&self) -> u64 {
        self.aside.used_bytes()
    }

    /// Has a write wait; it comes back if there is no memory in which it may.
    pub(crate) fn keep(
        &mut self,
        mut write: WriteRequest,
        until: Until,
        pass: &mut Pass,
    ) -> Result<(), WriteRequest> {
        if !write.aside {
            let bytes = pooled_bytes(write.buf.bytes().len());
            if pass.kept_bytes + bytes <= self.kept_bytes_max {
                pass.kept_bytes += bytes;
            } else {
                self.hold_up(&write.volume);
                if !self.put_aside(&mut write, bytes) && until == Until::GivenBack {
                    return Err(write);
                }
            }
        }
        self.writes.push_back(write);
        Ok(())
    }

    fn put_aside(&self, write: &mut WriteRequest, bytes: usize) -> bool {
        // Nobody else has it before it is in a group.
        let Some(buf) = Arc::get_mut(&mut write.buf) else { return false };
        let Some(permit) = self.aside.try_permit(bytes) else { return false };
        buf.replace_permit(permit);
        write.aside = true;
        true
    }

    fn hold_up(&mut self, volume: &Arc<VolumeShared>) {
        if !volume.holds_writers_up() {
            volume.hold_writers_up(true);
            self.held_up.push(Arc::clone(volume));
        }
    }

    /// Writers of volumes of which nothing waits any more go on.
    pub(crate) fn let_go(&mut self) {
        let writes = &self.writes;
        self.held_up.retain(|volume| {
            let waits = writes.iter().any(|write| Arc::ptr_eq(&write.volume, volume));
            volume.hold_writers_up(waits);
            waits
        });
    }
}
