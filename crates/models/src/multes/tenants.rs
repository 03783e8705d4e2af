//! Tenants before one pipeline: a token bucket for each, and what the line carries of what they
//! offer, cycle by cycle.
//!
//! The pipeline is shared, so what a tenant gets is decided where requests come in: each tenant's
//! bucket fills at its rate up to its burst, and a request waits until the bucket has its bytes.
//! Behind the buckets requests are served in the order in which they passed.

use std::collections::VecDeque;

/// A tenant by what it may send and what it tries to send, in bytes a cycle.
#[derive(Copy, Clone, Debug)]
pub struct Tenant {
    /// What its bucket fills with.
    pub rate: f64,
    /// What its bucket holds at most, in bytes.
    pub burst_bytes: f64,
    /// What it offers.
    pub offered: f64,
}

/// What a tenant got.
#[derive(Copy, Clone, Debug, Default)]
pub struct Share {
    /// Bytes a cycle.
    pub served: f64,
    /// The longest that a request waited behind its bucket, in cycles.
    pub wait_cycles_max: u64,
}

struct State {
    tokens: f64,
    offered_bytes: f64,
    held: u64,
}

/// Requests of `request_bytes` over a line of `line` bytes a cycle, for a number of cycles.
#[must_use]
pub fn share(tenants: &[Tenant], request_bytes: f64, line: f64, cycles: u64) -> Vec<Share> {
    let begin = |tenant: &Tenant| State { tokens: tenant.burst_bytes, offered_bytes: 0.0, held: 0 };
    let mut states: Vec<State> = tenants.iter().map(begin).collect();
    let mut shares = vec![Share::default(); tenants.len()];
    let mut passed: VecDeque<(usize, u64)> = VecDeque::new();
    let mut line_bytes = 0.0_f64;
    for cycle in 0..cycles {
        for (number, (tenant, state)) in tenants.iter().zip(&mut states).enumerate() {
            state.tokens = (state.tokens + tenant.rate).min(tenant.burst_bytes);
            state.offered_bytes += tenant.offered;
            if state.offered_bytes >= request_bytes {
                state.offered_bytes -= request_bytes;
                state.held += 1;
            }
            if state.held > 0 && state.tokens >= request_bytes {
                state.held -= 1;
                state.tokens -= request_bytes;
                passed.push_back((number, cycle));
            }
        }
        line_bytes = (line_bytes + line).min(request_bytes + line);
        while line_bytes >= request_bytes
            && let Some((number, since)) = passed.pop_front()
        {
            line_bytes -= request_bytes;
            shares[number].served += request_bytes / cycles as f64;
            shares[number].wait_cycles_max = shares[number].wait_cycles_max.max(cycle - since);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::{Tenant, share};

    const REQUEST_BYTES: f64 = 590.0;
    const LINE: f64 = 8.0;

    fn tenant(offered: f64) -> Tenant {
        Tenant { rate: 1.0, burst_bytes: 2.0 * REQUEST_BYTES, offered }
    }

    #[test]
    fn greed_gives_a_tenant_its_rate_and_takes_nothing_from_another() {
        let mut tenants = vec![tenant(10.0); 7];
        tenants.push(tenant(0.9));
        let shares = share(&tenants, REQUEST_BYTES, LINE, 1_000_000);
        assert!(shares[..7].iter().all(|share| (share.served - 1.0).abs() < 0.01), "{shares:?}");
        assert!((shares[7].served - 0.9).abs() < 0.01, "{shares:?}");
        let bursts = 8.0 * 2.0 * REQUEST_BYTES / LINE;
        assert!(shares.iter().all(|share| share.wait_cycles_max as f64 <= bursts), "{shares:?}");
    }

    #[test]
    fn without_limits_the_greedy_take_what_others_were_to_have() {
        let open = |offered| Tenant { rate: 100.0, burst_bytes: 1e6, offered };
        let mut tenants = vec![open(10.0); 7];
        tenants.push(open(0.9));
        let shares = share(&tenants, REQUEST_BYTES, LINE, 1_000_000);
        assert!(shares[7].served < 0.2, "{shares:?}");
    }
}
