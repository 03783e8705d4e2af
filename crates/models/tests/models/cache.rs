//! What the cache study must say whatever the workload: the laws of caches and of the two designs.

use models::cache::{Design, Figures, PolicyKind, Question, Setup, Sharing, Stream, Study, run};
use traces::{Workload, WorkloadKind};

const USUAL: Setup = Setup {
    design: Design::Plain,
    policy: PolicyKind::Lru,
    sharing: Sharing::Common,
    cached_percent: 2.8,
    filter_bits: 0,
    index_percent: 50,
    locality: false,
    seed: 1,
};

fn stream(kind: WorkloadKind, requests: u64) -> Stream {
    Stream::of_workload(&Workload::new(kind, requests, 1))
}

#[test]
fn a_larger_cache_never_hits_less() {
    for kind in WorkloadKind::ALL {
        let stream = stream(kind, 60_000);
        let of_size = |cached_percent| run(&stream, &Setup { cached_percent, ..USUAL });
        let found = [0.5, 3.0, 6.0, 12.0, 25.0, 50.0, 100.0].map(of_size);
        let grows = |pair: &[Figures]| {
            pair[0].hits <= pair[1].hits && pair[0].all_reads >= pair[1].all_reads
        };
        assert!(found.windows(2).all(grows), "{kind:?}: {found:#?}");
        assert!(found[0].hits < found[6].hits, "{kind:?}: {found:#?}");
        let whole = run(&stream, &Setup { cached_percent: 110.0, ..USUAL });
        assert_eq!((whole.missed, whole.all_reads, whole.all_writes), (0, 0, 0), "{kind:?}");
    }
}

#[test]
fn a_filter_of_no_bits_is_none_and_a_large_one_is_nearly_right() {
    let stream = stream(WorkloadKind::WriteL, 60_000);
    let of_bits = |design, filter_bits| run(&stream, &Setup { design, filter_bits, ..USUAL });
    let none = of_bits(Design::Plain, 0);
    assert_eq!(none.filter_wrong, none.lookups_new, "every new chunk wants its bucket");
    assert_eq!(none.hits + none.missed, none.lookups);
    for design in [Design::Plain, Design::Gathered] {
        let few = of_bits(design, 4).filter_wrong;
        let many = of_bits(design, 16).filter_wrong;
        assert!(of_bits(design, 0).filter_wrong > few && few > many, "{design:?}");
        assert!(many * 200 < none.lookups_new, "{design:?}: {many}");
    }
    // An insertion reads its bucket all the same.
    let some = of_bits(Design::Plain, 10);
    assert_eq!(some.hash_writes, none.hash_writes);
    assert!(some.hash_reads <= none.hash_reads);
}

#[test]
fn a_plain_table_writes_a_page_for_each_new_chunk_and_a_gathered_one_far_less() {
    let stream = stream(WorkloadKind::WriteL, 400_000);
    let per_new = |design, filter_bits| {
        let found = run(&stream, &Setup { design, filter_bits, ..USUAL });
        let writes = (found.hash_writes + found.hash_writes_to_come) as f64;
        (writes / found.new_chunks as f64, found.hash_reads as f64 / found.new_chunks as f64)
    };
    let (writes, reads) = per_new(Design::Plain, 0);
    assert!((0.85..1.1).contains(&writes), "{writes}");
    assert!(reads > 0.9, "{reads}");
    let (writes, reads_gathered) = per_new(Design::Gathered, 10);
    assert!(writes < 0.12, "{writes}");
    assert!(reads_gathered < reads / 2.0, "{reads_gathered}");
}

#[test]
fn a_study_follows_from_its_seed_and_not_from_its_threads() {
    let streams = [stream(WorkloadKind::WriteH, 4_000), stream(WorkloadKind::ReadMixed, 4_000)];
    let study = |seed, jobs| {
        let study = Study::run(&streams, None, seed, jobs, |done, all| assert!(done <= all));
        serde_json::to_string(&study).unwrap()
    };
    let first = study(1, 1);
    assert_eq!(first, study(1, 2));
    assert_ne!(first, study(2, 1));
}

#[test]
fn every_question_is_answered() {
    let streams = [stream(WorkloadKind::WriteM, 20_000)];
    let study = Study::run(&streams, None, 1, 2, |_, _| ());
    for question in Question::ALL {
        assert!(study.runs.iter().any(|run| run.question == question), "{question:?}");
    }
    for record in &study.runs {
        assert!((0.0..=100.0).contains(&record.hit_percent), "{record:?}");
        assert!(record.hash_reads_per_write <= record.all_reads_per_write, "{record:?}");
        let columns = record.csv().split(',').count();
        assert_eq!(columns, models::cache::Record::CSV_HEADING.split(',').count());
    }
    let text = study.to_string();
    let plots = study.plots().unwrap();
    for policy in PolicyKind::ALL {
        let named = format!("\n{}\n", policy.name());
        let drawn = plots.iter().filter(|(_, svg)| svg.contains(&named)).count();
        assert_eq!(drawn, 2, "{policy:?}: hits of one workload, and fairness");
        assert!(text.contains(policy.name()), "{policy:?}");
    }
    assert!(plots.iter().all(|(_, svg)| svg.starts_with("<svg") && !svg.contains("NaN")));
    let hot = &study.hot_buckets[0];
    assert!(hot.hottest_1_percent >= 1.0 && hot.hottest_10_percent > hot.hottest_1_percent);
}
