//! The device, the scheduler and both together, with jobs whose results are taken in any order.

use std::sync::Arc;

use format::detection::Detection;
use format::units::{Codec, Compression, Pbn};
use proptest::prelude::*;
use reduce::{ChunkBatch, ChunkBuf, ChunkRef, Fingerprinters, Job, JobDone, Workers};

use crate::{
    Accelerator, Backlog, Capacity, Emulated, Offload, Predicted, Scheduler, Submission, Verdict,
};

const LZ4: Compression = Compression { codec: Codec::Lz4, level: 0 };

/// What a job has for the device.
#[derive(Copy, Clone, Debug)]
enum Kind {
    Hash,
    HashAndCompress,
    Compress,
    /// All payloads are ready.
    Name,
}

const KINDS: [Kind; 4] = [Kind::Hash, Kind::HashAndCompress, Kind::Compress, Kind::Name];

fn chunks(count: usize) -> ChunkBatch {
    let buf = Arc::new(ChunkBuf::new(vec![7; 512]));
    (0..count).map(|_| ChunkRef::new(Arc::clone(&buf), 0, 512)).collect::<Vec<_>>().iter().collect()
}

fn hash(tag: u64, count: usize, ahead: Vec<Compression>) -> Job {
    let by = Fingerprinters::new(&Detection::default());
    Job::Fingerprint { tag, by, chunks: chunks(count), domains: Vec::new(), ahead }
}

fn job(kind: Kind, tag: u64, count: usize) -> Job {
    match kind {
        Kind::Hash => hash(tag, count, Vec::new()),
        Kind::HashAndCompress => hash(tag, count, vec![LZ4; count]),
        Kind::Compress | Kind::Name => Job::Compress {
            tag,
            compression: LZ4,
            compressions: Vec::new(),
            chunks: chunks(count),
            pbns: (1..).map(Pbn).take(count).collect(),
            domains: Vec::new(),
            ready: match kind {
                Kind::Name => payloads(count),
                _ => Vec::new(),
            },
        },
    }
}

fn payloads(count: usize) -> Vec<Option<reduce::Payload>> {
    let lanes = lanes();
    lanes.submit(job(Kind::HashAndCompress, 0, count));
    match results(&lanes).pop() {
        Some(JobDone::Fingerprints { payloads, .. }) => payloads,
        other => panic!("no payloads: {other:?}"),
    }
}

fn lanes() -> Workers {
    Workers::new(0, Arc::new(|| {}))
}

fn results(lanes: &Workers) -> Vec<JobDone> {
    let mut done = Vec::new();
    lanes.poll(&mut done);
    done
}

fn tag_of(done: &JobDone) -> u64 {
    match done {
        JobDone::Fingerprints { tag, .. } | JobDone::Frames { tag, .. } => *tag,
        other => panic!("no result of these jobs: {other:?}"),
    }
}

fn submission(kind: Kind, tag: u64) -> Submission {
    Submission::new(job(kind, tag, 2)).unwrap()
}

fn capacity(queue: usize, hash_units: usize, compress_units: usize) -> Capacity {
    Capacity { batch_chunks: 64, queue, hash_units, compress_units }
}

fn tags(lanes: &Workers) -> Vec<u64> {
    results(lanes).iter().map(tag_of).collect()
}

#[test]
fn a_submission_begins_when_its_units_are_free_and_in_order() {
    let (lanes, mut device) = (lanes(), Emulated::new(capacity(8, 2, 1)));
    let kinds = [Kind::HashAndCompress, Kind::HashAndCompress, Kind::Hash, Kind::Compress];
    let submissions = (1..).zip(kinds).map(|(tag, kind)| submission(kind, tag));
    device.submit(submissions.collect(), &lanes, 0);
    assert_eq!(tags(&lanes), [1], "the second wants the one unit that compresses");
    assert!(!device.ended(2, &lanes, 0), "it has not begun");
    assert!(device.ended(1, &lanes, 10));
    assert_eq!(tags(&lanes), [2, 3]);
    assert!(device.ended(3, &lanes, 15));
    assert_eq!(tags(&lanes), [], "a unit that hashes is free, but none that compresses");
    assert!(device.ended(2, &lanes, 30));
    assert_eq!(tags(&lanes), [4]);
    assert!(device.ended(4, &lanes, 40));
    assert!(!device.ended(4, &lanes, 50), "it has ended");
    let figures = device.figures(60);
    assert_eq!((figures.submissions, figures.chunks, figures.held_max), (4, 8, 4));
    assert_eq!((figures.chunks_hashed, figures.chunks_compressed), (6, 6));
    assert_eq!((figures.active_ticks, figures.hash_ticks, figures.compress_ticks), (40, 35, 40));
}

#[test]
#[should_panic(expected = "QueueIsBounded")]
fn a_device_takes_no_more_than_its_queue() {
    let mut device = Emulated::new(capacity(2, 1, 1));
    let three = (0..3).map(|tag| submission(Kind::Hash, tag)).collect();
    device.submit(three, &lanes(), 0);
}

#[test]
#[should_panic(expected = "BatchIsBounded")]
fn a_submission_has_no_more_chunks_than_a_batch() {
    let mut device = Emulated::new(capacity(2, 1, 1));
    device.submit(vec![Submission::new(job(Kind::Hash, 1, 65)).unwrap()], &lanes(), 0);
}

#[test]
fn frames_that_are_only_named_are_no_work_for_the_device() {
    assert!(Submission::new(job(Kind::Name, 1, 3)).is_err());
    let mut half = job(Kind::Name, 1, 3);
    if let Job::Compress { ready, .. } = &mut half {
        ready[1] = None;
    }
    assert_eq!(Submission::new(half).unwrap().chunks(), 1);
}

#[test]
fn older_groups_go_first_but_not_where_their_units_are_busier() {
    let mut scheduler = Scheduler::default();
    for (tag, kind) in [(5, Kind::Hash), (3, Kind::HashAndCompress), (4, Kind::Hash)] {
        scheduler.wait(submission(kind, tag));
    }
    let capacity = capacity(3, 4, 2);
    let mut backlog = Backlog::default();
    let mut next = |backlog: &Backlog| scheduler.choose(&capacity, backlog).map(|of| of.tag());
    assert_eq!(next(&backlog), Some(3));
    backlog.add(submission(Kind::HashAndCompress, 3).demand());
    assert_eq!(next(&backlog), Some(4), "compressing is at a half, hashing at a quarter");
    scheduler.wait(submission(Kind::Compress, 1));
    let mut next = |backlog: &Backlog| scheduler.choose(&capacity, backlog).map(|of| of.tag());
    assert_eq!(next(&backlog), Some(5), "it hashes only, and goes before an older one");
    backlog.add(submission(Kind::Hash, 4).demand());
    backlog.add(submission(Kind::Hash, 5).demand());
    assert_eq!(next(&backlog), None, "the queue is full");
    backlog.held = 0;
    assert_eq!(next(&backlog), Some(1));
    assert_eq!(next(&backlog), None, "nothing waits");
}

#[test]
fn no_submission_is_passed_for_ever() {
    let mut scheduler = Scheduler::default();
    scheduler.wait(submission(Kind::HashAndCompress, 0));
    (1..20).for_each(|tag| scheduler.wait(submission(Kind::Hash, tag)));
    let (capacity, busy) = (capacity(9, 1, 1), Backlog { held: 1, hash: 0, compress: 1 });
    let mut chosen = || scheduler.choose(&capacity, &busy).unwrap().tag();
    assert_eq!([(); 10].map(|()| chosen()), [1, 2, 3, 4, 5, 6, 7, 8, 0, 9]);
}

#[test]
fn guesses_are_counted_as_they_come_out() {
    let mut offload = Offload::new(Box::new(Emulated::new(capacity(1, 1, 1))));
    let chunk = [9; 4096];
    assert_eq!(offload.guess(&chunk), Verdict::New);
    assert_eq!(offload.guess(&chunk), Verdict::Duplicate);
    offload.judge(Verdict::New, false, 4096);
    offload.judge(Verdict::Duplicate, false, 4096);
    let figures = offload.figures(0);
    let expected = Predicted { duplicate: 1, in_vain: 1, ..Predicted::default() };
    assert_eq!((figures.predicted, figures.in_vain_bytes), (expected, 4096));
}

proptest! {
    /// Nothing is lost or done twice, whatever the device and in whatever order results are taken.
    #[test]
    fn every_job_comes_back_once(
        kinds in prop::collection::vec(0_usize..4, 1..60),
        together in 1_usize..20,
        queue in 1_usize..9,
        hash_units in 1_usize..5,
        compress_units in 1_usize..5,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 60),
    ) {
        let lanes = lanes();
        let device = Emulated::new(capacity(queue, hash_units, compress_units));
        let mut offload = Offload::new(Box::new(device));
        let all: Vec<_> = (0..).zip(kinds).map(|(tag, kind)| (tag, KINDS[kind])).collect();
        let (mut ended, mut here, mut picks) = (Vec::new(), Vec::new(), picks.iter());
        for jobs in all.chunks(together) {
            let jobs = jobs.iter().map(|&(tag, kind)| job(kind, tag, 1)).collect();
            offload.submit(jobs, &lanes, 0);
            here.extend(tags(&lanes));
            if let Some(pick) = picks.next().filter(|_| !here.is_empty()) {
                let tag = here.swap_remove(pick.index(here.len()));
                offload.ended(tag, &lanes, 0);
                ended.push(tag);
            }
        }
        here.extend(tags(&lanes));
        while !here.is_empty() {
            let at = picks.next().map_or(0, |pick| pick.index(here.len()));
            let tag = here.swap_remove(at);
            offload.ended(tag, &lanes, 0);
            ended.push(tag);
            here.extend(tags(&lanes));
        }
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..all.len() as u64).collect::<Vec<_>>());
        let device = offload.figures(0).device;
        let wants = all.iter().filter(|(_, kind)| !matches!(kind, Kind::Name)).count();
        prop_assert_eq!(device.submissions, wants as u64);
        prop_assert!(device.held_max <= queue as u64);
    }
}
