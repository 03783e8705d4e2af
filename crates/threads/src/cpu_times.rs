//! Processor time of this process's threads, by name, as the scheduler counts it: what a store's
//! core and its workers cost, measured from outside, since the engine has no clock.
//!
//! `schedstat` counts nanoseconds; `stat` counts hundredths of a second.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Processor time of each kind of thread, in nanoseconds; threads that differ in a trailing number
/// only are one kind.
#[must_use]
pub fn cpu_times_ns() -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks {
        // A thread that has just ended has no files any more, and is of no interest.
        if let Some((name, time_ns)) = of_task(&task.path()) {
            *times.entry(name).or_default() += time_ns;
        }
    }
    times
}

/// Processor time that threads of this kind took between two readings of [`cpu_times_ns`], in
/// nanoseconds.
#[must_use]
pub fn cpu_time_between_ns(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
    kind: &str,
) -> u64 {
    let at = |times: &BTreeMap<String, u64>| times.get(kind).copied().unwrap_or_default();
    at(after).saturating_sub(at(before))
}

fn of_task(task: &Path) -> Option<(String, u64)> {
    let name = fs::read_to_string(task.join("comm")).ok()?;
    let kind = name.trim().trim_end_matches(|digit: char| digit.is_ascii_digit());
    let times = fs::read_to_string(task.join("schedstat")).ok()?;
    let time_ns = times.split_whitespace().next()?.parse().ok()?;
    Some((kind.trim_end_matches('-').to_owned(), time_ns))
}

#[cfg(test)]
mod tests {
    use super::cpu_times_ns;

    #[test]
    fn threads_are_found_by_kind() {
        let threads: Vec<_> = ["worker-1", "worker-2"]
            .map(|name| std::thread::Builder::new().name(name.to_owned()))
            .into_iter()
            .map(|builder| builder.spawn(std::thread::park).unwrap())
            .collect();
        while !cpu_times_ns().contains_key("worker") {
            std::thread::yield_now();
        }
        for thread in threads {
            thread.thread().unpark();
            thread.join().unwrap();
        }
    }
}
