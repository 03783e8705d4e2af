//! The least that has to be done to every byte, and nothing else: copy it in, fingerprint its
//! chunk, compress the unique ones. No table, no journal, no disk, no other thread to wait for.
//!
//! All cores do it at once, because cores that share memory and power are slower together: the
//! engine has no more than that either. They take requests from one counter, so that none idles at
//! the end.
//!
//! By the clock, a kernel has also had what others took of its core meanwhile. What is compared
//! with processor time of the engine is processor time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::{ChunkBuf, Codec, Compression};
use format::detection::FingerprintKind;
use format::frame::ChunkName;
use format::units::Pbn;
use reduce::Fingerprinter;

use crate::failure::Failure;
use crate::processors::own_time_ns;
use crate::source::{CHUNK_BYTES, REQUEST_BYTES, REQUEST_CHUNKS, Source};

/// What stores are made with unless asked otherwise.
pub(crate) const COMPRESSION: Compression = Compression { codec: Codec::Lz4, level: 0 };

/// As well.
const FINGERPRINTER: Fingerprinter = Fingerprinter::new(FingerprintKind::Blake3);

/// Buffers that a core fills in turn, as the engine's come out of a pool.
const BUFFERS: usize = 16;

/// Time of all requests: by the clock, in all and summed over the cores for each kernel; and
/// processor time of all kernels together.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelTimes {
    pub(crate) wall: Duration,
    pub(crate) processor_ns: u64,
    pub(crate) copy: Duration,
    pub(crate) fingerprint: Duration,
    pub(crate) compress: Duration,
}

/// Runs the kernels over the first `requests` of `source` on `cores` threads.
pub(crate) fn run(source: &Source, requests: u64, cores: usize) -> Result<KernelTimes, Failure> {
    let next = AtomicU64::new(0);
    let begun = Instant::now();
    let parts = thread::scope(|scope| {
        let work = || core(source, requests, &next);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Result<Vec<_>, _>>()
    });
    let mut times = KernelTimes { wall: begun.elapsed(), ..KernelTimes::default() };
    for part in parts.map_err(|_| Failure::EngineVanished)? {
        times.processor_ns += part.processor_ns;
        times.copy += part.copy;
        times.fingerprint += part.fingerprint;
        times.compress += part.compress;
    }
    Ok(times)
}

fn core(source: &Source, requests: u64, next: &AtomicU64) -> KernelTimes {
    let mut times = KernelTimes::default();
    let new_buffer = || ChunkBuf::new(vec![0; REQUEST_BYTES]);
    let mut buffers: Vec<ChunkBuf> = (0..BUFFERS).map(|_| new_buffer()).collect();
    let mut fingerprints = Vec::new();
    let mut frames = vec![0; REQUEST_CHUNKS * reduce::frame_bytes_max(CHUNK_BYTES)];
    let before_ns = own_time_ns();
    for turn in (0..BUFFERS).cycle() {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= requests {
            break;
        }
        let buffer = &mut buffers[turn];
        timed(&mut times.copy, || source.copy_request(number, buffer.bytes_mut()));
        let chunks: Vec<&[u8]> = buffer.bytes().chunks_exact(CHUNK_BYTES).collect();
        fingerprints.clear();
        timed(&mut times.fingerprint, || {
            FINGERPRINTER.batch(&chunks, &mut fingerprints);
        });
        std::hint::black_box(&fingerprints);
        timed(&mut times.compress, || {
            let mut end = 0;
            for (chunk, _) in chunks.iter().zip(source.unique_of(number)).filter(|(_, new)| **new) {
                end += reduce::compress_frame(
                    COMPRESSION,
                    ChunkName::unkeyed(Pbn(1)),
                    chunk,
                    &mut frames[end..],
                );
            }
        });
        std::hint::black_box(&frames);
    }
    // What is between the kernels is not worth a look at the scheduler around each of them.
    times.processor_ns = own_time_ns() - before_ns;
    times
}

fn timed(sum: &mut Duration, work: impl FnOnce()) {
    let begun = Instant::now();
    work();
    *sum += begun.elapsed();
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::run;
    use crate::source::Source;

    #[test]
    fn what_others_took_of_a_core_is_no_processor_time_of_the_kernels() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        // Eight threads on each core: by the clock each kernel has also had the time of seven, and
        // all of them more than the cores have.
        let times = run(&Source::new(4, 1), 16 * cores as u64, 8 * cores).unwrap();
        let processor_ns = u128::from(times.processor_ns);
        let of_cores_ns = times.wall.as_nanos() * cores as u128;
        assert!(processor_ns > 0 && processor_ns < of_cores_ns * 11 / 10, "{times:?}");
    }
}
