//! The jobs of a turn, in their order: what is written first is what the others read and overwrite.

use crate::args::Args;
use crate::fio::{Job, Pattern};

/// Requests under way of a sequential job.
const SEQUENTIAL_DEPTH: u32 = 4;
/// Part of the volume that hot reads stay in: it fits into every cache.
const HOT_PART: u64 = 8;
/// Part of that volume which is measured at several levels of fullness.
const FULLNESS_PART: u64 = 2;
/// Clones that are read at the same time, and reads under way on each.
const CLONES: u32 = 8;
const CLONE_DEPTH: u32 = 8;
/// Of a request that brings into memory what is then read at random: of longer ones Tamis keeps
/// nothing.
const WARM_BYTES: u64 = 128 << 10;
/// Of what fills a store; other seeds are smaller.
const FILLER_SEED: u64 = 900_000;

/// What is done before the clock starts.
#[derive(Copy, Clone, Debug)]
pub(super) enum Before {
    Nothing,
    /// Nothing is in any cache afterwards.
    Restart,
    /// A run that is not measured.
    Reading(Job),
    /// Such a run, and then each connection gets a clone of its own, which nobody has read.
    Cloning(Job),
}

/// One job.
#[derive(Copy, Clone, Debug)]
pub(super) struct Planned {
    pub(super) name: &'static str,
    pub(super) job: Job,
    pub(super) before: Before,
}

/// A table of the page: its heading, its unit, and its jobs with what a column calls them.
pub(super) struct Part {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) columns: &'static [(&'static str, &'static str)],
}

/// The jobs as a reader finds them.
pub(super) const PARTS: [Part; 5] = [
    Part {
        title: "Sequential, 1 MiB, depth 4",
        unit: "MiB/s",
        columns: &[
            ("write, durable", "sequential write"),
            ("read, cold", "sequential read, cold"),
            ("read, hot", "sequential read, hot"),
        ],
    },
    Part {
        title: "Random writes of 4 KiB, flushed at the end",
        unit: "thousands a second",
        columns: &[
            ("depth 1", "random write, depth 1"),
            ("depth 4", "random write, depth 4"),
            ("depth 32", "random write, depth 32"),
            ("4 jobs x 32", "random write, 4 x 32"),
        ],
    },
    Part {
        title: "Random reads of 4 KiB",
        unit: "thousands a second",
        columns: &[
            ("cold, depth 1", "random read, cold, depth 1"),
            ("cold, depth 32", "random read, cold, depth 32"),
            ("hot, depth 1", "random read, hot, depth 1"),
            ("hot, depth 4", "random read, hot, depth 4"),
            ("hot, depth 32", "random read, hot, depth 32"),
            ("hot, 4 jobs x 32", "random read, hot, 4 x 32"),
            ("8 clones x 8", "random read, 8 clones"),
        ],
    },
    Part {
        title: "Seven random reads for three writes of 4 KiB",
        unit: "thousands a second",
        columns: &[("depth 32", "mixed, depth 32")],
    },
    Part {
        title: "Random writes of 4 KiB, each followed by a flush",
        unit: "thousands a second",
        columns: &[
            ("1 client", "flushed writes, 1 client"),
            ("8 clients", "flushed writes, 8 clients"),
        ],
    },
];

/// All jobs, for volumes of the size that `args` say.
pub(super) fn plan(args: &Args) -> Vec<Planned> {
    let mut jobs = sequential_jobs(args).to_vec();
    jobs.extend(random_reads(args));
    jobs.extend(random_writes(args));
    // Last: a volume with clones writes otherwise.
    jobs.push(reads_of_clones(args));
    jobs
}

/// The volume that the jobs of [`fullness_plan`] stay in.
pub(super) fn fullness_volume_bytes(args: &Args) -> u64 {
    args.size_bytes() / FULLNESS_PART
}

/// What is asked of a store that is empty, half full and nearly full.
pub(super) fn fullness_plan(args: &Args) -> Vec<Planned> {
    let size_bytes = fullness_volume_bytes(args);
    let whole = |pattern| Job { size_bytes, ..Job::sequential(pattern, SEQUENTIAL_DEPTH) };
    let part = |pattern, connections, depth| Job {
        size_bytes,
        ..random(args, pattern, connections, depth)
    };
    let flushed = |clients| Job { flush_each: true, ..part(Pattern::RandomWrite, clients, 1) };
    let planned = |name, job, before| Planned { name, job, before };
    vec![
        planned("sequential write, durable, MiB/s", whole(Pattern::Write), Before::Nothing),
        planned("sequential read, cold, MiB/s", whole(Pattern::Read), Before::Restart),
        planned(
            "random read, cold, depth 32, thousands a second",
            part(Pattern::RandomRead, 1, 32),
            Before::Restart,
        ),
        planned(
            "random write, depth 32, thousands a second",
            part(Pattern::RandomWrite, 1, 32),
            Before::Nothing,
        ),
        planned("flushed writes, 1 client, thousands a second", flushed(1), Before::Nothing),
        planned("flushed writes, 8 clients, thousands a second", flushed(8), Before::Nothing),
    ]
}

/// Writes at least so many bytes of what fills a store.
pub(super) fn filler(size_bytes: u64, number: u64) -> Job {
    let block_bytes = Job::sequential(Pattern::Write, 1).block_bytes;
    Job {
        size_bytes: size_bytes.next_multiple_of(block_bytes),
        seed: FILLER_SEED + number,
        filler: true,
        ..Job::sequential(Pattern::Write, 16)
    }
}

fn sequential_jobs(args: &Args) -> [Planned; 3] {
    let of = |pattern| Job {
        size_bytes: args.size_bytes(),
        ..Job::sequential(pattern, SEQUENTIAL_DEPTH)
    };
    let (write, read) = (of(Pattern::Write), of(Pattern::Read));
    [
        Planned { name: "sequential write", job: write, before: Before::Nothing },
        Planned { name: "sequential read, cold", job: read, before: Before::Restart },
        Planned { name: "sequential read, hot", job: read, before: Before::Reading(read) },
    ]
}

fn random_reads(args: &Args) -> Vec<Planned> {
    let half_bytes = args.size_bytes() / 2;
    let read = Job { size_bytes: half_bytes, ..random(args, Pattern::RandomRead, 1, 1) };
    // Each has a half of its own: what the first brought in is no hit of the second.
    let mut jobs = vec![
        Planned { name: "random read, cold, depth 1", job: read, before: Before::Restart },
        Planned {
            name: "random read, cold, depth 32",
            job: Job { depth: 32, offset_bytes: half_bytes, ..read },
            before: Before::Nothing,
        },
    ];
    let size_bytes = args.size_bytes() / HOT_PART;
    let warm = warming(size_bytes);
    for (name, connections, depth, before) in [
        ("random read, hot, depth 1", 1, 1, Before::Reading(warm)),
        ("random read, hot, depth 4", 1, 4, Before::Nothing),
        ("random read, hot, depth 32", 1, 32, Before::Nothing),
        ("random read, hot, 4 x 32", 4, 32, Before::Nothing),
    ] {
        let job = Job { size_bytes, ..random(args, Pattern::RandomRead, connections, depth) };
        jobs.push(Planned { name, job, before });
    }
    jobs
}

/// What machines do that start from clones of one image.
fn reads_of_clones(args: &Args) -> Planned {
    let size_bytes = args.size_bytes() / HOT_PART;
    let job = Job { size_bytes, ..random(args, Pattern::RandomRead, CLONES, CLONE_DEPTH) };
    Planned { name: "random read, 8 clones", job, before: Before::Cloning(warming(size_bytes)) }
}

/// Reads so many bytes, and they stay in memory.
fn warming(size_bytes: u64) -> Job {
    let sequential = Job::sequential(Pattern::Read, SEQUENTIAL_DEPTH);
    Job { size_bytes, block_bytes: WARM_BYTES, ..sequential }
}

fn random_writes(args: &Args) -> Vec<Planned> {
    let planned = |name, job| Planned { name, job, before: Before::Nothing };
    let write = |connections, depth| random(args, Pattern::RandomWrite, connections, depth);
    let flushed = |clients| Job { flush_each: true, ..write(clients, 1) };
    vec![
        planned("random write, depth 1", write(1, 1)),
        planned("random write, depth 4", write(1, 4)),
        planned("random write, depth 32", write(1, 32)),
        planned("random write, 4 x 32", write(4, 32)),
        planned("mixed, depth 32", random(args, Pattern::Mixed, 1, 32)),
        planned("flushed writes, 1 client", flushed(1)),
        planned("flushed writes, 8 clients", flushed(8)),
    ]
}

fn random(args: &Args, pattern: Pattern, connections: u32, depth: u32) -> Job {
    Job {
        connections,
        size_bytes: args.size_bytes(),
        seconds: args.seconds,
        flush: pattern != Pattern::RandomRead,
        ..Job::random(pattern, depth)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Before, PARTS, plan};
    use crate::args::Args;

    /// `engine::reads` holds frames of no longer reads.
    const HELD_READ_BYTES_MAX: u64 = 256 << 10;

    #[test]
    fn what_is_read_at_random_and_hot_was_read_in_pieces_that_stay_in_memory() {
        let jobs = plan(&Args::parse_from(["bench", "whole"]));
        let warmed = jobs.iter().filter_map(|planned| match planned.before {
            Before::Reading(warm) | Before::Cloning(warm) => Some((planned, warm)),
            Before::Nothing | Before::Restart => None,
        });
        let random: Vec<_> =
            warmed.filter(|(planned, _)| planned.job.pattern.is_random()).collect();
        assert_eq!(random.len(), 2);
        for (planned, warm) in random {
            assert!(warm.block_bytes <= HELD_READ_BYTES_MAX, "{}", planned.name);
            assert_eq!(warm.size_bytes, planned.job.size_bytes, "{}", planned.name);
        }
    }

    #[test]
    fn every_job_is_in_one_table() {
        let jobs = plan(&Args::parse_from(["bench", "whole", "--size-mib", "64"]));
        let mut planned: Vec<&str> = jobs.iter().map(|planned| planned.name).collect();
        let columns = PARTS.iter().flat_map(|part| part.columns);
        let mut shown: Vec<&str> = columns.map(|(_, job)| *job).collect();
        planned.sort_unstable();
        shown.sort_unstable();
        assert_eq!(planned, shown);
        let inside = |job: &crate::fio::Job| job.offset_bytes + job.size_bytes <= 64 << 20;
        assert!(jobs.iter().all(|planned| inside(&planned.job)));
    }
}
