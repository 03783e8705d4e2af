//! `tamis plan`: what it says follows from what it was asked; what cannot be planned is refused.

use serde_json::Value;

use crate::harness::{Folder, tamis};

fn plan(line: &str) -> Value {
    tamis(&format!("plan {line} --json")).ok().json()
}

#[test]
fn a_plan_scales_with_what_was_asked_for() {
    let cores = |line: &str| plan(line)["plans"][0]["needs"]["cores"].as_f64().unwrap();
    let one = cores("--throughput 1G");
    assert!((cores("--throughput 2G") / one - 2.0).abs() < 1e-9);
    assert!(cores("--throughput 1G --duplicates 90") < one);
    let bounded = plan("--throughput 1G --device-writes 10M --reads 0");
    assert_eq!(bounded["plans"][0]["carried"][6]["bottleneck"], "data_writes");
}

#[test]
fn prices_come_from_a_file_and_wrong_ones_are_refused() {
    let folder = Folder::new();
    let path = folder.path("prices.json");
    std::fs::write(&path, r#"{"ssd_dollars_per_gb": 1}"#).unwrap();
    let report = plan(&format!("--throughput 1G --capacity 1T --prices {path}"));
    let without = report["plans"][0]["bill"]["without_dollars"].as_f64().unwrap();
    assert!((without - 1_099.511_627_776).abs() < 1e-6, "{without}");
    for wrong in [r#"{"ssd": 1}"#, r#"{"core_dollars": -1}"#, "1, 2"] {
        std::fs::write(&path, wrong).unwrap();
        tamis(&format!("plan --throughput 1G --prices {path}")).fails(2, "holds no prices");
    }
    tamis("plan --throughput 1G --prices /nowhere/prices").fails(3, "/nowhere/prices");
}

#[test]
fn shares_come_from_files_and_a_plot_is_drawn() {
    let folder = Folder::new();
    let (data, svg) = (folder.path("data"), folder.path("plan.svg"));
    let chunk: Vec<u8> =
        (0..4096_u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&data, chunk.repeat(4)).unwrap();
    let report = plan(&format!("{data} --throughput 1G --plot {svg}"));
    assert_eq!(report["demand"]["duplicate_ratio"], 0.75);
    assert!(std::fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    std::fs::write(&data, [0; 4096]).unwrap();
    tamis(&format!("plan {data} --throughput 1G")).fails(2, "no data");
}
