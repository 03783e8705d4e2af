//! Which chunks of a volume are looked for among what is stored.
//!
//! ```text
//! on      all
//! off     none
//! auto    all, or only the judges: chosen anew after every window, by the judges in it
//! ```
//!
//! The *judges* are an eighth of all chunks, chosen by their fingerprints: what is a judge when it
//! comes first is one when it comes again. They are looked for and entered whatever happens to the
//! others, so the share of duplicates among them is that among all: `auto` sees duplicates come
//! back when it looks for hardly anything. A window is 1024 chunks of a volume, as they come to be
//! looked up; with less than one duplicate in 64 judges only judges are looked for in the next.
//!
//! It is a choice among what a volume may be told to do anyway, so nothing on disk depends on it,
//! and it is in no journal: a store that is opened begins with looking for all. It follows from
//! the order of the writes alone, whatever the workers do in between.

use std::collections::BTreeMap;

use format::catalog::Dedup;
use format::units::{Fingerprint, VolumeId};

/// Chunks of a window, of a volume: 4 MiB of the usual ones.
const WINDOW_CHUNKS: u64 = 1024;
/// Of every so many chunks one judges.
const JUDGING: u8 = 8;
/// Of a window at least one chunk in so many has to judge, or nothing changes.
const JUDGES_MIN_PART: u64 = 64;
/// Less than one duplicate in so many judges is few.
const FEW: u64 = 64;

/// What is looked for, by volume.
pub(crate) struct Seeking {
    /// Volumes of which all is looked for are not here.
    others: BTreeMap<VolumeId, Sought>,
    window_chunks: u64,
}

/// What is looked for of a volume.
struct Sought {
    dedup: Dedup,
    /// Whether `auto` looks for all.
    all: bool,
    window: Window,
    /// Chunks that were stored without being looked for.
    unindexed_chunks: u64,
}

/// What a window has shown so far.
#[derive(Default)]
struct Window {
    chunks: u64,
    judges: u64,
    duplicates: u64,
}

impl Default for Seeking {
    fn default() -> Self {
        Self { others: BTreeMap::new(), window_chunks: WINDOW_CHUNKS }
    }
}

impl Seeking {
    /// From now on `auto` chooses after so many chunks of a volume, at least 1.
    pub(crate) fn judge_every(&mut self, chunks: u64) {
        self.window_chunks = chunks.max(1);
    }

    /// A volume is told what to look for.
    pub(crate) fn set(&mut self, volume: VolumeId, dedup: Dedup) {
        if dedup == Dedup::On {
            self.others.remove(&volume);
            return;
        }
        let all = dedup == Dedup::Auto;
        let sought = Sought { dedup, all, window: Window::default(), unindexed_chunks: 0 };
        self.others.insert(volume, sought);
    }

    /// Whether all of every volume is looked for.
    pub(crate) fn is_of_all(&self) -> bool {
        self.others.is_empty()
    }

    /// Whether a chunk is looked for now.
    pub(crate) fn seeks(&self, volume: VolumeId, fingerprint: &Fingerprint) -> bool {
        self.others.get(&volume).is_none_or(|sought| match sought.dedup {
            Dedup::On => true,
            Dedup::Off => false,
            Dedup::Auto => sought.all || is_judge(fingerprint),
        })
    }

    /// A chunk was planned, which was looked for or not.
    pub(crate) fn note(
        &mut self,
        volume: VolumeId,
        fingerprint: &Fingerprint,
        was_sought: bool,
        duplicate: bool,
    ) {
        let Some(sought) = self.others.get_mut(&volume) else { return };
        sought.unindexed_chunks += u64::from(!was_sought);
        let judge = is_judge(fingerprint);
        let window = &mut sought.window;
        window.chunks += 1;
        window.judges += u64::from(judge);
        window.duplicates += u64::from(judge && duplicate);
        if window.chunks >= self.window_chunks {
            let judges_min = (self.window_chunks / JUDGES_MIN_PART).max(1);
            if window.judges >= judges_min {
                sought.all = window.duplicates * FEW >= window.judges;
            }
            sought.window = Window::default();
        }
    }

    /// Whether all new chunks of a volume are looked for now.
    pub(crate) fn dedup_active(&self, volume: VolumeId) -> bool {
        self.others.get(&volume).is_none_or(|sought| sought.all)
    }

    /// Chunks of a volume that were stored without being looked for.
    pub(crate) fn unindexed_chunks(&self, volume: VolumeId) -> u64 {
        self.others.get(&volume).map_or(0, |sought| sought.unindexed_chunks)
    }
}

fn is_judge(fingerprint: &Fingerprint) -> bool {
    fingerprint.0[0].is_multiple_of(JUDGING)
}

#[cfg(test)]
mod tests;
