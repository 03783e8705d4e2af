//! What every run must be, whatever the trace: the device loses nothing and finds what is there.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::{prop_assert, prop_assert_eq, proptest};
use traces::Direction;

use super::{Setup, driven, run};
use crate::flash::geometry::Geometry;
use crate::flash::made::{BURST_MEAN, Original};
use crate::flash::prefetch::PrefetchSetup;
use crate::flash::strategy::Strategy;
use crate::flash::trace::{Request, Trace};

fn trace(requests: Vec<Request>) -> Trace {
    let bloom_bits = 100_000;
    Trace { name: "a".to_owned(), requests, same_codes: HashMap::new(), bloom_bits }
}

fn write(time_ns: u64, lba: u64, content: u32) -> Request {
    Request { time_ns, direction: Direction::Write, lba, content }
}

/// Two writes of one content far apart, then a read of it.
fn one_duplicate() -> Trace {
    let read = Request { direction: Direction::Read, ..write(2_000_000, 5, 0) };
    trace(vec![write(0, 5, 1), write(1_000_000, 9, 1), read])
}

#[test]
fn a_request_alone_takes_the_sum_of_its_steps() {
    let times = |strategy| {
        let figures = run(&one_duplicate(), &Setup::usual(strategy)).unwrap();
        assert_eq!(figures.reads_ns, [4_000], "{strategy:?}");
        [figures.writes_ns[0], figures.writes_ns[1]]
    };
    assert_eq!(times(Strategy::None), [101_000, 101_000]);
    assert_eq!(times(Strategy::Sha1), [14_300, 115_300]);
    assert_eq!(times(Strategy::Sha256), [28_600, 129_600]);
    assert_eq!(times(Strategy::Blake2), [9_800, 110_800]);
    // Code, BLAKE2 of it, read, check, comparison.
    assert_eq!(times(Strategy::Ead), [7_000, 101_000]);
    // The first was not hashed, so the second is not known.
    assert_eq!(times(Strategy::Sampling), [101_000, 115_300]);
}

#[test]
fn hashes_wait_for_one_engine() {
    let burst = trace((0..10).map(|lba| write(0, lba, lba as u32)).collect());
    let figures = run(&burst, &Setup::usual(Strategy::Sha1)).unwrap();
    let expected: Vec<u64> = (1..=10).map(|place| place * 14_300 + 101_000).collect();
    assert_eq!(figures.writes_ns, expected);
    let figures = run(&burst, &Setup::usual(Strategy::Ead)).unwrap();
    assert_eq!(figures.writes_ns, [101_000; 10]);
}

#[test]
fn hashes_find_every_duplicate_and_sampling_all_but_the_first_of_each() {
    for original in Original::TRACES {
        let trace = original.make(6_000, BURST_MEAN, 1);
        let mut times: HashMap<u32, u64> = HashMap::new();
        for request in trace.requests.iter().filter(|of| of.direction == Direction::Write) {
            *times.entry(request.content).or_default() += 1;
        }
        let duplicates: u64 = times.values().map(|times| times - 1).sum();
        let without_first: u64 = times.values().map(|times| times.saturating_sub(2)).sum();
        let found = |strategy| run(&trace, &Setup::usual(strategy)).unwrap();
        for strategy in [Strategy::Sha1, Strategy::Sha256, Strategy::Blake2, Strategy::Ead] {
            assert_eq!(found(strategy).duplicates, duplicates, "{original:?} {strategy:?}");
        }
        assert_eq!(found(Strategy::None).duplicates, 0);
        let sampled = found(Strategy::Sampling);
        assert_eq!(sampled.duplicates, without_first, "{original:?}");
        assert_eq!(sampled.hashed, duplicates, "{original:?}");
    }
}

#[test]
fn contents_of_one_code_are_told_apart_and_counted() {
    let mut trace = Original::DATA_SETS[0].make(6_000, BURST_MEAN, 1);
    // Every tenth content has the code of the one before.
    trace.same_codes = (1..10_000).filter(|of| of % 10 == 0).map(|of| (of, of - 1)).collect();
    let (writes, duplicates) = trace.writes();
    let ead = run(&trace, &Setup::usual(Strategy::Ead)).unwrap();
    assert!(ead.cases[2] > 100 && ead.duplicates < duplicates, "{ead:?}");
    assert_eq!(ead.cases.iter().sum::<u64>(), writes);
    assert_eq!(ead.duplicates + ead.programs, writes);
}

#[test]
fn the_same_trace_gives_the_same_figures() {
    let figures = |strategy| {
        let trace = Original::TRACES[1].make(4_000, BURST_MEAN, 7);
        run(&trace, &Setup::usual(strategy)).unwrap()
    };
    for strategy in Strategy::ALL {
        assert_eq!(figures(strategy), figures(strategy));
    }
}

proptest! {
    #[test]
    fn every_request_is_answered_on_a_small_device_that_collects(
        asked in vec((0..3_000_u64, any::<bool>(), 0..3_000_u64, 0..2_000_u32), 1..40),
        strategy in 0..Strategy::ALL.len(),
        distance in 0..4_u64,
        chunks_max in 1..8_usize,
    ) {
        let mut requests = Vec::new();
        for round in 0..300_u64 {
            for &(after, reads, lba, content) in &asked {
                let direction = if reads { Direction::Read } else { Direction::Write };
                // Far enough apart for collections to end: what is not answered yet lives as well.
                let time_ns = round * 20_000_000 + after;
                let (lba, content) = ((lba + round * 7) % 2_000, content + round as u32 % 50);
                requests.push(Request { time_ns, direction, lba, content });
            }
        }
        requests.sort_by_key(|request| request.time_ns);
        let writes = requests.iter().filter(|of| of.direction == Direction::Write).count();
        let mut trace = trace(requests);
        trace.same_codes = (1..3_000).filter(|of| of % 7 == 0).map(|of| (of, of - 1)).collect();
        let setup = Setup {
            geometry: Geometry::small(4_608),
            prefetch: PrefetchSetup { distance, trigger: 0, chunks_max },
            ..Setup::usual(Strategy::ALL[strategy])
        };
        let device = driven(&trace, &setup).unwrap();
        prop_assert!(device.ftl.is_settled(), "a reference was lost, or kept for ever");
        let figures = device.figures;
        prop_assert_eq!(figures.writes_ns.len(), writes);
        prop_assert_eq!(figures.reads_ns.len(), trace.requests.len() - writes);
        prop_assert_eq!(figures.programs + figures.duplicates, writes as u64);
        prop_assert!(figures.moved <= 64 * figures.erases);
    }
}
