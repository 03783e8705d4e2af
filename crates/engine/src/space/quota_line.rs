//! Writes that wait for their volume's quota, and the memory in which they wait.
//!
//! What waits until something has been given back may wait as long as a deletion takes, and
//! everybody else needs the write buffer meanwhile: one who wants all of it would wait for that
//! write, and everybody else for that one. So it waits *aside*, in memory of its own. There is as
//! much of that as may be on its way when doors are told to take no further writes to the volume
//! ([`VolumeShared::holds_writers_up`]), which is when a part is taken; they go on when none of its
//! writes waits any more. What finds no memory aside all the same is refused.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::door::client::pooled_bytes;
use crate::door::credits::Credits;
use crate::door::requests::WriteRequest;
use crate::door::volume::VolumeShared;

/// Doors are told when this part of a write buffer has been taken aside.
const TOLD_PART: usize = 4;
/// Memory aside: a write buffer and that part, if it is not large.
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
    aside: Arc<Credits>,
    told_bytes: usize,
    /// Volumes whose writers are held up.
    held_up: Vec<Arc<VolumeShared>>,
}

/// The volumes whose writes wait, as far as a pass over the line has met them.
#[derive(Default)]
pub(crate) struct Pass {
    waiting: Vec<(Arc<VolumeShared>, Until)>,
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
        let told_bytes = write_buffer_bytes / TOLD_PART;
        let aside_bytes = (write_buffer_bytes + told_bytes).min(ASIDE_BYTES_MAX);
        Self {
            writes: VecDeque::new(),
            aside: Arc::new(Credits::new(aside_bytes as u64)),
            told_bytes: told_bytes.min(aside_bytes / TOLD_PART),
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
    ) -> Result<(), WriteRequest> {
        if until == Until::GivenBack && !write.left_the_buffer {
            let is_aside = self.put_aside(&mut write);
            if self.aside.used_bytes() > self.told_bytes as u64 || !is_aside {
                self.hold_up(&write.volume);
            }
            if !is_aside {
                return Err(write);
            }
        }
        write.had_to_wait = true;
        self.writes.push_back(write);
        Ok(())
    }

    fn put_aside(&self, write: &mut WriteRequest) -> bool {
        // Nobody else has it before it is in a group.
        let Some(buf) = Arc::get_mut(&mut write.buf) else { return false };
        let bytes = pooled_bytes(buf.bytes().len());
        let Some(permit) = self.aside.try_permit(bytes) else { return false };
        buf.replace_permit(permit);
        write.left_the_buffer = true;
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
