//! What a session waits for, and what each answer must be.

use engine::{Problem, ReadPieces, Reply, RequestError, ScrubFinding, ScrubStep};

use crate::failure::Broken;
use crate::oracle::{CHUNK_BYTES, Register, Value};
use crate::range::Range;
use crate::session::doubt::Changed;
use crate::session::evacuation::zone_stays;
use crate::session::waiting::{Waiting, Why};
use crate::session::{SECTOR_BYTES, Session};
use crate::simulation::opening::strange;
use crate::simulation::trouble::{Asked, is_of_tables, is_of_writes};
use crate::workload::SECTORS;

/// Steps without any movement after which a run is stuck.
const STILL_MAX: u32 = 3_000;

impl Session<'_> {
    /// Steps until the request of `tag` is answered.
    pub(crate) fn wait_for(&mut self, tag: u64) -> Result<Result<Reply, RequestError>, Broken> {
        self.waiting.remove(&tag);
        let mut still = 0;
        loop {
            let moved = self.step()?;
            if let Some(outcome) = self.take_answers_but(tag)? {
                self.answered = tag;
                return Ok(outcome);
            }
            self.note_stillness(moved, &mut still)?;
        }
    }

    pub(crate) fn wait_for_all(&mut self) -> Result<(), Broken> {
        let mut still = 0;
        while !self.waiting.is_empty() {
            let moved = self.step()?;
            self.take_answers()?;
            self.note_stillness(moved, &mut still)?;
        }
        Ok(())
    }

    fn note_stillness(&mut self, moved: bool, still: &mut u32) -> Result<(), Broken> {
        if moved {
            return Ok(());
        }
        *still += 1;
        self.opening.tick();
        let waiting = self.waiting.len();
        if *still > STILL_MAX { Err(Broken::StandsStill { waiting }) } else { Ok(()) }
    }

    pub(crate) fn take_answers(&mut self) -> Result<(), Broken> {
        self.take_answers_but(0).map(drop)
    }

    /// Takes what has been answered, up to the answer of `tag`, which is handed back: what the
    /// store did before it is not judged by what came behind it.
    fn take_answers_but(
        &mut self,
        tag: u64,
    ) -> Result<Option<Result<Reply, RequestError>>, Broken> {
        let mut answers = self.opening.answers().into_iter();
        while let Some((of, outcome)) = answers.next() {
            self.digest.add(of);
            self.digest.add(u64::from(outcome.is_ok()));
            if of == tag {
                self.opening.put_back(answers);
                return Ok(Some(outcome));
            }
            self.answered = of;
            if let Some(waiting) = self.waiting.remove(&of) {
                self.take_answer(&waiting, outcome)?;
            }
        }
        Ok(None)
    }

    fn take_answer(
        &mut self,
        waiting: &Waiting,
        outcome: Result<Reply, RequestError>,
    ) -> Result<(), Broken> {
        match (waiting, outcome) {
            (Waiting::Plain | Waiting::Look, Ok(_)) => Ok(()),
            (Waiting::Refused(why), Err(error)) if why.is_said_by(&error) => Ok(()),
            // A client that closes is told that, whatever it asks for.
            (Waiting::Refused(_), Err(RequestError::Closing)) if self.is_closing => Ok(()),
            (Waiting::Change(changed), Ok(reply)) => self.take_change(changed, &reply),
            (Waiting::Close, Ok(reply)) => {
                if !self.waiting.is_empty() {
                    return Err(strange("a close before something else", &self.waiting.len()));
                }
                self.is_closed = true;
                self.take_change(&Changed::default(), &reply)
            }
            // What goes on step by step goes on in the next life.
            (
                Waiting::Scrub(..)
                | Waiting::Collect(_)
                | Waiting::Growth(_)
                | Waiting::Evacuate(..)
                | Waiting::Retire(_),
                Err(RequestError::Closing),
            ) if self.is_closing => Ok(()),
            (Waiting::Refused(_), Ok(reply)) => Err(strange("what cannot be", &reply)),
            (Waiting::Read(range, since), Ok(Reply::Read(pieces))) => {
                self.take_read(*range, *since, &pieces)
            }
            (Waiting::Extents(range, since), Ok(Reply::Extents(extents))) => {
                self.compare_extents(*range, *since, &extents)
            }
            (Waiting::Scrub(fingerprints, more), Ok(Reply::Scrub(step))) => {
                self.take_scrub(*fingerprints, *more, &step)
            }
            (Waiting::Collect(recompress), Ok(Reply::Collect(step))) => {
                self.take_collect(usize::from(*recompress), &step)
            }
            (Waiting::Growth(asked), Ok(Reply::Geometry(geometry)))
                if geometry.containers_total() >= *asked =>
            {
                self.oracle.grown = geometry.data;
                self.grown += 1;
                Ok(())
            }
            (Waiting::Growth(_), Err(RequestError::CannotGrow { .. })) => Ok(()),
            (Waiting::Evacuate(zone, more), Ok(Reply::Collect(step))) => {
                self.take_evacuation(*zone, *more, &step);
                Ok(())
            }
            (Waiting::Retire(zone), Ok(Reply::Geometry(geometry))) => {
                self.take_removal(*zone, &geometry)
            }
            (Waiting::Evacuate(..) | Waiting::Retire(_), Err(error)) if zone_stays(&error) => {
                Ok(())
            }
            (_, Ok(reply)) => Err(strange("a request", &reply)),
            (Waiting::Change(changed), Err(error)) => self.fail(&error, changed.asked(), changed),
            (waiting, Err(error)) => self.fail(&error, waiting.asked(), &Changed::default()),
        }
    }

    fn take_scrub(
        &mut self,
        fingerprints: bool,
        more: u32,
        step: &ScrubStep,
    ) -> Result<(), Broken> {
        self.scrub = step.next.unwrap_or_default();
        self.scrubbed += u64::from(step.next.is_none());
        if more > 0 && step.next.is_some() && !self.is_closing {
            self.ask_scrub(fingerprints, more - 1);
        }
        let in_doubt = self.slot_in_doubt;
        let is_slot = |problem: &Problem| matches!(problem, Problem::RootSlot { .. });
        let is_meant = |problem: &Problem| in_doubt && is_slot(problem);
        let is_mended = |found: &ScrubFinding| found.healed && is_slot(&found.problem);
        self.slot_in_doubt &= !step.findings.iter().any(is_mended);
        match step.findings.iter().find(|finding| !is_meant(&finding.problem)) {
            Some(finding) if !self.may_find(&finding.problem) => {
                Err(strange("a scrub", &finding.problem))
            }
            // But for what a repair abandoned each PBN has a chunk or is free.
            _ if step.given_up_chunks > self.given_up => {
                Err(strange("PBNs that name nothing", step))
            }
            _ => Ok(()),
        }
    }

    fn may_find(&self, problem: &Problem) -> bool {
        !self.is_over() && self.trouble.is_some_and(|trouble| trouble.may_find(problem))
    }

    /// A change was answered well, or a flush: no store does that which has stopped writing.
    pub(crate) fn take_change(&mut self, changed: &Changed, reply: &Reply) -> Result<(), Broken> {
        if self.stopped {
            return Err(strange("a change of a store that stopped", reply));
        }
        self.oracle.note_answered(changed);
        Ok(())
    }

    /// A chunk as the store has it now.
    pub(crate) fn read_chunk(&mut self, volume: u32, lba: u64) -> Result<Value, Broken> {
        let range = Range { volume, first: lba * SECTORS, count: SECTORS };
        let Some((handle, range)) = self.clip(range) else { return Ok(Value::Nothing) };
        let done = self.done(Waiting::Plain, None);
        let (tag, length_bytes) = (done.tag, (range.count * SECTOR_BYTES) as u32);
        self.opening.client.read(&handle, range.first * SECTOR_BYTES, length_bytes, done);
        match self.wait_for(tag)?.map_err(Broken::Request)? {
            Reply::Read(pieces) => {
                let mut bytes = vec![0; CHUNK_BYTES];
                let read = &mut bytes[..length_bytes as usize];
                pieces.assemble(read).map_err(Broken::Request)?;
                Ok(Value::of_chunk(&bytes))
            }
            other => Err(strange("a read", &other)),
        }
    }

    /// A read of `range` came back, which was made after `since` effects.
    pub(crate) fn take_read(
        &mut self,
        range: Range,
        since: usize,
        pieces: &ReadPieces,
    ) -> Result<(), Broken> {
        let mut bytes = vec![0; pieces.length_bytes()];
        if let Err(error) = pieces.assemble(&mut bytes) {
            return self.fail(&error, Asked::Read(range), &Changed::default());
        }
        self.digest.add_bytes(&bytes);
        self.compare_read(range, since, &bytes)
    }

    /// Every chunk of a read must be what it was when the read was made, or has become since.
    fn compare_read(&self, range: Range, since: usize, bytes: &[u8]) -> Result<(), Broken> {
        let Range { volume, first, count } = range;
        let mut sector = first;
        while sector < first + count {
            let (lba, skip) = (sector / SECTORS, sector % SECTORS);
            let take = (SECTORS - skip).min(first + count - sector);
            let at = ((sector - first) * SECTOR_BYTES) as usize;
            let read = &bytes[at..at + (take * SECTOR_BYTES) as usize];
            let start = (skip * SECTOR_BYTES) as usize;
            if !self.oracle.may_read(Register::Chunk(volume, lba), since, start, read) {
                return Err(self.wrong(volume, lba));
            }
            sector += take;
        }
        Ok(())
    }

    /// What is told to be a hole holds nothing, and something of the range is told.
    fn compare_extents(
        &self,
        range: Range,
        since: usize,
        extents: &[engine::Extent],
    ) -> Result<(), Broken> {
        let mut at_bytes = range.first * SECTOR_BYTES;
        let told_bytes: u64 = extents.iter().map(|extent| extent.length_bytes).sum();
        if told_bytes == 0 || told_bytes > range.count * SECTOR_BYTES {
            return Err(strange("extents", &extents));
        }
        for extent in extents {
            let end_bytes = at_bytes + extent.length_bytes;
            let chunk_bytes = CHUNK_BYTES as u64;
            let first = at_bytes.div_ceil(chunk_bytes);
            let chunks = first..first.max(end_bytes / chunk_bytes);
            for lba in self.oracle.chunks(range.volume, chunks).into_iter().filter(|_| extent.hole)
            {
                let register = Register::Chunk(range.volume, lba);
                if !self.oracle.may_be_nothing(register, since) {
                    return Err(self.wrong(range.volume, lba));
                }
            }
            at_bytes = end_bytes;
        }
        Ok(())
    }

    /// A request failed. If the disk is to blame, what it was to change may be there or not.
    pub(crate) fn fail(
        &mut self,
        error: &RequestError,
        asked: Asked,
        changed: &Changed,
    ) -> Result<(), Broken> {
        self.fail_naming(error, asked, &changed.registers, changed)
    }

    /// The same of a request that may say of any of these registers that it is damaged.
    pub(crate) fn fail_naming(
        &mut self,
        error: &RequestError,
        asked: Asked,
        named: &[Register],
        changed: &Changed,
    ) -> Result<(), Broken> {
        // A copy names the chunk that it did not get to, and why.
        let error = match error {
            RequestError::NotCopied { reason, .. } => reason,
            error => error,
        };
        if !self.trouble.is_some_and(|trouble| trouble.excuses(error, asked)) || self.is_over() {
            return Err(Broken::Request(error.clone()));
        }
        if let RequestError::Damaged { volume, lba } = error
            && !self.is_asked(volume, *lba, asked, named)
        {
            return Err(strange("something about another chunk", error));
        }
        self.failed += 1;
        // A page that no change can do without stops all writing; but that a quota cannot be
        // counted is said to one write alone.
        let stops = matches!(asked, Asked::Change) && !self.has_quota(changed);
        self.stopped |= is_of_writes(error) || stops && is_of_tables(error);
        self.oracle.doubt(changed);
        Ok(())
    }

    /// Whether what could not be read for a while could be again when this was asked, with nothing
    /// that stopped meanwhile.
    fn is_over(&self) -> bool {
        self.over_from.is_some_and(|tag| self.answered > tag) && !self.stopped
    }

    fn has_quota(&self, changed: &Changed) -> bool {
        changed.registers.iter().any(|register| match register {
            Register::Chunk(volume, _) => {
                self.oracle.volume(*volume).is_some_and(|entry| entry.quota.is_some())
            }
            _ => false,
        })
    }

    /// Whether a chunk that is damaged is one that was asked for, by the name that its volume has
    /// or had.
    fn is_asked(&self, volume: &str, lba: u64, asked: Asked, named: &[Register]) -> bool {
        let slot = match asked {
            Asked::Read(Range { volume, first, count }) => {
                let lbas = first / SECTORS..(first + count).div_ceil(SECTORS);
                lbas.contains(&lba).then_some(volume)
            }
            _ => named.iter().find_map(|register| match register {
                Register::Chunk(slot, of) if *of == lba => Some(*slot),
                _ => None,
            }),
        };
        slot.is_some_and(|slot| {
            self.oracle.since(Register::Volume(slot), 0).any(|value| match value {
                Value::Volume(entry) => entry.name == volume,
                _ => false,
            })
        })
    }
}

impl Why {
    /// A full store, or a failing disk, is no reason to refuse what cannot be.
    fn is_said_by(self, error: &RequestError) -> bool {
        match self {
            Self::ReadOnly => matches!(error, RequestError::ReadOnly { .. }),
            Self::OutOfRange => matches!(error, RequestError::OutOfRange { .. }),
            Self::VolumeExists => matches!(error, RequestError::VolumeExists { .. }),
            Self::OtherDomain => matches!(error, RequestError::OtherDomain { .. }),
            Self::Overlap => matches!(error, RequestError::OverlappingCopy { .. }),
        }
    }
}

impl Waiting {
    fn asked(&self) -> Asked {
        match self {
            Self::Change(changed) => changed.asked(),
            Self::Read(range, _) => Asked::Read(*range),
            Self::Plain
            | Self::Refused(_)
            | Self::Collect(_)
            | Self::Growth(_)
            | Self::Evacuate(..)
            | Self::Retire(_) => Asked::Upkeep,
            Self::Close => Asked::Change,
            _ => Asked::Look,
        }
    }
}

impl Changed {
    pub(crate) fn asked(&self) -> Asked {
        if self.whole { Asked::Change } else { Asked::Part }
    }
}
