//! How much memory this process really holds.

use rustix::param::page_size;

/// Resident memory of this process, or `None` where `/proc` is not mounted.
#[must_use]
pub fn rss_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let resident_pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    resident_pages.checked_mul(page_size() as u64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_holds_some_memory() {
        let rss_bytes = super::rss_bytes().unwrap();
        assert!((100_000..100_000_000_000).contains(&rss_bytes));
    }
}
