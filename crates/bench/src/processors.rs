//! What the processors of the machine did, and what a thread of ours had of them.

use std::time::Duration;
use std::{fs, thread};

/// The kernel's clock ticks: 100 a second on every machine that Linux reports them to.
const TICKS_PER_SECOND: f64 = 100.0;

/// What all processors together did since the machine was started.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// Waiting for a disk and what the host took are no work.
    busy_seconds: f64,
    /// Given to others by the host of a virtual machine while there was work.
    stolen_seconds: f64,
}

impl Spent {
    /// Until now; nothing where the kernel does not say.
    pub(crate) fn now() -> Self {
        read(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default()
    }

    /// Seconds of work since `before`.
    pub(crate) fn busy_since(self, before: Self) -> f64 {
        self.busy_seconds - before.busy_seconds
    }

    /// Of the time in which there was work since `before`, what the host gave to others.
    pub(crate) fn stolen_percent_since(self, before: Self) -> f64 {
        let stolen = self.stolen_seconds - before.stolen_seconds;
        let wanted = self.busy_since(before) + stolen;
        if wanted > 0.0 { 100.0 * stolen / wanted } else { 0.0 }
    }
}

/// Processor time of the calling thread until now, which the scheduler forgets when it ends.
pub(crate) fn own_time_ns() -> u64 {
    // What a thread took is added up when it leaves its processor.
    thread::sleep(Duration::from_micros(1));
    let times = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or_default()
}

fn read(stat: &str) -> Option<Spent> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft, stolen, ..] = ticks[..] else {
        return None;
    };
    let busy = user + nice + system + interrupts + soft;
    Some(Spent { busy_seconds: busy / TICKS_PER_SECOND, stolen_seconds: stolen / TICKS_PER_SECOND })
}

#[cfg(test)]
mod tests {
    use super::{Spent, read};

    #[test]
    fn work_is_all_but_waiting_and_what_was_stolen() {
        let stat = "cpu  100 20 300 9999 888 4 50 777 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(read(stat), Some(Spent { busy_seconds: 4.74, stolen_seconds: 7.77 }));
        assert_eq!(read("intr 5\n"), None);
        assert!(Spent::now().busy_since(Spent::default()) > 0.0);
    }

    #[test]
    fn what_was_stolen_is_a_part_of_what_was_wanted() {
        let before = Spent { busy_seconds: 10.0, stolen_seconds: 5.0 };
        let after = Spent { busy_seconds: 19.0, stolen_seconds: 6.0 };
        assert_eq!(after.stolen_percent_since(before), 10.0);
        assert_eq!(before.stolen_percent_since(before), 0.0, "nobody wanted anything");
    }
}
