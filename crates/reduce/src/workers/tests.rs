//! Results do not depend on the number of threads, and nothing that goes wrong in a job hangs its
//! submitter.

use super::{Job, JobDone, Workers};
use crate::chunk::{ChunkBatch, ChunkBuf, ChunkRef, Permit};
use crate::comparison::Comparison;
use crate::compress::{compress_frame, expand_frame, frame_bytes_max};
use crate::errand::Errand;
use crate::fingerprint::Fingerprinters;
use crate::memory::MemoryWanted;
use crate::payload::Payload;
use crate::verify::{FramePlace, Verdict};
use format::detection::{Detection, FingerprintKind};
use format::domain::{DomainId, DomainSecret};
use format::frame::{self, ChunkName};
use format::units::{Codec, Compression, Fingerprint, Pbn};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const RAW: Compression = Compression { codec: Codec::Raw, level: 0 };
const LZ4: Compression = Compression { codec: Codec::Lz4, level: 0 };

#[derive(Debug, PartialEq, Eq)]
enum Output {
    Fingerprints(Vec<Option<Fingerprint>>),
    Frames(Vec<u8>, Vec<u32>),
    Compared(Vec<Comparison>),
    Verified(Vec<Verdict>),
    Packed,
    Prepared(usize, Vec<Vec<u64>>),
    Panicked,
}

fn output(done: JobDone) -> (u64, Output) {
    match done {
        JobDone::Fingerprints { tag, fingerprints, .. } => {
            (tag, Output::Fingerprints(fingerprints))
        }
        JobDone::Frames { tag, bytes, ends, .. } => {
            for (start, end) in
                [0].into_iter().chain(ends.iter().map(|end| end.end_bytes)).zip(&ends)
            {
                assert_eq!(end.check, frame::check_of(&bytes.bytes()[start as usize..]));
            }
            let ends = ends.into_iter().map(|end| end.end_bytes).collect();
            (tag, frames(&bytes, ends))
        }
        JobDone::Recompressed { tag, bytes, ends } => (tag, frames(&bytes, ends)),
        JobDone::Compared { tag, comparisons } => (tag, Output::Compared(comparisons)),
        JobDone::Verified { tag, verdicts } => (tag, Output::Verified(verdicts)),
        JobDone::Packed { tag } => (tag, Output::Packed),
        JobDone::Prepared { memory } => {
            (u64::MAX, Output::Prepared(memory.pages.len(), memory.lists))
        }
        JobDone::Panicked { tag, .. } => (tag, Output::Panicked),
    }
}

fn frames(bytes: &ChunkBuf, ends: Vec<u32>) -> Output {
    let frames_bytes = ends.last().map_or(0, |&end| end as usize);
    Output::Frames(bytes.bytes()[..frames_bytes].to_vec(), ends)
}

/// Submits all jobs and sleeps on the waker alone until all have come back.
fn run(threads: usize, jobs: Vec<Job>) -> BTreeMap<u64, Output> {
    let (ring, rung) = mpsc::channel();
    let workers = Workers::new(threads, Arc::new(move || ring.send(()).unwrap_or(())));
    assert_eq!(workers.threads(), threads);
    let count = jobs.len();
    jobs.into_iter().for_each(|job| workers.submit(job));
    let (mut outputs, mut done) = (BTreeMap::new(), Vec::new());
    for _ in 0..count {
        rung.recv_timeout(Duration::from_secs(60)).expect("a job hangs");
        workers.poll(&mut done);
        outputs.extend(done.drain(..).map(output));
    }
    assert!(rung.try_recv().is_err(), "the waker is rung once per job");
    assert_eq!(outputs.len(), count);
    outputs
}

/// A buffer of eight chunks: zeros, noise and text among them.
fn buffer(seed: u32) -> Arc<ChunkBuf> {
    let byte = |i: u32| match i / 4096 % 4 {
        0 => 0,
        1 => (i.wrapping_mul(seed | 1).wrapping_mul(2_654_435_761) >> 24) as u8,
        2 => b"containers and frames "[i as usize % 22],
        _ => (i / 64 * seed) as u8,
    };
    Arc::new(ChunkBuf::new((0..8 * 4096).map(byte).collect()))
}

fn chunks(seed: u32) -> Vec<ChunkRef> {
    let buf = buffer(seed);
    (0..8).map(|n| ChunkRef::new(Arc::clone(&buf), n * 4096, 4096)).collect()
}

fn image(compression: Compression, chunks: &ChunkBatch) -> (Arc<Vec<u8>>, Vec<FramePlace>) {
    let (mut image, mut frames) = (Vec::new(), Vec::new());
    for (pbn, chunk) in (1..).map(Pbn).zip(chunks.iter()) {
        let offset_bytes = image.len() as u32;
        let mut frame = vec![0; frame_bytes_max(chunk.len())];
        let length_bytes =
            compress_frame(compression, ChunkName::unkeyed(pbn), chunk, &mut frame) as u32;
        image.extend_from_slice(&frame[..length_bytes as usize]);
        frames.push(FramePlace { offset_bytes, length_bytes, pbn });
    }
    (Arc::new(image), frames)
}

/// A chunk that every codec makes shorter.
fn even(byte: u8) -> ChunkRef {
    ChunkRef::new(Arc::new(ChunkBuf::new(vec![byte; 4096])), 0, 4096)
}

fn by(n: u32) -> Fingerprinters {
    let kind = FingerprintKind::ALL[n as usize % FingerprintKind::ALL.len()];
    let secret = Some(DomainSecret([n as u8; 32]));
    Fingerprinters::new(&Detection { kind, secret, ..Detection::default() })
}

/// None, all of one, or of three.
fn domains(n: u32, chunks: usize) -> Vec<DomainId> {
    let count = if n.is_multiple_of(3) { 0 } else { chunks as u16 };
    let id = |at: u16| DomainId::new(if n % 3 == 1 { 5 } else { at % 3 }).unwrap();
    (0..count).map(id).collect()
}

/// None, or one after the other.
fn compressions(n: u32, chunks: usize) -> Vec<Compression> {
    let all = [RAW, LZ4, Compression { codec: Codec::Zstd, level: 1 }];
    let count = if n.is_multiple_of(2) { 0 } else { chunks };
    all.into_iter().cycle().take(count).collect()
}

fn jobs() -> Vec<Job> {
    (0..60u32)
        .map(|n| {
            // Small jobs run where they are handed in.
            let count = [1, 4, 5, 8][n as usize % 4];
            let (tag, chunks) = (u64::from(n), chunks(n / 2).iter().take(count).collect());
            let codec = [Codec::Raw, Codec::Lz4, Codec::Zstd][n as usize % 3];
            let compression = Compression { codec, level: n as i8 % 5 };
            let pbns = (1..).map(Pbn).take(count).collect();
            match n % 5 {
                0 | 2 => Job::Fingerprint {
                    tag,
                    by: by(n),
                    chunks,
                    domains: domains(n, count),
                    ahead: compressions(n, count),
                },
                4 if n % 2 == 0 => {
                    let (image, frames) = image(compression, &chunks);
                    Job::Verify { tag, image, frames, plain_bytes: Some(4096), by: by(n) }
                }
                4 => {
                    let (image, frames) = image(RAW, &chunks);
                    Job::Recompress { tag, compression, image, frames, plain_bytes: 4096 }
                }
                _ => Job::Compress {
                    tag,
                    compression,
                    compressions: compressions(n, count),
                    chunks,
                    pbns,
                    domains: domains(n, count),
                    ready: Vec::new(),
                },
            }
        })
        .chain([Job::Prepare { wanted: MemoryWanted { pages: 2, lists: 1, slots: 3 } }])
        .collect()
}

#[test]
fn results_are_the_same_with_any_number_of_threads() {
    let inline = run(0, jobs());
    assert_eq!(run(1, jobs()), inline);
    assert_eq!(run(4, jobs()), inline);
}

#[test]
fn frames_are_found_by_their_ends() {
    let compression = Compression { codec: Codec::Lz4, level: 0 };
    let named: Vec<_> = chunks(3).into_iter().zip((10..).map(Pbn)).collect();
    let pbns = named.iter().map(|(_, pbn)| *pbn).collect();
    let job = Job::Compress {
        tag: 1,
        compression,
        compressions: Vec::new(),
        chunks: chunks(3).iter().collect(),
        pbns,
        domains: Vec::new(),
        ready: Vec::new(),
    };
    let Some(Output::Frames(bytes, ends)) = run(2, vec![job]).remove(&1) else {
        panic!("no frames")
    };
    assert_eq!(ends.last().copied(), Some(bytes.len() as u32));
    let mut start = 0;
    for (end, (chunk, pbn)) in ends.into_iter().zip(named) {
        let mut plain = [0; 4096];
        let header = expand_frame(&bytes[start..end as usize], &mut plain).unwrap();
        assert_eq!(header.pbn, pbn);
        assert_eq!(plain, chunk.bytes());
        start = end as usize;
    }
}

/// Also where one of few chunks has a slow codec: such a job is a worker's.
#[test]
fn every_chunk_has_its_codec() {
    let zstd = Compression { codec: Codec::Zstd, level: 1 };
    for (compressions, codecs) in [
        (vec![RAW, zstd, LZ4], [Codec::Raw, Codec::Zstd, Codec::Lz4]),
        (Vec::new(), [Codec::Lz4; 3]),
    ] {
        let job = Job::Compress {
            tag: 1,
            compression: LZ4,
            compressions,
            chunks: [7, 8, 9].map(even).iter().collect(),
            pbns: (1..4).map(Pbn).collect(),
            domains: Vec::new(),
            ready: Vec::new(),
        };
        let Some(Output::Frames(bytes, ends)) = run(2, vec![job]).remove(&1) else {
            panic!("no frames")
        };
        let mut start = 0;
        for (end, codec) in ends.into_iter().zip(codecs) {
            let header = expand_frame(&bytes[start..end as usize], &mut [0; 4096]).unwrap();
            assert_eq!(header.codec, codec);
            start = end as usize;
        }
    }
}

/// Zeros have no payload, and every other chunk may be compressed again.
#[test]
fn frames_are_the_same_where_chunks_were_compressed_ahead() {
    let workers = Workers::new(0, Arc::new(|| {}));
    let result = |job| {
        let mut done = Vec::new();
        workers.submit(job);
        workers.poll(&mut done);
        done.pop().unwrap()
    };
    for (seed, level) in (1..9).flat_map(|seed| [-3, 1, 9].map(|level| (seed, level))) {
        let chunks = || chunks(seed).iter().collect::<ChunkBatch>();
        let zstd = Compression { codec: Codec::Zstd, level };
        let with = [LZ4, zstd, LZ4, RAW, LZ4, LZ4, zstd, zstd].to_vec();
        let (by, domains) = (by(0), Vec::new());
        let (chunks_ahead, ahead) = (chunks(), with.clone());
        let ahead = Job::Fingerprint { tag: 1, by, chunks: chunks_ahead, domains, ahead };
        let JobDone::Fingerprints { fingerprints, mut payloads, .. } = result(ahead) else {
            panic!("no fingerprints")
        };
        let is_there = |payload: &Option<Payload>| payload.is_some();
        assert!(fingerprints.iter().map(Option::is_some).eq(payloads.iter().map(is_there)));
        let frames = |ready| {
            let (compressions, pbns) = (with.clone(), (1..9).map(Pbn).collect());
            let (tag, chunks, domains) = (2, chunks(), Vec::new());
            let compression = RAW;
            let job =
                Job::Compress { tag, compression, compressions, chunks, pbns, domains, ready };
            let done = result(job);
            let JobDone::Frames { spared, .. } = done else { panic!("no frames") };
            (output(done), spared)
        };
        let alone = frames(Vec::new());
        assert_eq!(frames(payloads.clone()), alone);
        payloads.iter_mut().step_by(2).for_each(|payload| *payload = None);
        assert_eq!(frames(payloads), alone);
    }
}

#[test]
fn a_job_that_panics_completes_and_the_pool_goes_on() {
    for threads in [0, 1, 4] {
        let not_a_chunk = ChunkRef::new(Arc::new(ChunkBuf::new(vec![1; 700])), 0, 700);
        let compression = |tag| match tag % 2 {
            0 => RAW,
            _ => Compression { codec: Codec::Zstd, level: 3 },
        };
        let broken = (0..8)
            .map(|tag| {
                let chunks = [&not_a_chunk].into_iter().collect();
                let compression = compression(tag);
                Job::Compress {
                    tag: 1000 + tag,
                    compression,
                    compressions: Vec::new(),
                    chunks,
                    pbns: vec![Pbn(1)],
                    domains: Vec::new(),
                    ready: Vec::new(),
                }
            })
            .chain(jobs())
            .collect();
        let outputs = run(threads, broken);
        assert_eq!(outputs.range(1000..).filter(|(_, o)| **o == Output::Panicked).count(), 8);
        assert!(outputs.range(..1000).all(|(_, output)| *output != Output::Panicked));
    }
}

#[test]
fn dropping_the_pool_gives_every_permit_back() {
    let held = Arc::new(AtomicUsize::new(0));
    for threads in [0, 1, 4] {
        let workers = Workers::new(threads, Arc::new(|| {}));
        for tag in 0..200 {
            held.fetch_add(4096, Ordering::Relaxed);
            let counter = Arc::clone(&held);
            let give_back = Arc::new(move |bytes| {
                counter.fetch_sub(bytes, Ordering::Relaxed);
            });
            let buf = Arc::new(ChunkBuf::with_permit(4096, Permit::new(give_back, 4096)));
            workers.submit(Job::Fingerprint {
                tag,
                by: by(2),
                chunks: [&ChunkRef::new(buf, 0, 4096)].into_iter().collect(),
                domains: Vec::new(),
                ahead: Vec::new(),
            });
        }
        drop(workers);
        assert_eq!(held.load(Ordering::Relaxed), 0, "{threads} threads");
    }
}

#[test]
fn an_empty_job_completes() {
    let compression = Compression { codec: Codec::Zstd, level: 3 };
    let jobs = vec![
        Job::Fingerprint {
            tag: 0,
            by: by(0),
            chunks: ChunkBatch::default(),
            domains: Vec::new(),
            ahead: Vec::new(),
        },
        Job::Compress {
            tag: 1,
            compression,
            compressions: Vec::new(),
            chunks: ChunkBatch::default(),
            pbns: Vec::new(),
            domains: Vec::new(),
            ready: Vec::new(),
        },
    ];
    let outputs = run(1, jobs);
    assert_eq!(outputs[&0], Output::Fingerprints(Vec::new()));
    assert_eq!(outputs[&1], Output::Frames(Vec::new(), Vec::new()));
}

#[test]
fn an_errand_is_run_once_before_its_job_is_done() {
    for threads in [0, 2] {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let errand = Errand::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(run(threads, vec![Job::Pack { tag: 7, errand }])[&7], Output::Packed);
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        let errand = Errand::new(|| panic!("on purpose"));
        assert_eq!(run(threads, vec![Job::Pack { tag: 8, errand }])[&8], Output::Panicked);
    }
}
