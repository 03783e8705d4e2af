//! The same as bars.

use charts::{Panel, PlotError, Series, svg};

use super::latency::Latency;
use super::report::{Report, mib_per_second};
use super::stores::InStore;

const X_TITLE: &str = "way to find a duplicate";
/// A logarithmic axis begins below any latency.
const LATENCY_US_MIN: f64 = 0.1;

impl Report {
    /// The name of each plot's file, and the SVG in it.
    pub(super) fn plots(&self) -> Result<Vec<(&'static str, String)>, PlotError> {
        let mut plots = vec![
            ("time-in-memory.svg", svg(&[self.times()])?),
            ("found-in-memory.svg", svg(&[self.found()])?),
        ];
        if !self.stores.is_empty() {
            plots.push(("throughput.svg", svg(&[self.throughput()])?));
            plots.push(("latency.svg", svg(&[self.latencies()])?));
            plots.push(("look-ups.svg", svg(&[self.lookups()])?));
        }
        Ok(plots)
    }

    fn times(&self) -> Panel {
        let stage = |name, color, of: fn(&estimate::DetectedBy) -> f64| {
            series(name, color, self.kinds.iter().map(|by| Some(of(by))))
        };
        let bars = vec![
            stage("fingerprint", 2, |by| by.fingerprint_ns),
            stage("look-up", 1, |by| by.lookup_ns),
            stage("compare", 3, |by| by.compare_ns),
        ];
        self.of_kinds("Time of one thread, in memory", "ns per chunk", bars)
    }

    fn found(&self) -> Panel {
        let count = |name, color, of: fn(&estimate::DetectedBy) -> u64| {
            series(name, color, self.kinds.iter().map(|by| Some(of(by) as f64)))
        };
        let bars = vec![
            count("duplicates found", 3, |by| by.duplicates),
            count("chunks hashed", 1, |by| by.hashes),
        ];
        self.of_kinds("What was found and what was hashed", "chunks", bars)
    }

    fn throughput(&self) -> Panel {
        let rate = |store: &InStore| Some(mib_per_second(store.chunks_per_second));
        let bars = vec![series("written", 2, self.stores.iter().map(rate))];
        self.of_stores("Written to a store, flushed at the end", "MiB/s", bars)
    }

    fn latencies(&self) -> Panel {
        type Of = fn(&InStore) -> Option<Latency>;
        let depths: [(&str, usize, Of); 3] = [
            ("accepted", 3, |store| store.acknowledged),
            ("durable, depth 1", 2, |store| store.durable_depth_1),
            ("durable, depth 32", 5, |store| store.durable_depth_32),
        ];
        let both = depths.into_iter().flat_map(|(name, color, of)| {
            let at = |percentile: fn(Latency) -> f64| {
                self.stores.iter().map(move |store| of(store).map(percentile))
            };
            let p50 = series(&format!("{name}: p50"), color, at(|latency| latency.p50_us));
            [p50, series(&format!("{name}: p99"), color + 1, at(|latency| latency.p99_us))]
        });
        let panel = self.of_stores("How long a write takes", "us", both.collect());
        let highest = panel.y.end * 10.0;
        Panel { y: LATENCY_US_MIN..highest, y_is_logarithmic: true, ..panel }
    }

    fn lookups(&self) -> Panel {
        let case = |name, color, of: fn(&InStore) -> u64| {
            series(name, color, self.stores.iter().map(|store| Some(of(store) as f64)))
        };
        let bars = vec![
            case("denied by filters", 2, |store| store.cases.denied),
            case("absent", 6, |store| store.cases.absent),
            case("equal", 3, |store| store.cases.equal),
            case("different", 5, |store| store.cases.differ),
            case("chunks read", 1, |store| store.comparison_chunks),
        ];
        self.of_stores("What look-ups came to", "chunks", bars)
    }

    fn of_kinds(&self, title: &str, unit: &str, series: Vec<Series>) -> Panel {
        let names = self.kinds.iter().map(|by| by.kind.to_owned()).collect();
        Panel::bars(title, X_TITLE, unit, names, series)
    }

    fn of_stores(&self, title: &str, unit: &str, series: Vec<Series>) -> Panel {
        let names = self.stores.iter().map(|store| store.way.clone()).collect();
        Panel::bars(title, X_TITLE, unit, names, series)
    }
}

fn series(name: &str, color: usize, values: impl Iterator<Item = Option<f64>>) -> Series {
    Series::bars(name, color, values.collect())
}
