//! What the flash study must say whatever the seed: orders and sums, not figures.

use models::flash::{Latency, Part, Row, Strategy, Study, Trace};

fn study(seed: u64) -> Study {
    Study::of_made(2_000, seed, Latency::EAD, |_| {}).unwrap()
}

fn of(study: &Study, part: Part, strategy: Strategy) -> Vec<&Row> {
    let is_meant = |row: &&Row| row.part == part && row.strategy == strategy;
    study.rows.iter().filter(is_meant).collect()
}

#[test]
fn ead_finds_what_sha1_finds_and_is_faster_and_sampling_finds_less() {
    for seed in [1, 2] {
        let study = study(seed);
        let runs = |strategy| of(&study, Part::Strategies, strategy);
        let (ead, sampling) = (runs(Strategy::Ead), runs(Strategy::Sampling));
        for (place, sha1) in runs(Strategy::Sha1).into_iter().enumerate() {
            assert!((sha1.duplicate_percent - ead[place].duplicate_percent).abs() <= 0.2);
            assert!(sampling[place].duplicate_percent < sha1.duplicate_percent - 1.0);
            assert!(ead[place].write_us < sha1.write_us);
            assert!(sha1.write_us < runs(Strategy::Sha256)[place].write_us);
            assert!(runs(Strategy::Blake2)[place].write_us < sha1.write_us);
        }
        for row in of(&study, Part::Prefetch, Strategy::Ead) {
            let sum: f64 = row.case_percent.iter().sum();
            assert!((sum - 100.0).abs() < 1e-6, "{row:?}");
            assert!(row.trace_duplicate_percent - row.duplicate_percent <= 0.5, "{row:?}");
        }
    }
}

#[test]
fn a_device_that_writes_less_collects_less() {
    let study = study(1);
    let moved = |strategy| {
        let runs = of(&study, Part::Collections, strategy);
        runs.iter().map(|row| row.figures.moved + row.figures.programs).sum::<u64>()
    };
    assert!(moved(Strategy::Ead) < moved(Strategy::None));
    assert!(of(&study, Part::Strategies, Strategy::None).iter().all(|row| row.figures.erases == 0));
}

#[test]
fn the_same_seed_tells_the_same_as_text_lines_and_plots() {
    let (first, second) = (study(3), study(3));
    assert_eq!(first.to_string(), second.to_string());
    let columns = Row::CSV_HEADING.split(',').count();
    assert!(first.rows.iter().all(|row| row.csv().split(',').count() == columns));
    let plots = first.plots().unwrap();
    assert_eq!(plots.len(), 4);
    assert!(plots.iter().all(|(_, svg)| svg.starts_with("<svg") && svg.ends_with("</svg>\n")));
}

#[test]
fn a_trace_of_fiu_is_run_at_its_own_times() {
    let line = |time: u64, lba: u64, digest: u64| {
        format!("{time} 1 nfsd {} 8 W 6 0 {digest:032x}\n", lba * 8)
    };
    let text: String = (0..60).map(|of| line(of * 1_000_000, of, of % 20)).collect();
    let trace = Trace::of_fiu(text.as_bytes(), "a, b", 100).unwrap();
    let study = Study::of_trace(&trace, Latency::EAD).unwrap();
    assert_eq!(study.rows.len(), Strategy::ALL.len());
    let found = |strategy| of(&study, Part::Strategies, strategy)[0].figures.duplicates;
    assert_eq!([Strategy::Sha1, Strategy::Ead, Strategy::Sampling].map(found), [40, 40, 20]);
    assert!(study.to_string().contains("a, b") && !study.to_string().contains("Table 5"));
}
