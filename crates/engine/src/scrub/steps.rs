//! The step of a scrub that is under way, from its request to its answer.
//!
//! One step at a time; others wait in line. A step goes from [`Engine::advance_scrub`] to its
//! stage (`scrub_superblock`, `scrub_tables`, `scrub_containers`, `scrub_losses`) and says whether
//! it moved, waits or is done. Its reads are the only ones that wait for clients: one at a time
//! while a client's request is under way, four when there is none.

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::superblock::{GEOMETRY_BLOCKS, ROOT_BLOCKS};
use format::units::{CONTAINER_BYTES, Zone};
use tables::PinSet;

use crate::devices::Purpose;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::pages::wanted::Wanted;
use crate::scrub::stages::{ContainerScrub, LossesScrub, SuperblockScrub, TablesScrub};
use crate::scrub::state::{Progress, Running, ScrubIo, Work};
use crate::scrub::{ScrubPosition, ScrubRequest, ScrubStep};

/// Reads in flight while no client has anything under way, and while one has.
const READS_OUT_IDLE: usize = 4;
const READS_OUT_BUSY: usize = 1;

impl Engine {
    /// Takes a request for a step.
    pub(crate) fn accept_scrub(&mut self, request: ScrubRequest, done: Done<ScrubStep>) {
        self.scrub.waiting.push_back((request, done));
    }

    /// Moves the step under way on, or begins one.
    pub(crate) fn advance_scrub(&mut self) -> bool {
        let Some(mut running) = self.scrub.running.take() else { return self.begin_scrub() };
        let issued = self.issue_scrub_reads(&mut running.io);
        // The stage is taken out, so that it and the rest of the step can be changed at once.
        let Some(mut work) = running.work.take() else { return false };
        let progress = match &mut work {
            Work::Superblock(superblock) => self.scrub_superblock(&mut running, superblock),
            Work::Tables(tables) => self.scrub_tables(&mut running, tables),
            Work::Container(container) => self.scrub_container(&mut running, container),
            Work::Losses(losses) => self.scrub_losses(&mut running, losses),
        };
        running.work = Some(work);
        let waits = matches!(progress, Progress::Waits);
        match progress {
            Progress::Done(next) => self.end_scrub_step(*running, next),
            Progress::Failed(error) => {
                let Running { done, pins, .. } = *running;
                self.let_scrub_pages_go(pins);
                done.fail(error);
            }
            Progress::Moved | Progress::Waits => self.scrub.running = Some(running),
        }
        issued || !waits
    }

    fn begin_scrub(&mut self) -> bool {
        let at_superblock = |(request, _): &(ScrubRequest, Done<ScrubStep>)| {
            matches!(request.position, ScrubPosition::Superblock)
        };
        if self.enlarging.any() && self.scrub.waiting.front().is_some_and(at_superblock) {
            return false;
        }
        let Some((request, done)) = self.scrub.waiting.pop_front() else { return false };
        if self.core.is_closing {
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
        self.core.live_watch = None;
        self.scrub.running = Some(Box::new(Running::new(done, work, request.fingerprints)));
        true
    }

    fn end_scrub_step(&mut self, running: Running, next: Option<ScrubPosition>) {
        let Running { done, mut step, pins, .. } = running;
        self.let_scrub_pages_go(pins);
        step.next = next;
        step.bytes_total = self.scrub_bytes_total();
        step.damaged = self.core.damage.list();
        step.damaged_chunks = self.core.damage.len() as u64;
        step.given_up_chunks = self.core.state.given_up_chunks();
        done.reply(step);
    }

    fn let_scrub_pages_go(&mut self, pins: PinSet) {
        self.core.state.store.release_pins(pins);
        let none = Wanted::default();
        self.core.hold_pages(none, |held| &mut held.scrub);
    }

    /// What a whole scrub reads.
    fn scrub_bytes_total(&self) -> u64 {
        let space = &self.core.placement.space;
        let unused = space.unused_containers();
        let containers = self.core.geometry.containers_present() - unused;
        let blocks = GEOMETRY_BLOCKS.len() + ROOT_BLOCKS.len();
        let blocks = self.core.state.store.used_blocks() + blocks as u64;
        containers * u64::from(CONTAINER_BYTES) + blocks * BLOCK_BYTES as u64
    }

    /// Submits reads, fewer when clients have something under way.
    fn issue_scrub_reads(&mut self, io: &mut ScrubIo) -> bool {
        let busy = self.reads.any() || !self.core.buffer.groups.is_empty();
        let out_max = if busy { READS_OUT_BUSY } else { READS_OUT_IDLE };
        let mut issued = false;
        while io.reading.len() < out_max
            && let Some(read) = io.to_read.pop_front()
        {
            let key = io.next_key;
            io.next_key += 1;
            io.reading.insert(key, read);
            let purpose = Purpose::Scrub(key);
            self.core.devices.read(read.zone, read.offset_bytes, read.length_bytes, purpose);
            issued = true;
        }
        issued
    }

    /// Writes whole blocks that heal something, outside of all that is promised.
    pub(crate) fn scrub_write(
        &mut self,
        io: &mut ScrubIo,
        zone: Zone,
        offset_bytes: u64,
        buf: AlignedBuf,
    ) {
        io.writes_out += 1;
        self.core.devices.write(zone, offset_bytes, buf.into(), Purpose::ScrubWrite);
    }

    /// Makes durable what [`Engine::scrub_write`] has written.
    pub(crate) fn scrub_sync(&mut self, io: &mut ScrubIo, zone: Zone) {
        io.writes_out += 1;
        self.core.devices.sync(zone, Purpose::ScrubSync);
    }
}
