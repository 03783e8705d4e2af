//! The step of a scrub that is under way, from its request to its answer.
//!
//! One step at a time; others wait in line. A step goes from [`Scrub::advance`] to its stage
//! (`scrub_superblock`, `scrub_tables`, `scrub_container`, `scrub_losses`), which says whether it
//! moved, waits or is done. Its reads are the only ones that wait for clients: one at a time
//! while a client's request is under way, four when there is none.

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::superblock::{GEOMETRY_BLOCKS, ROOT_BLOCKS};
use format::units::CONTAINER_BYTES;
use reduce::Verdict;

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::devices::Purpose;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::part::Part;
use crate::scrub::stages::{ContainerScrub, LossesScrub, SuperblockScrub, TablesScrub};
use crate::scrub::state::{Progress, Running, Scrub, ScrubIo, Work};
use crate::scrub::{ScrubPosition, ScrubRequest, ScrubStep};

/// Reads in flight while no client has anything under way, and while one has.
const READS_OUT_IDLE: usize = 4;
const READS_OUT_BUSY: usize = 1;

impl Scrub {
    /// Takes a request for a step.
    pub(crate) fn accept(&mut self, request: ScrubRequest, done: Done<ScrubStep>) {
        self.waiting.push_back((request, done));
    }

    /// Moves the step under way on, or begins one. `clients_read` says whether a read of a client
    /// is under way.
    pub(crate) fn advance(&mut self, core: &mut Core, clients_read: bool) -> bool {
        let Some((mut running, mut work)) = self.running.take() else {
            return self.begin_step(core);
        };
        let issued = issue_reads(core, &mut running.io, clients_read);
        let progress = match &mut work {
            Work::Superblock(superblock) => superblock.scrub_superblock(core, &mut running),
            Work::Tables(tables) => tables.scrub_tables(core, &mut running),
            Work::Container(container) => container.scrub_container(core, &mut running),
            Work::Losses(losses) => losses.scrub_losses(core, &mut running),
        };
        let waits = matches!(progress, Progress::Waits);
        let outcome = match progress {
            Progress::Moved | Progress::Waits => {
                self.running = Some((running, work));
                return issued || !waits;
            }
            Progress::Done(next) => Ok(next),
            Progress::Failed(error) => Err(error),
        };
        core.superblock.is_scrubbed = false;
        end_step(core, *running, outcome);
        true
    }

    fn begin_step(&mut self, core: &mut Core) -> bool {
        let at_superblock = |(request, _): &(ScrubRequest, Done<ScrubStep>)| {
            matches!(request.position, ScrubPosition::Superblock)
        };
        if core.superblock.will_grow() && self.waiting.front().is_some_and(at_superblock) {
            return false;
        }
        let Some((request, done)) = self.waiting.pop_front() else { return false };
        if core.is_closing {
            done.fail(RequestError::Closing);
            return true;
        }
        let work = match request.position {
            ScrubPosition::Superblock => Work::Superblock(SuperblockScrub::default()),
            ScrubPosition::Tables { tree, level, index } => {
                Work::Tables(TablesScrub::new(tree, level, index))
            }
            ScrubPosition::Containers { container } => {
                Work::Container(Box::new(ContainerScrub::new(container)))
            }
            ScrubPosition::Losses { volume, leaf } => Work::Losses(LossesScrub::new(volume, leaf)),
        };
        core.live_watch = None;
        core.superblock.is_scrubbed = matches!(work, Work::Superblock(_));
        self.running = Some((Box::new(Running::new(done, request.fingerprints)), work));
        true
    }

    /// A read of the step under way has ended; None when the device did not give it.
    pub(crate) fn read_ended(&mut self, core: &mut Core, key: u64, buf: Option<AlignedBuf>) {
        let running = self.running.as_mut();
        if !running.is_some_and(|(running, _)| running.io.arrive(key, buf)) {
            core.violated(Invariant::ReadsCounted);
        }
    }

    /// A write or sync of the step under way has ended.
    pub(crate) fn write_ended(&mut self, core: &mut Core, ok: bool) {
        let running = self.running.as_mut();
        if !running.is_some_and(|(running, _)| running.io.write_ended(ok)) {
            core.violated(Invariant::ReadsCounted);
        }
    }

    /// A job of the step under way has ended; None when it panicked.
    pub(crate) fn verified(&mut self, core: &mut Core, job: u64, verdicts: Option<Vec<Verdict>>) {
        let running = self.running.as_mut().filter(|(running, _)| running.awaits_verdicts());
        match running {
            Some((running, _)) => drop(running.verdicts.insert(job, verdicts)),
            None => core.violated(Invariant::ReadsCounted),
        }
    }
}

impl Part for Scrub {
    /// A caller that waits for a step hears that there will be none.
    fn fail(&mut self, error: &RequestError) {
        let running = self.running.take().map(|(running, _)| running.done);
        let waiting = self.waiting.drain(..).map(|(_, done)| done);
        running.into_iter().chain(waiting).for_each(|done| done.fail(error.clone()));
    }

    fn is_idle(&self, _core: &Core) -> bool {
        self.running.is_none() && self.waiting.is_empty()
    }

    fn check(&self, core: &Core) {
        let is_at_superblock = matches!(self.running, Some((_, Work::Superblock(_))));
        assert_eq!(is_at_superblock, core.superblock.is_scrubbed, "ScrubIsPublished");
    }
}

fn end_step(
    core: &mut Core,
    running: Running,
    outcome: Result<Option<ScrubPosition>, RequestError>,
) {
    let Running { done, mut step, pins, .. } = running;
    core.state.store.release_pins(pins);
    match outcome {
        Ok(next) => {
            step.next = next;
            step.bytes_total = bytes_total(core);
            step.damaged = core.damage.list();
            step.damaged_chunks = core.damage.len() as u64;
            step.given_up_chunks = core.state.given_up_chunks();
            done.reply(step);
        }
        Err(error) => done.fail(error),
    }
}

/// What a whole scrub reads.
fn bytes_total(core: &Core) -> u64 {
    let space = &core.placement.space;
    let unused = space.unused_containers();
    let containers = core.geometry.containers_present() - unused;
    let blocks = GEOMETRY_BLOCKS.len() + ROOT_BLOCKS.len();
    let blocks = core.state.store.used_blocks() + blocks as u64;
    containers * u64::from(CONTAINER_BYTES) + blocks * BLOCK_BYTES as u64
}

/// Submits reads, fewer when clients have something under way.
fn issue_reads(core: &mut Core, io: &mut ScrubIo, clients_read: bool) -> bool {
    let busy = clients_read || !core.buffer.groups.is_empty();
    let out_max = if busy { READS_OUT_BUSY } else { READS_OUT_IDLE };
    let mut issued = false;
    while let Some((key, read)) = io.next_read(out_max) {
        let purpose = Purpose::Scrub(key);
        core.devices.read(read.zone, read.offset_bytes, read.length_bytes, purpose);
        issued = true;
    }
    issued
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use format::superblock::GEOMETRY_BLOCKS;

    use crate::check::problem::Problem;
    use crate::core::Core;
    use crate::devices::Purpose;
    use crate::door::done::Done;
    use crate::door::error::RequestError;
    use crate::door::outcome::Reply;
    use crate::grow::enlarging::GrowsFor;
    use crate::part::Part;
    use crate::scrub::state::Scrub;
    use crate::scrub::{ScrubFinding, ScrubPosition, ScrubRequest, ScrubStep};
    use crate::small_store::{Told, ended, store};

    /// Asked for a step that judges the superblock.
    fn asked() -> (Scrub, Arc<Told>) {
        let (mut scrub, told) = (Scrub::default(), Arc::<Told>::default());
        scrub.accept(ScrubRequest::default(), Done::new(Arc::clone(&told), 1));
        (scrub, told)
    }

    /// Moves the step on until it is answered; the read with key `lost` gives no bytes.
    fn run(scrub: &mut Scrub, core: &mut Core, told: &Told, lost: Option<u64>) -> ScrubStep {
        loop {
            scrub.advance(core, false);
            scrub.check(core);
            if let Some((1, outcome)) = told.take().pop() {
                let Ok(Reply::Scrub(step)) = outcome else { panic!("no step: {outcome:?}") };
                return *step;
            }
            for io in ended(core) {
                match io.purpose {
                    Purpose::Scrub(key) => {
                        let buf = io.buf.filter(|_| lost != Some(key));
                        scrub.read_ended(core, key, buf);
                    }
                    Purpose::ScrubWrite | Purpose::ScrubSync => {
                        scrub.write_ended(core, io.result.is_ok());
                    }
                    purpose => panic!("a scrub does not ask for {purpose:?}"),
                }
            }
        }
    }

    #[test]
    fn a_step_judges_the_superblock_and_mends_a_block_that_does_not_come() {
        let (mut engine, _client) = store(Default::default());
        let core = &mut engine.core;
        for (lost, findings) in [(None, 0), (Some(1), 1)] {
            let (mut scrub, told) = asked();
            assert!(!scrub.is_idle(core));
            let step = run(&mut scrub, core, &told, lost);
            assert!(scrub.is_idle(core) && !core.superblock.is_scrubbed);
            assert_eq!(step.next, Some(ScrubPosition::Tables { tree: 0, level: None, index: 0 }));
            assert_eq!(step.findings.len(), findings);
            let problem = Problem::GeometryCopy { block: GEOMETRY_BLOCKS[1] };
            let mended = |finding: &ScrubFinding| finding.healed && finding.problem == problem;
            assert!(step.findings.iter().all(mended), "{:?}", step.findings);
        }
    }

    #[test]
    fn a_step_at_the_superblock_waits_for_a_geometry_that_is_written() {
        let (mut engine, _client) = store(Default::default());
        let (mut scrub, _told) = asked();
        engine.core.superblock.grows_for = Some(GrowsFor::Room);
        assert!(!scrub.advance(&mut engine.core, false) && scrub.running.is_none());
        engine.core.superblock.grows_for = None;
        assert!(scrub.advance(&mut engine.core, false) && scrub.running.is_some());
    }

    #[test]
    fn who_waits_for_a_step_is_told_when_there_will_be_none() {
        let (mut engine, _client) = store(Default::default());
        let (mut scrub, told) = asked();
        scrub.accept(ScrubRequest::default(), Done::new(Arc::clone(&told), 2));
        scrub.advance(&mut engine.core, false);
        scrub.fail(&RequestError::Closing);
        let told = told.take();
        assert!(matches!(
            told[..],
            [(1, Err(RequestError::Closing)), (2, Err(RequestError::Closing))]
        ));
        assert!(scrub.is_idle(&engine.core));
    }

    #[test]
    #[should_panic(expected = "ReadsCounted")]
    fn no_read_comes_that_no_step_asked_for() {
        let (mut engine, _client) = store(Default::default());
        let (mut scrub, _told) = asked();
        scrub.advance(&mut engine.core, false);
        scrub.read_ended(&mut engine.core, 7, None);
    }

    #[test]
    #[should_panic(expected = "ReadsCounted")]
    fn no_write_ends_that_no_step_has_begun() {
        let (mut engine, _client) = store(Default::default());
        let (mut scrub, _told) = asked();
        scrub.advance(&mut engine.core, false);
        scrub.write_ended(&mut engine.core, true);
    }

    #[test]
    #[should_panic(expected = "ScrubIsPublished")]
    fn the_core_knows_of_a_step_at_the_superblock() {
        let (mut engine, _client) = store(Default::default());
        engine.core.superblock.is_scrubbed = true;
        Scrub::default().check(&engine.core);
    }
}
