//! Duplicates that are missed where each device deduplicates for itself (CAL'17; the talk's "cannot
//! detect duplicates in multiple SSDs").
//!
//! The law: a content that is written k times, each to any of N devices, is stored once on every
//! device that it comes to, so k - N (1 - (1 - 1/N)^k) of its writes are found. One device, or one
//! engine for the node, finds k - 1.

use std::collections::{HashMap, HashSet};

use traces::Direction;

use crate::dice::mixed;
use crate::flash::Trace;

/// Blocks that lie together on a device.
const STRIPE_BLOCKS: u64 = 8;

/// Duplicates found in a trace that is striped over `devices`, in percent of its writes.
#[must_use]
pub fn found_on_devices(trace: &Trace, devices: u64) -> f64 {
    let mut stored = HashSet::new();
    percent(trace, |lba, content| !stored.insert((device_of(lba, devices), content)))
}

/// The same by the law, from how often each content comes.
#[must_use]
pub fn found_by_law(trace: &Trace, devices: u64) -> f64 {
    let mut copies: HashMap<u32, i32> = HashMap::new();
    let mut writes = 0_u64;
    for request in trace.requests.iter().filter(|request| request.direction == Direction::Write) {
        *copies.entry(request.content).or_default() += 1;
        writes += 1;
    }
    let mut counts: Vec<i32> = copies.into_values().collect();
    counts.sort_unstable();
    let others = 1.0 - 1.0 / devices as f64;
    let found = |k: &i32| f64::from(*k) - devices as f64 * (1.0 - others.powi(*k));
    100.0 * counts.iter().map(found).sum::<f64>() / writes.max(1) as f64
}

/// Where a block lies: stripes lie on devices by chance.
#[must_use]
pub fn device_of(lba: u64, devices: u64) -> u64 {
    mixed(lba / STRIPE_BLOCKS, devices) % devices
}

fn percent(trace: &Trace, mut is_found: impl FnMut(u64, u32) -> bool) -> f64 {
    let writes = trace.requests.iter().filter(|request| request.direction == Direction::Write);
    let (mut all, mut found) = (0_u64, 0_u64);
    for request in writes {
        all += 1;
        found += u64::from(is_found(request.lba, request.content));
    }
    100.0 * found as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::{found_by_law, found_on_devices};
    use crate::flash::{BURST_MEAN, Original};

    #[test]
    fn the_law_says_what_is_found() {
        for original in [Original::TRACES[1], Original::TRACES[2]] {
            let trace = original.make(60_000, BURST_MEAN, 1);
            for devices in [1, 2, 4, 16, 64] {
                let (law, found) =
                    (found_by_law(&trace, devices), found_on_devices(&trace, devices));
                assert!((law - found).abs() < 1.5, "{original:?}, {devices}: {law} and {found}");
            }
            assert!((found_by_law(&trace, 1) - trace.duplicate_percent()).abs() < 1e-9);
        }
    }
}
