//! Whatever is appended, released, synced and lost: replay gives exactly the records up to the
//! first that is not whole on the medium, so at least all that were synced, and going on from there
//! works as if nothing else had ever been in the ring.

use std::collections::VecDeque;

use format::BLOCK_BYTES;
use format::record::{RECORD_HEADER_BYTES, Settled};
use format::root::JournalPosition;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

use super::medium::{Bits, Driving, Medium, next_step, replay_all};
use crate::error::AppendError;
use crate::replay::{Replay, ReplayRecord, ReplayStep};
use crate::writer::{JournalWrite, Writer};

const UUID: [u8; 16] = [0xd1; 16];

#[derive(Clone, Debug)]
enum Step {
    /// A record with a body of so many bytes.
    Append(usize),
    /// All that was appended is durable.
    Sync,
    /// A checkpoint that takes this share, in 256ths, of the durable records.
    Checkpoint(u8),
    /// Power is lost, the store is opened again; if so, from before the last records that count.
    Crash { seed: u64, cut: bool, driving: Driving },
}

/// A record that the model knows.
struct Known {
    record: ReplayRecord,
    writes: Vec<JournalWrite>,
    /// Where the next one goes.
    end: JournalPosition,
}

struct Model {
    medium: Medium,
    writer: Writer,
    journal_bytes: u64,
    incarnation: u64,
    /// Where replay starts.
    root: JournalPosition,
    /// Records after the root.
    known: VecDeque<Known>,
    durable_sequence: u64,
}

impl Model {
    fn new(blocks: u64) -> Self {
        let journal_bytes = blocks * BLOCK_BYTES as u64;
        // The ring starts somewhere in a later lap.
        let offset_bytes = (blocks * 5 + 2) * BLOCK_BYTES as u64;
        let root = JournalPosition { sequence: 1, offset_bytes, previous_crc: 0 };
        Self {
            medium: Medium::new(journal_bytes),
            writer: Writer::resume(journal_bytes, UUID, root, offset_bytes, 1),
            journal_bytes,
            incarnation: 1,
            root,
            known: VecDeque::new(),
            durable_sequence: 0,
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Append(body_bytes) => self.append(body_bytes),
            Step::Sync => {
                self.medium.sync();
                self.durable_sequence = self.writer.next().sequence - 1;
            }
            Step::Checkpoint(share) => self.checkpoint(share),
            Step::Crash { seed, cut, driving } => self.crash(&mut Bits(seed | 1), cut, driving),
        }
        let used_bytes = self.writer.next().offset_bytes - self.root.offset_bytes;
        assert_eq!(self.writer.used_bytes(), used_bytes);
        assert_eq!(self.writer.free_bytes(), self.journal_bytes - used_bytes);
    }

    fn settled(&self) -> Settled {
        Settled { durable_sequence: self.durable_sequence, placed_sequence: 0 }
    }

    fn append(&mut self, body_bytes: usize) {
        let fits = self.writer.fits(body_bytes);
        let body: Vec<u8> =
            (0..body_bytes).map(|at| (at as u64 * 7 + self.writer.next().sequence) as u8).collect();
        let appended = match self.writer.append(&body, self.settled()) {
            Ok(appended) => appended,
            Err(AppendError::Full { needed_bytes, free_bytes }) => {
                assert!(!fits && needed_bytes > free_bytes);
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert!(fits);
        appended.writes.iter().for_each(|write| self.medium.write(write));
        let record = ReplayRecord {
            sequence: appended.sequence,
            incarnation: self.incarnation,
            settled: self.settled(),
            body,
        };
        let end = self.writer.next();
        self.known.push_back(Known { record, writes: appended.writes, end });
        self.check_nothing_kept_is_overwritten();
    }

    fn check_nothing_kept_is_overwritten(&self) {
        for known in &self.known {
            assert!(known.writes.iter().all(|write| self.medium.holds(write)));
        }
    }

    fn checkpoint(&mut self, share: u8) {
        let durable = self.known.iter();
        let durable = durable.filter(|known| known.record.sequence <= self.durable_sequence);
        let count = durable.count() * usize::from(share) / 255;
        for known in self.known.drain(..count) {
            self.root = known.end;
        }
        self.writer.release_to(self.root.offset_bytes);
    }

    fn crash(&mut self, bits: &mut Bits, cut: bool, driving: Driving) {
        self.medium.crash(bits);
        let is_whole = |known: &&Known| known.writes.iter().all(|write| self.medium.holds(write));
        let whole = self.known.iter().take_while(is_whole).count();
        let (kept, resume) = self.replay(whole, bits, cut, driving);
        self.known.truncate(kept);
        self.incarnation += 1;
        let tail = self.root.offset_bytes;
        self.writer = Writer::resume(self.journal_bytes, UUID, resume, tail, self.incarnation);
        // As the engine does: first of all a record of the new incarnation, and a sync.
        self.append(9);
        self.medium.sync();
        self.durable_sequence = self.writer.next().sequence - 1;
    }

    /// Replays, and checks it; gives the number of records kept and where to go on.
    fn replay(
        &self,
        whole: usize,
        bits: &mut Bits,
        cut: bool,
        driving: Driving,
    ) -> (usize, JournalPosition) {
        let expected = || self.known.iter().take(whole).map(|known| &known.record);
        let mut replay = Replay::new(self.journal_bytes, UUID, self.root);
        let (records, _) = replay_all(&mut replay, &self.medium, driving);
        assert!(records.iter().eq(expected()), "{records:?} with {whole} on the medium");
        let last = records.last().map_or(self.root.sequence - 1, |record| record.sequence);
        assert!(last >= self.durable_sequence);
        if !cut {
            return (whole, replay.position());
        }
        let durable = expected().filter(|record| record.sequence <= self.durable_sequence).count();
        let kept = durable + bits.below(whole - durable + 1);
        let mut replay = Replay::new(self.journal_bytes, UUID, self.root);
        for record in expected().take(kept) {
            let step = loop {
                match next_step(&mut replay, &self.medium, driving) {
                    ReplayStep::More => {}
                    other => break other,
                }
            };
            assert_eq!(step, ReplayStep::Record(record.clone()));
        }
        (kept, replay.position())
    }
}

fn body_bytes() -> impl Strategy<Value = usize> {
    let whole_blocks = (1..12usize).prop_map(|blocks| blocks * BLOCK_BYTES - RECORD_HEADER_BYTES);
    let around = (whole_blocks, 0..3usize).prop_map(|(bytes, more)| bytes + more - 1);
    prop_oneof![4 => 0..3000usize, 2 => 0..40_000usize, 2 => around, 1 => Just(300_000)]
}

fn step() -> impl Strategy<Value = Step> {
    let driving = select(vec![Driving::Plain, Driving::Buffered, Driving::Narrow]);
    prop_oneof![
        12 => body_bytes().prop_map(Step::Append),
        3 => Just(Step::Sync),
        2 => any::<u8>().prop_map(Step::Checkpoint),
        3 => (any::<u64>(), any::<bool>(), driving)
            .prop_map(|(seed, cut, driving)| Step::Crash { seed, cut, driving }),
    ]
}

proptest! {
    #[test]
    fn replay_yields_exactly_the_whole_prefix(
        blocks in prop_oneof![3..12u64, 12..100u64],
        steps in vec(step(), 0..120),
    ) {
        let mut model = Model::new(blocks);
        steps.iter().for_each(|step| model.take(step));
        model.take(&Step::Crash { seed: 77, cut: false, driving: Driving::Plain });
    }
}
