//! fio: the client that all contestants have in common.
//!
//! `dedupe_percentage=50` makes half of the *requests* repeat the one before, so that at 1 MiB
//! duplicates come in runs of 256 chunks. `buffer_compress_percentage=50` makes every 512 bytes
//! half random and half zeros.
//!
//! With a repeatable seed a run that reaches its end starts over with the same bytes, which would
//! be nothing but duplicates. A random run therefore never reaches it (`io_size`).

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::Failure;
use crate::program::{bound, output, patiently, words};

/// Of a sequential request.
const SEQUENTIAL_BYTES: u64 = 1 << 20;
/// Of a random request.
const RANDOM_BYTES: u64 = 4096;
/// More than any random run reads or writes.
const IO_BYTES: u64 = 1 << 40;

/// Where to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A volume of a server.
    Nbd { uri: String },
    /// A file, past the page cache.
    Direct { path: PathBuf },
    /// A file of a file system that does its work behind the page cache only.
    Buffered { path: PathBuf },
}

/// What to do there.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Write,
    Read,
    RandomWrite,
    RandomRead,
    /// Seven random reads for three random writes.
    Mixed,
}

/// One run.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Job {
    pub(crate) pattern: Pattern,
    pub(crate) block_bytes: u64,
    pub(crate) depth: u32,
    /// Connections, each with `depth` requests in flight.
    pub(crate) connections: u32,
    pub(crate) offset_bytes: u64,
    pub(crate) size_bytes: u64,
    /// Of a random run; a sequential one goes once through its range.
    pub(crate) seconds: u64,
    /// After so many bytes a random run ends before that, if said.
    pub(crate) bytes_max: Option<u64>,
    pub(crate) seed: u64,
    /// Does the clock run on until a final flush has been answered.
    pub(crate) flush: bool,
    /// Is every write followed by a flush of its own.
    pub(crate) flush_each: bool,
    /// Is nothing a duplicate, and nine tenths of each chunk zeros: many chunks in little room.
    pub(crate) filler: bool,
}

/// Makes a file with all its blocks.
pub(crate) fn preallocate(path: &Path, size_bytes: u64) -> Result<(), Failure> {
    let size = size_bytes.to_string();
    output(Command::new("fallocate").args(["--length", &size]).arg(path)).map(drop)
}

/// Writes the first bytes of a file and forgets how long that took.
///
/// The disk of a virtual machine is often itself a file with holes, in which the first write to a
/// block takes several times as long as every later one. A run that gets the fresh blocks would be
/// measured making the host's file grow.
pub(crate) fn write_once(path: &Path, size_bytes: u64) -> Result<(), Failure> {
    let size_bytes = size_bytes.next_multiple_of(SEQUENTIAL_BYTES);
    let job = Job { size_bytes, ..Job::sequential(Pattern::Write, ONCE_DEPTH) };
    job.run(&Target::direct(path)).map(drop)
}

const ONCE_DEPTH: u32 = 16;

/// What fio measured.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Speed {
    pub(crate) mib_per_second: f64,
    pub(crate) thousands_per_second: f64,
    /// What was read and written in all, in 10^9 bytes.
    pub(crate) gb: f64,
}

/// How long requests took: half of them no longer than the first, the slowest hundredth at least
/// the second, and so on.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Waits {
    pub(crate) half_us: f64,
    pub(crate) hundredth_us: f64,
    pub(crate) thousandth_us: f64,
    pub(crate) slowest_us: f64,
}

impl Job {
    /// One connection's run of 1-MiB requests from the beginning, flushed if it writes; how far is
    /// for the caller to say.
    pub(crate) fn sequential(pattern: Pattern, depth: u32) -> Self {
        Self {
            pattern,
            block_bytes: SEQUENTIAL_BYTES,
            depth,
            connections: 1,
            offset_bytes: 0,
            size_bytes: 0,
            seconds: 0,
            bytes_max: None,
            seed: 1,
            flush: pattern == Pattern::Write,
            flush_each: false,
            filler: false,
        }
    }

    /// One connection's run of 4-KiB requests; where, how long and whether flushed is for the
    /// caller to say.
    pub(crate) fn random(pattern: Pattern, depth: u32) -> Self {
        Self { block_bytes: RANDOM_BYTES, ..Self::sequential(pattern, depth) }
    }

    /// Runs it.
    pub(crate) fn run(&self, target: &Target) -> Result<Speed, Failure> {
        self.run_on(std::slice::from_ref(target))
    }

    /// Runs it on all of them at the same time; the speed is theirs together.
    pub(crate) fn run_on(&self, targets: &[Target]) -> Result<Speed, Failure> {
        let missing = "the bandwidth of a run without errors";
        self.run_as(targets, missing, |answer| self.read_answer(answer))
    }

    /// Runs it as fast as it goes, and says how long requests took; reads first.
    pub(crate) fn run_and_wait(&self, target: &Target) -> Result<[Waits; 2], Failure> {
        self.run_as(std::slice::from_ref(target), WAITS, read_waits)
    }

    fn run_as<T>(
        &self,
        targets: &[Target],
        missing: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Failure> {
        let mut command = bound("fio");
        // What comes before the first name is of all jobs.
        command.args(self.arguments());
        for (number, target) in targets.iter().enumerate() {
            command.arg(format!("--name=bench{number}")).args(target.arguments());
        }
        let answer = patiently(&mut command)?;
        read(&answer).ok_or_else(|| Failure::Answer { command: words(&command), missing })
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "--output-format=json".to_owned(),
            "--group_reporting".to_owned(),
            "--thread".to_owned(),
            format!("--buffer_compress_percentage={}", if self.filler { 90 } else { 50 }),
            format!("--dedupe_percentage={}", if self.filler { 0 } else { 50 }),
            format!("--rw={}", self.pattern.name()),
            "--rwmixread=70".to_owned(),
            format!("--bs={}", self.block_bytes),
            format!("--iodepth={}", self.depth),
            format!("--numjobs={}", self.connections),
            format!("--offset={}", self.offset_bytes),
            format!("--size={}", self.size_bytes),
            format!("--randseed={}", self.seed),
            format!("--end_fsync={}", u8::from(self.flush)),
        ];
        if self.pattern.is_random() {
            arguments.push("--norandommap".to_owned());
            arguments.push(format!("--io_size={}", self.bytes_max.unwrap_or(IO_BYTES)));
            arguments.push(format!("--runtime={}", self.seconds));
        }
        if self.flush_each {
            arguments.push("--fsync=1".to_owned());
        }
        arguments
    }

    fn read_answer(&self, answer: &str) -> Option<Speed> {
        let job = read_job(answer)?;
        let sum = |name: &str| -> Option<f64> {
            let of = |side: &&str| job.get(*side)?.get(name)?.as_f64();
            self.pattern.sides().iter().map(of).sum()
        };
        let bytes_per_second = sum("bw_bytes").filter(|speed| *speed > 0.0)?;
        Some(Speed {
            mib_per_second: bytes_per_second / f64::from(1 << 20),
            thousands_per_second: sum("iops")? / 1000.0,
            gb: sum("io_bytes")? / 1e9,
        })
    }
}

/// What fio says of a run without errors.
fn read_job(answer: &str) -> Option<Value> {
    // With some engines fio prints lines of its own before.
    let json: Value = serde_json::from_str(answer.get(answer.find('{')?..)?).ok()?;
    let job = json.get("jobs")?.get(0)?;
    (job.get("error")?.as_u64()? == 0).then(|| job.clone())
}

const WAITS: &str = "how long requests of a run without errors took";

/// Of reads and of writes; nothing for those that were not asked for.
fn read_waits(answer: &str) -> Option<[Waits; 2]> {
    let job = read_job(answer)?;
    let waits = |side: &str| -> Option<Waits> {
        let took = job.get(side)?.get("clat_ns")?;
        let us = |value: Option<&Value>| value.and_then(Value::as_f64).unwrap_or_default() / 1e3;
        let part = |name| us(took.get("percentile").and_then(|parts| parts.get(name)));
        Some(Waits {
            half_us: part("50.000000"),
            hundredth_us: part("99.000000"),
            thousandth_us: part("99.900000"),
            slowest_us: us(took.get("max")),
        })
    };
    Some([waits("read")?, waits("write")?])
}

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Pattern::Write => "write",
            Pattern::Read => "read",
            Pattern::RandomWrite => "randwrite",
            Pattern::RandomRead => "randread",
            Pattern::Mixed => "randrw",
        }
    }

    /// Whether it goes on for a time, anywhere in its range.
    pub(crate) fn is_random(self) -> bool {
        matches!(self, Pattern::RandomWrite | Pattern::RandomRead | Pattern::Mixed)
    }

    /// What fio counts it as.
    fn sides(self) -> &'static [&'static str] {
        match self {
            Pattern::Write | Pattern::RandomWrite => &["write"],
            Pattern::Read | Pattern::RandomRead => &["read"],
            Pattern::Mixed => &["read", "write"],
        }
    }
}

impl Target {
    /// A file past the page cache.
    pub(crate) fn direct(path: &Path) -> Self {
        Self::Direct { path: path.to_owned() }
    }

    fn arguments(&self) -> Vec<String> {
        match self {
            Target::Nbd { uri } => vec!["--ioengine=nbd".to_owned(), format!("--uri={uri}")],
            Target::Direct { path } => vec![
                "--ioengine=io_uring".to_owned(),
                "--direct=1".to_owned(),
                format!("--filename={}", path.display()),
            ],
            // Extents that are allocated before they are written are not compressed by btrfs.
            Target::Buffered { path } => vec![
                "--ioengine=io_uring".to_owned(),
                "--fallocate=none".to_owned(),
                format!("--filename={}", path.display()),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Job, Pattern, Speed, Waits, read_waits};

    const JOB: Job = Job {
        pattern: Pattern::Write,
        block_bytes: 1 << 20,
        depth: 4,
        connections: 1,
        offset_bytes: 0,
        size_bytes: 1 << 30,
        seconds: 5,
        bytes_max: None,
        seed: 1,
        flush: true,
        flush_each: false,
        filler: false,
    };

    #[test]
    fn speed_is_read_from_behind_what_fio_prints_first() {
        let answer = "fio: connected to NBD server\n{\"jobs\":[{\"error\":0,\
                      \"read\":{\"bw_bytes\":0,\"iops\":0.0,\"io_bytes\":0},\
                      \"write\":{\"bw_bytes\":2097152,\"iops\":500.0,\"io_bytes\":4000000}}]}";
        let speed = Speed { mib_per_second: 2.0, thousands_per_second: 0.5, gb: 0.004 };
        assert_eq!(JOB.read_answer(answer), Some(speed));
        assert_eq!(Job { pattern: Pattern::Read, ..JOB }.read_answer(answer), None);
        assert_eq!(Job { pattern: Pattern::Mixed, ..JOB }.read_answer(answer), Some(speed));
        assert_eq!(JOB.read_answer(&answer.replace("\"error\":0", "\"error\":5")), None);
        assert_eq!(JOB.read_answer("fio: cannot connect"), None);
    }

    #[test]
    fn waits_are_read_of_both_sides() {
        let side = |ns: u32| {
            format!(
                "{{\"clat_ns\":{{\"max\":{ns},\"percentile\":{{\"50.000000\":1000,\
                 \"99.000000\":2000,\"99.900000\":3000}}}}}}"
            )
        };
        let answer =
            format!("{{\"jobs\":[{{\"error\":0,\"read\":{},\"write\":{{}}}}]}}", side(4000));
        assert_eq!(read_waits(&answer), None, "a side that says nothing");
        let answer = answer.replace("\"write\":{}", &format!("\"write\":{}", side(5000)));
        let reads = Waits { half_us: 1.0, hundredth_us: 2.0, thousandth_us: 3.0, slowest_us: 4.0 };
        assert_eq!(read_waits(&answer), Some([reads, Waits { slowest_us: 5.0, ..reads }]));
        assert_eq!(read_waits(&answer.replace("\"error\":0", "\"error\":5")), None);
    }

    #[test]
    fn a_random_run_ends_after_its_bytes_where_they_are_said() {
        let random = Job { pattern: Pattern::RandomRead, ..JOB };
        let ends = |job: Job, bytes: &str| job.arguments().contains(&format!("--io_size={bytes}"));
        assert!(ends(random, "1099511627776"));
        assert!(ends(Job { bytes_max: Some(8192), ..random }, "8192"));
    }

    #[test]
    fn only_a_random_run_has_a_time_limit() {
        let limited = |job: Job| job.arguments().contains(&"--runtime=5".to_owned());
        assert!(!limited(JOB));
        for pattern in [Pattern::RandomWrite, Pattern::RandomRead, Pattern::Mixed] {
            assert!(limited(Job { pattern, ..JOB }));
        }
    }
}
