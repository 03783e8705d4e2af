//! Long-term reconfiguration: how much of an FPGA works, if its cores are fixed for the worst case
//! or given out as the workload's average wants them.
//!
//! An FPGA that is never reconfigured has hash, compression and decompression cores for every
//! workload at the full rate. One that is has them for this workload. What a core of each kind
//! takes of an FPGA the texts do not say: they are taken as equal for the same rate.

/// Of a workload's bytes, those that each kind of core sees.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Mix {
    /// Written.
    pub hashed: f64,
    /// Written and unique.
    pub compressed: f64,
    /// Read.
    pub expanded: f64,
}

impl Mix {
    /// Of a share of writes, and the share of them that is unique.
    #[must_use]
    pub fn of(write_share: f64, unique_share: f64) -> Self {
        Self {
            hashed: write_share,
            compressed: write_share * unique_share,
            expanded: 1.0 - write_share,
        }
    }

    fn sum(&self) -> f64 {
        self.hashed + self.compressed + self.expanded
    }
}

/// Of cores laid out for one mix, what works under another, in percent.
#[must_use]
pub fn utilisation_percent(laid_out_for: &Mix, mix: &Mix) -> f64 {
    let loads = [
        (mix.hashed, laid_out_for.hashed),
        (mix.compressed, laid_out_for.compressed),
        (mix.expanded, laid_out_for.expanded),
    ];
    let load = |(load, cores): (f64, f64)| if load > 0.0 { load / cores } else { 0.0 };
    let slowest = loads.map(load).into_iter().fold(0.0, f64::max);
    if slowest == 0.0 { 0.0 } else { 100.0 * mix.sum() / (slowest * laid_out_for.sum()) }
}

/// Every workload at the full rate.
pub(super) const WORST_CASE: Mix = Mix { hashed: 1.0, compressed: 1.0, expanded: 1.0 };

#[cfg(test)]
mod tests {
    use super::{Mix, WORST_CASE, utilisation_percent};

    #[test]
    fn cores_for_a_mix_all_work_under_it_and_fewer_under_any_other() {
        let mixes = [(1.0, 0.1), (1.0, 0.5), (0.5, 0.5), (0.1, 1.0)];
        for mix in mixes.map(|(write, unique)| Mix::of(write, unique)) {
            assert!((utilisation_percent(&mix, &mix) - 100.0).abs() < 1e-9);
            assert!(utilisation_percent(&WORST_CASE, &mix) < 84.0, "{mix:?}");
        }
    }
}
