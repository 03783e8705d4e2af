//! Stretches are read, and frames taken from them: the part [`Ahead`] over the core.

use format::BLOCK_BYTES;
use format::container_page::ContainerState;
use format::frame;
use format::units::{CONTAINER_BYTES, ContainerId, Pba, Pbn};
use reduce::frame_bytes_max;

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::devices::{Place, Purpose};
use crate::read::ahead::{Ahead, Found};
use crate::read::reads::Span;

impl Ahead {
    /// Reads these stretches, for nobody yet.
    pub(crate) fn read_spans_ahead(&mut self, core: &mut Core, spans: Vec<Span>) {
        for Span { container, first_bytes, end_bytes, .. } in spans {
            self.read_stretch(core, (container, first_bytes), end_bytes);
        }
    }

    /// Whether nothing need be read for a chunk that may be asked for soon.
    pub(crate) fn is_near(&self, core: &Core, pbn: Pbn, pba: Pba) -> bool {
        let life = core.state.containers.get(pba.container);
        core.frames.contains(pbn)
            || core.placement.is_in_memory(pba.container)
            || !matches!(self.find(pba, life.sequence), Found::Absent)
    }

    /// Where a frame is as far as stretches go; taken from one only if it is as it is meant, its
    /// payload included if this `verifies`.
    pub(crate) fn found_ahead(
        &mut self,
        core: &mut Core,
        pbn: Pbn,
        pba: Pba,
        verifies: bool,
    ) -> Found {
        let life = core.state.containers.get(pba.container);
        let found = self.find(pba, life.sequence);
        let Found::Here(buf, start) = &found else { return found };
        let start = *start as usize;
        let frame = buf.get(start..start + pba.length_bytes as usize);
        let is_right = if verifies { frame::is_meant } else { frame::claims_to_be };
        if !frame.is_some_and(|frame| is_right(frame, pbn, pba.check)) {
            return Found::Absent;
        }
        self.used(pba);
        found
    }

    /// A group is compared with chunks in these places on the device: what follows a run of them is
    /// read.
    pub(crate) fn follow_comparisons(&mut self, core: &mut Core, places: &[Pba]) {
        if self.of_comparisons.bytes == 0 {
            return;
        }
        let mut runs: Vec<(ContainerId, usize, u32)> = Vec::new();
        for pba in places {
            let end_bytes = pba.offset_bytes + pba.length_bytes;
            match runs.iter_mut().rev().find(|(of, ..)| *of == pba.container) {
                Some((_, length, reach)) => {
                    *length += 1;
                    *reach = end_bytes.max(*reach);
                }
                None => runs.push((pba.container, 1, end_bytes)),
            }
        }
        let run_min = self.of_comparisons.run_min;
        for (container, _, reach) in runs.into_iter().filter(|run| run.1 >= run_min) {
            self.read_along(core, container, reach);
        }
    }

    /// Reads what follows in a container, and from the beginning of the next one.
    fn read_along(&mut self, core: &mut Core, first: ContainerId, from_bytes: u32) {
        let window_bytes = self.window_bytes().min(u64::from(self.of_comparisons.bytes)) as u32;
        let (mut at, mut left_bytes) = (from_bytes, window_bytes);
        for container in [first, ContainerId(first.0.saturating_add(1))] {
            let life = core.state.containers.get(container);
            if life.state != ContainerState::Sealed || core.placement.is_in_memory(container) {
                return;
            }
            let used_bytes = whole_blocks(life.used_bytes).min(CONTAINER_BYTES);
            let end_bytes = whole_blocks(at.saturating_add(left_bytes)).min(used_bytes);
            let start_bytes = self.covered_to(container, at, life.sequence);
            let lacks_bytes = end_bytes.saturating_sub(start_bytes);
            // In halves of a window, or what is left of the container.
            if lacks_bytes >= window_bytes / 2 || (lacks_bytes > 0 && end_bytes == used_bytes) {
                // The stretch includes the frame that lies across the end of what is here.
                let frame_bytes = frame_bytes_max(core.geometry.chunk_bytes as usize) as u32;
                let overlap_bytes = if start_bytes > at { frame_bytes } else { 0 };
                let start_bytes = start_bytes.saturating_sub(overlap_bytes);
                let first_bytes = start_bytes / BLOCK_BYTES as u32 * BLOCK_BYTES as u32;
                self.read_stretch(core, (container, first_bytes), end_bytes);
            }
            left_bytes = left_bytes.saturating_sub(end_bytes.saturating_sub(at));
            at = 0;
            if left_bytes == 0 {
                return;
            }
        }
    }

    fn read_stretch(&mut self, core: &mut Core, place: Place, end_bytes: u32) {
        let (container, first_bytes) = place;
        let sequence = core.state.containers.get(container).sequence;
        let Some((zone, start_bytes)) = core.geometry.container_zone(container) else {
            return core.violated(Invariant::ContainersKeepNumbers);
        };
        if core.is_closing || !self.begin(place, end_bytes, sequence) {
            return;
        }
        core.placement.space.pin(container);
        let offset_bytes = start_bytes + u64::from(first_bytes);
        let length_bytes = (end_bytes - first_bytes) as usize;
        core.devices.read(zone, offset_bytes, length_bytes, Purpose::Ahead(place));
    }
}

fn whole_blocks(bytes: u32) -> u32 {
    bytes.next_multiple_of(BLOCK_BYTES as u32)
}
