//! What the processors of the machine did.

use std::fs;

/// The kernel's clock ticks: 100 a second on every machine that Linux reports them to.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds that all processors together have worked since the machine was started; waiting for a
/// disk and what the host took are no work.
pub(super) fn busy_seconds() -> f64 {
    read_busy(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default()
}

fn read_busy(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft, ..] = ticks[..] else {
        return None;
    };
    Some((user + nice + system + interrupts + soft) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::{busy_seconds, read_busy};

    #[test]
    fn work_is_all_but_waiting() {
        let stat = "cpu  100 20 300 9999 888 4 50 777 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(read_busy(stat), Some(4.74));
        assert_eq!(read_busy("intr 5\n"), None);
        assert!(busy_seconds() > 0.0);
    }
}
