//! Scrub of one container, second half: what its frames are worth, by workers and by the tables.

use std::sync::Arc;

use format::frame;
use format::units::{Fingerprint, FrameCheck, Pba, Pbn, TreeId};
use reduce::{FramePlace, Image, Job, Verdict};
use tables::{NextLeaf, PageError, pbn_pba, second_copies};

use crate::check::problem::Problem;
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::door::error::RequestError;
use crate::geometry::fingerprinters;
use crate::pages::wanted::Wanted;
use crate::scrub::damage::Evidence;
use crate::scrub::stages::{ContainerPhase, ContainerScrub, Listed};
use crate::scrub::state::{Progress, Running};

/// Frames of one job, and jobs at a time: clients' jobs go in between.
const JOB_FRAMES: usize = 64;
const JOBS_OUT_MAX: usize = 2;
/// Frames judged at a time: their pages are held together.
const SLICE_FRAMES: usize = 128;
/// Leaves of the PBN-PBA table that one attempt goes through.
const LEAVES_PER_ATTEMPT: usize = 64;

impl ContainerScrub {
    /// Has workers verify the frames.
    pub(crate) fn verify_container(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        let mut moved = false;
        while let Some((job, verdicts)) = running.verdicts.pop_first() {
            running.jobs_out -= 1;
            moved = true;
            self.lacks_verdicts |= verdicts.is_none();
            let first = job as usize * JOB_FRAMES;
            let verdicts = verdicts.into_iter().flatten();
            for (frame, verdict) in self.frames.iter_mut().skip(first).zip(verdicts) {
                frame.verdict = verdict;
            }
        }
        if self.lacks_verdicts {
            return self.give_container_up(core, running);
        }
        let jobs = self.frames.len().div_ceil(JOB_FRAMES);
        while self.next_job < jobs && running.jobs_out < JOBS_OUT_MAX {
            let first = self.next_job * JOB_FRAMES;
            let places = self.frames.iter().skip(first).take(JOB_FRAMES).map(place).collect();
            // Without a directory the fingerprints are needed to write one.
            let expand = running.fingerprints || self.traced.is_some();
            core.workers.submit(Job::Verify {
                tag: self.next_job as u64,
                image: Arc::clone(&self.image) as Arc<dyn Image>,
                frames: places,
                plain_bytes: expand.then_some(core.geometry.chunk_bytes),
                by: fingerprinters(&core.geometry),
            });
            self.next_job += 1;
            running.jobs_out += 1;
            moved = true;
        }
        if running.jobs_out == 0 && self.next_job == jobs {
            self.phase = ContainerPhase::Judging;
            return Progress::Moved;
        }
        if moved { Progress::Moved } else { Progress::Waits }
    }

    /// Ends the step without a verdict on the container, once its jobs have ended.
    fn give_container_up(&self, core: &mut Core, running: &Running) -> Progress {
        if running.jobs_out > 0 {
            return Progress::Waits;
        }
        core.placement.space.unpin(self.id);
        Progress::Failed(RequestError::WorkerLost)
    }

    /// Holds verdicts against what the tables say, a slice at a time.
    pub(crate) fn judge_container(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        let end = (self.judged + SLICE_FRAMES).min(self.frames.len());
        let mut slice: Vec<Listed> = self.frames[self.judged..end].to_vec();
        let Some(lost) = want_judged(core, running, &slice) else {
            return Progress::Waits;
        };
        for frame in &mut slice {
            let is_right = self.judge(core, running, frame, &lost);
            if is_right && !frame.is_copy {
                core.damage.clear(frame.pbn, Evidence::Fingerprint);
                core.note_popular(frame.pbn);
            }
        }
        self.frames[self.judged..end].copy_from_slice(&slice);
        self.judged = end;
        if self.judged < self.frames.len() {
            return Progress::Moved;
        }
        let recorded_bytes = u64::from(core.state.containers.get(self.id).live_bytes);
        let changed = core.live_watch.is_none_or(|(_, changed)| changed) || !self.is_in_life(core);
        let is_known = self.traced.is_none() && !changed && !self.lacks_pages;
        if self.is_sealed() && is_known && self.live_bytes != recorded_bytes {
            self.directory_is_sound = false;
            self.phase = ContainerPhase::Tracing;
        } else {
            self.phase = ContainerPhase::Healing;
        }
        Progress::Moved
    }

    /// Judges one frame; true if it is right. `lost` says which of its pages may not be had.
    fn judge(
        &mut self,
        core: &Core,
        running: &mut Running,
        frame: &mut Listed,
        lost: &Lost,
    ) -> bool {
        let placed = placed_at(core, frame.pbn, frame.pba(self.id));
        (frame.placed, frame.is_copy) = (placed.is_some(), false);
        let Some(Placed { check, lives, is_copy }) = placed else {
            self.lacks_pages |= lost.places;
            return false;
        };
        frame.is_copy = is_copy;
        let bytes = self.image.get(frame.offset_bytes as usize..).unwrap_or_default();
        if !check.allows(frame::check_of(bytes)) {
            frame.verdict = Verdict::Damaged;
        }
        self.live_bytes += if lives { u64::from(frame.length_bytes) } else { 0 };
        let lies_beneath = !is_copy && core.damage.lies_beneath_checksum(frame.pbn);
        let is_right = match frame.verdict {
            Verdict::Damaged => false,
            Verdict::Sound => !lies_beneath,
            // No directory says which fingerprint it should have.
            Verdict::Fingerprinted(_) if lies_beneath && frame.fingerprint.is_none() => false,
            Verdict::Fingerprinted(made) => {
                let listed = *frame.fingerprint.get_or_insert(made);
                if running.fingerprints && !lost.buckets {
                    is_found_by(core, running, frame.pbn, (made, listed))
                } else {
                    made == listed
                }
            }
        };
        if is_right {
            self.frames_sound += 1;
        } else {
            self.to_heal.push(*frame);
        }
        is_right
    }

    /// Finds what the PBN-PBA table places in the container, and the table of second copies.
    pub(crate) fn trace_container(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        if self.traced.is_none() {
            self.frames.clear();
            (self.next_job, self.judged, self.live_bytes, self.frames_sound) = (0, 0, 0, 0);
            self.to_heal.clear();
            self.traces_copies = false;
        }
        let from = self.traced.unwrap_or(0);
        let traced = self.trace_leaves(core, running, from);
        self.lacks_pages |= traced.is_err();
        match traced {
            Ok(Traced::Waits(leaf)) => {
                self.traced = Some(leaf);
                Progress::Waits
            }
            Ok(Traced::On(leaf)) => {
                self.traced = Some(leaf);
                Progress::Moved
            }
            // What stands below a damaged inner page is not found.
            Ok(Traced::End) | Err(_) if !self.traces_copies => {
                (self.traced, self.traces_copies) = (Some(0), true);
                Progress::Moved
            }
            Ok(Traced::End) | Err(_) => {
                self.traced = Some(u64::MAX);
                self.frames.sort_unstable_by_key(|frame| frame.offset_bytes);
                self.phase = ContainerPhase::Verifying;
                Progress::Moved
            }
        }
    }

    fn trace_leaves(
        &mut self,
        core: &mut Core,
        running: &mut Running,
        from: u64,
    ) -> Result<Traced, PageError> {
        let mut from = from;
        for _ in 0..LEAVES_PER_ATTEMPT {
            let mut wanted = Wanted::default();
            let tree = if self.traces_copies { TreeId::COPIES } else { TreeId::PBN_PBA };
            let next = core.state.store.next_leaf(tree, from, &mut wanted.reads)?;
            let leaf = match next {
                NextLeaf::Found(leaf) => Some(leaf),
                NextLeaf::End => return Ok(Traced::End),
                NextLeaf::Missing => None,
            };
            let here = match leaf {
                Some(leaf) => {
                    core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)
                }
                None => Ok(false),
            };
            core.hold_in(&mut running.pins, wanted);
            let Some(leaf) = leaf else { return Ok(Traced::Waits(from)) };
            match here {
                Ok(true) => self.trace_leaf(core, tree, leaf),
                Ok(false) => return Ok(Traced::Waits(leaf)),
                Err(_) => self.lacks_pages = true,
            }
            from = leaf + 1;
        }
        Ok(Traced::On(from))
    }

    fn trace_leaf(&mut self, core: &mut Core, tree: TreeId, leaf: u64) {
        let Some(page) = core.state.store.page(tree, leaf) else {
            return core.violated(Invariant::PinnedWhileRead);
        };
        for (pbn, entry) in pbn_pba::entries(leaf, page) {
            let (offset_bytes, length_bytes) = (entry.pba.offset_bytes, entry.pba.length_bytes);
            if entry.pba.container != self.id || offset_bytes + length_bytes > self.length_bytes {
                continue;
            }
            let (fingerprint, verdict) = (None, Verdict::Damaged);
            self.frames.push(Listed {
                pbn,
                offset_bytes,
                length_bytes,
                fingerprint,
                verdict,
                placed: false,
                is_copy: self.traces_copies,
            });
        }
    }
}

/// Asks for the pages of a slice; none while some have to be read. What stands in a damaged
/// page cannot be judged: the page is found by itself.
fn want_judged(core: &mut Core, running: &mut Running, slice: &[Listed]) -> Option<Lost> {
    let mut wanted = Wanted::default();
    let (mut here, mut lost) = (true, Lost::default());
    for frame in slice {
        let (places_here, all) = core.state.want_places(frame.pbn, &mut wanted);
        lost.places |= !all;
        here &= places_here;
        if let (true, Verdict::Fingerprinted(made)) = (running.fingerprints, frame.verdict) {
            let bucket = core.state.want_lookup(&made, &mut wanted);
            lost.buckets |= bucket.is_err();
            here &= bucket.unwrap_or(true);
        }
    }
    core.hold_in(&mut running.pins, wanted);
    here.then_some(lost)
}

/// What the tables say of the frame at `place`, if they place the chunk or its copy there.
fn placed_at(core: &Core, pbn: Pbn, place: Pba) -> Option<Placed> {
    let stored = pbn_pba::get(&core.state.store, pbn)?;
    if stored.pba.is_place_of(place) {
        let lives = stored.references > 0;
        return Some(Placed { check: stored.pba.check, lives, is_copy: false });
    }
    let copy = second_copies::get(&core.state.store, pbn)?;
    let placed = Placed { check: copy.check, lives: true, is_copy: true };
    copy.is_place_of(place).then_some(placed)
}

/// Whether the chunk has the fingerprint under which the Hash-PBN table finds it. An entry that
/// is missing is no damage of the chunk, and is told as what it is.
fn is_found_by(
    core: &Core,
    running: &mut Running,
    pbn: Pbn,
    (made, listed): (Fingerprint, Fingerprint),
) -> bool {
    let found = core.state.hash.lookup(&core.state.store, &made);
    if found == Some(pbn) {
        return true;
    }
    // What is unindexed has no entry.
    if made == listed && !core.verifies() && core.state.is_entered(pbn) {
        running.found(Problem::ChunkWithoutEntry { pbn: pbn.0 }, false);
    }
    made == listed
}

/// Pages that cannot be had, of those that a slice of frames is judged by.
#[derive(Default)]
struct Lost {
    places: bool,
    buckets: bool,
}

/// What the tables say of a frame.
struct Placed {
    check: FrameCheck,
    lives: bool,
    is_copy: bool,
}

/// How far the PBN-PBA table has been gone through.
enum Traced {
    Waits(u64),
    On(u64),
    End,
}

fn place(frame: &Listed) -> FramePlace {
    let Listed { pbn, offset_bytes, length_bytes, .. } = *frame;
    FramePlace { offset_bytes, length_bytes, pbn }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reduce::{JobDone, JobKind};

    use crate::door::done::Done;
    use crate::door::error::RequestError;
    use crate::door::opens::Opener;
    use crate::door::outcome::Reply;
    use crate::scrub::{ScrubPosition, ScrubRequest};
    use crate::small_store::{MIB, Told, beside, store};

    /// The step ends when its other jobs have, and one that comes later is whole.
    #[test]
    fn a_worker_that_panics_over_frames_ends_the_step_of_a_scrub_and_no_other() {
        let (mut engine, client) = store(Default::default());
        beside(&mut engine, &client, |client| {
            client.create_volume("v", 64 * MIB, false).unwrap();
            let volume = client.open_volume("v", Opener::new("a test", 0)).unwrap();
            let chunks: Vec<u8> = (0..512_u32).flat_map(|n| n.to_le_bytes().repeat(1024)).collect();
            client.write_at(&volume, 0, &chunks).unwrap();
            client.flush_blocking().unwrap();
        });
        let told = Arc::<Told>::default();
        let position = ScrubPosition::Containers { container: 0 };
        let request = ScrubRequest { position, fingerprints: false };
        client.administer(request, Done::new(Arc::clone(&told), 1));
        client.administer(request, Done::new(Arc::clone(&told), 2));
        while engine.scrub.running.as_ref().is_none_or(|(running, _)| running.jobs_out == 0) {
            engine.step();
        }
        let mut jobs = Vec::new();
        engine.core.workers.poll(&mut jobs);
        for (number, job) in jobs.into_iter().enumerate() {
            let JobDone::Verified { tag, .. } = job else { panic!("no job of the scrub") };
            let panicked = JobDone::Panicked { kind: JobKind::Verify, tag };
            engine.take_job(if number == 0 { panicked } else { job });
        }
        while engine.step() {}
        let told = told.take();
        assert!(matches!(told[..], [(1, Err(RequestError::WorkerLost)), (2, Ok(Reply::Scrub(_)))]));
        let Ok(Reply::Scrub(step)) = &told[1].1 else { unreachable!() };
        assert!(step.frames > 0 && step.findings.is_empty(), "{step:?}");
    }

    #[test]
    fn verdicts_that_come_behind_a_fence_find_no_scrub_and_need_none() {
        let (mut engine, _client) = store(Default::default());
        let (zone, reason) = ("data".to_owned(), "reserved".to_owned());
        engine.stop_writing(RequestError::Fenced { zone, reason });
        engine.take_job(JobDone::Verified { tag: 0, verdicts: Vec::new() });
        engine.take_job(JobDone::Panicked { kind: JobKind::Verify, tag: 1 });
        assert!(matches!(engine.core.stopped, Some(RequestError::Fenced { .. })));
    }
}
