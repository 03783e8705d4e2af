//! A store is driven by traces and workloads, and finds in them what is there.

use std::fs;

use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Folder, command, tamis};

const BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces/blocks.trace");
const SECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces/sectors.trace");

/// The only run of a replay whose store is made in `folder`.
fn replay(folder: &Folder, words: &str) -> Value {
    let dir = folder.path("");
    let line = format!("replay {words} --dir {dir} --memory 64M --verify --json");
    let report = tamis(&line).ok().json();
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "the store is gone");
    report["runs"][0].clone()
}

#[test]
fn traces_of_both_forms_come_back_as_they_were_written() {
    let folder = Folder::new();
    let blocks = replay(&folder, &format!("{BLOCKS} --capacity 64M"));
    assert_eq!((&blocks["writes"], &blocks["reads"]), (&5.into(), &5.into()));
    assert_eq!(
        (&blocks["skipped"]["tar_lines"], &blocks["skipped"]["bad_lines"]),
        (&2.into(), &0.into())
    );
    let found = &blocks["duplicates"];
    assert_eq!((&found["unique_stored"], &found["unique_written"]), (&4.into(), &4.into()));
    assert_eq!(found["source_duplicate_ratio"], 0.2);
    // The block of zeros, and all that was read before the trace wrote it.
    assert_eq!(found["chunks_zero"], 1);
    assert_eq!(blocks["compared"]["right_bytes"], 5 * 4096);
    assert_eq!(blocks["verified"]["right_bytes"], 5 * 4096);

    let sectors = replay(&folder, &format!("{SECTORS} --capacity 64M"));
    let found = &sectors["duplicates"];
    assert_eq!((&found["unique_stored"], &found["unique_written"]), (&4.into(), &4.into()));
    assert_eq!((&found["chunks_duplicate"], &sectors["written_bytes"]), (&1.into(), &22528.into()));
    assert_eq!(sectors["compared"]["right_bytes"], 4 * 4096);
    assert_eq!(sectors["verified"]["right_bytes"], 5 * 4096);

    let text = tamis(&format!("replay {BLOCKS} --capacity 64M --dir {}", folder.path(""))).ok();
    assert!(text.out.contains("2 lines are of tar"), "{text:?}");
    assert!(text.out.contains("4 are in the source"), "{text:?}");
}

#[test]
fn workloads_are_found_to_be_what_they_are() {
    let folder = Folder::new();
    for (workload, share) in
        [("write-h", 0.88), ("write-m", 0.84), ("write-l", 0.431), ("read-mixed", 0.88)]
    {
        let run = replay(&folder, &format!("--workload {workload} --requests 4000 --seed 3"));
        let found = &run["duplicates"];
        assert_eq!(found["unique_stored"], found["unique_written"]);
        let looked_up = run["tables"]["hash_pbn"]["lookups"].as_u64().unwrap();
        assert_eq!(looked_up, run["writes"].as_u64().unwrap());
        for found in [&found["duplicate_ratio"], &found["source_duplicate_ratio"]] {
            assert!((found.as_f64().unwrap() - share).abs() < 0.005, "{workload}: {found}");
        }
        let writes = run["writes"].as_u64().unwrap();
        assert_eq!(run["verified"]["right_bytes"], writes * 4096);
        assert_eq!(run["compared"]["right_bytes"], (4000 - writes) * 4096);
        assert!(run["core_ns_per_chunk"].as_f64().unwrap() > 0.0);
    }
}

/// What a request buffer gathers leaves it in another order, and merged.
#[test]
fn a_request_buffer_changes_no_truth() {
    let folder = Folder::new();
    let run = replay(&folder, "--workload read-mixed --requests 4000 --request-buffer 256K");
    let found = &run["duplicates"];
    assert_eq!((&found["unique_stored"], &found["unique_written"]), (&240.into(), &240.into()));
    assert_eq!(run["compared"]["right_bytes"], 2000 * 4096);
    assert_eq!(run["verified"]["right_bytes"], 2000 * 4096);
}

#[test]
fn a_workload_is_the_same_as_a_trace() {
    let folder = Folder::new();
    let traces = Folder::new();
    let trace = traces.path("write-m.trace");
    let words = "--workload write-m --requests 3000 --seed 9";
    tamis(&format!("replay {words} --to {trace}")).ok();
    tamis(&format!("replay {words} --to {trace}")).fails(7, "exists already");
    let (made, read) =
        (replay(&folder, words), replay(&folder, &format!("{trace} --capacity 64M")));
    assert_eq!(made["duplicates"], read["duplicates"]);
    assert_eq!(made["verified"], read["verified"]);
    let part = replay(&folder, &format!("{trace} --requests 1000 --capacity 64M"));
    assert_eq!(part["writes"], 1000);
}

#[test]
fn large_chunks_lose_duplicates_and_are_read_back() {
    let folder = Folder::new();
    let traces = Folder::new();
    let trace = traces.path("scattered.trace");
    // Blocks all over the place, most of them twice.
    let line = |number: u64| {
        format!("1 1 x {} 8 W 6 0 {:032x}\n", number * 7919 % 4096 * 8, number % 3000)
    };
    fs::write(&trace, (0..8000).map(line).collect::<String>()).unwrap();
    let dir = folder.path("");
    let words = format!("--capacity 256M --dir {dir} --request-buffer 256K --memory 64M");
    let report = tamis(&format!("replay {trace} --chunk-size 4K,32K {words} --json")).ok().json();
    let runs = report["runs"].as_array().unwrap();
    let figure = |run: usize, name: &str| runs[run]["read_modify_write"][name].as_f64().unwrap();
    assert_eq!(figure(0, "chunks_read_back"), 0.0);
    assert!(figure(0, "amplification") < 1.0);
    assert!(figure(1, "chunks_read_back") > 500.0, "{runs:?}");
    assert!(figure(1, "amplification") > 5.0 * figure(0, "amplification"), "{runs:?}");
    for run in runs {
        assert_eq!(run["duplicates"]["unique_stored"], run["duplicates"]["unique_written"]);
    }
    let text = tamis(&format!("replay {trace} --chunk-size 4K,32K {words}")).ok();
    assert!(text.out.contains("AMPLIFICATION"), "{text:?}");
    tamis("replay - --chunk-size 4K,8K").fails(2, "put it into a file");
}

#[test]
fn a_store_that_is_there_keeps_the_volume() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let line = format!("replay {BLOCKS} --store {store} --volume day --memory 64M");
    tamis(&line).ok();
    let shown = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(shown["volumes"][0]["name"], "day");
    assert_eq!(shown["volumes"][0]["size_bytes"], (508_520_000_u64 + 8) * 512);
    tamis(&line).fails(7, "a volume day exists");
    let told = tamis(&line.replace("day", "next")).ok().out;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(" stored, those of other volumes too; 4 are in the source"), "{told}");
    tamis("replay").fails(2, "--workload <NAME>");
}

#[test]
fn what_is_no_trace_is_said_to_be_none() {
    let folder = Folder::new();
    let path = folder.path("text");
    fs::write(&path, "no trace\nat all\n").unwrap();
    let line = format!("replay {path} --capacity 64M --dir {}", folder.path(""));
    tamis(&line).fails(2, "line 1, it has 2 fields where a request has 9");
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1, "the store is gone");
    tamis("replay nowhere.trace").fails(3, "nowhere.trace");
}

#[test]
fn a_reader_that_leaves_in_the_middle_of_a_trace_is_no_failure() {
    let mut line =
        command(["replay", "--workload", "write-h", "--requests", "200000", "--to", "-"]);
    let mut child = line.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
