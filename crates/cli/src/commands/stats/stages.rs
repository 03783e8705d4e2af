//! Where the time of a served store goes.

use engine::{JobTime, StageTime, Stats};

use crate::size::human_count;
use crate::table::{Align, Table};

/// The stages of the core, and the jobs around it; none where nobody keeps time, or nothing was
/// written or read yet.
pub(super) fn table(stats: &Stats) -> Option<Table> {
    let counters = &stats.counters;
    let bytes = counters.bytes_written + counters.bytes_read;
    let chunks = bytes / u64::from(stats.chunk_bytes.max(1));
    let core = &stats.stages.core;
    if core.is_empty() || chunks == 0 {
        return None;
    }
    let mut table = Table::plain([Align::Left, Align::Right, Align::Left]);
    let passed: u64 = core.iter().map(|time| time.ns).sum();
    let awake = core.iter().filter(|time| time.stage != "asleep");
    let awake: u64 = awake.map(|time| time.ns).sum();
    let busy = format!(
        "a chunk of {} written or read; awake {:.0}% of the time",
        human_count(chunks),
        100.0 * awake as f64 / passed.max(1) as f64
    );
    table.row(["core".into(), each(awake, chunks), busy]);
    for StageTime { stage, ns } in core.iter().filter(|time| time.ns > 0) {
        if stage != "asleep" {
            table.row([
                format!("  {}", stage.replace('_', " ")),
                each(*ns, chunks),
                share(*ns, awake),
            ]);
        }
    }
    let jobs = stats.stages.jobs.iter().filter(|time| time.chunks > 0);
    for JobTime { job, ns, chunks } in jobs {
        let of = format!("a chunk of {}", human_count(*chunks));
        table.row([job.clone(), each(*ns, *chunks), of]);
    }
    Some(table)
}

fn each(ns: u64, chunks: u64) -> String {
    format!("{:.0} ns", ns as f64 / chunks as f64)
}

fn share(ns: u64, of: u64) -> String {
    format!("{:.0}%", 100.0 * ns as f64 / of.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use engine::{Counters, JobTime, StageTime, StageTimes, Stats};

    use super::table;

    #[test]
    fn stages_are_told_by_the_chunk_and_jobs_by_their_own() {
        let stage = |stage: &str, ns| StageTime { stage: stage.to_owned(), ns };
        let job = |job: &str, ns, chunks| JobTime { job: job.to_owned(), ns, chunks };
        let core = vec![
            stage("look_ups", 3000),
            stage("merges", 0),
            stage("rest", 1000),
            stage("asleep", 12_000),
        ];
        let jobs = vec![job("fingerprint", 8000, 4), job("expand", 0, 0)];
        let mut stats = Stats {
            chunk_bytes: 4096,
            counters: Counters { bytes_written: 40_960, ..Counters::default() },
            stages: StageTimes { core, jobs },
            ..Stats::default()
        };
        let told = table(&stats).unwrap().to_string();
        let lines: Vec<Vec<&str>> =
            told.lines().map(|line| line.split_whitespace().collect()).collect();
        let wanted = [
            "core 400 ns a chunk of 10 written or read; awake 25% of the time",
            "look ups 300 ns 75%",
            "rest 100 ns 25%",
            "fingerprint 2000 ns a chunk of 4",
        ];
        assert_eq!(lines.len(), wanted.len(), "{told}");
        for (line, wanted) in lines.iter().zip(wanted) {
            assert_eq!(line.join(" "), wanted);
        }
        stats.counters = Counters::default();
        assert!(table(&stats).is_none());
    }
}
