use super::{Counted, Operation, count};
use crate::heap;
use crate::store::alone;

/// Else it would say that nobody allocates anything.
#[test]
fn a_profile_without_full_names_is_refused() {
    let profile = |name: &str| {
        let frames = format!(r#""[root]", "0x1: {name} (engine/src/engine.rs:1:2)""#);
        format!(r#"{{"pps": [{{"tb": 8, "tbk": 1, "fs": [1]}}], "ftbl": [{frames}]}}"#)
    };
    let counted = |name| Counted::new(Operation::UniqueWrite, 1, &profile(name));
    assert_eq!(counted("engine::engine::Engine::run").unwrap().allocations, 1);
    let error = counted("run").unwrap_err();
    assert!(error.to_string().contains("--profile counting"), "{error}");
}

/// At toy size, so that the benchmark never rots. A build that counts has counts; what they are is
/// for people to read.
#[test]
fn every_operation_is_done_and_counted() {
    let _alone = alone();
    let folder = std::env::temp_dir().join(format!("tamis-allocations-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let figures = count(2048, 256, 64 << 20, &folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(figures.kinds.len(), Operation::ALL.len());
    let page = figures.to_string();
    for operation in Operation::ALL {
        assert!(page.contains(&format!("\n| {} | ", operation.name())), "{page}");
    }
    for kind in &figures.kinds {
        let sum: u64 = kind.parts.iter().map(|part| part.allocations).sum();
        assert_eq!(kind.allocations, sum);
        assert_eq!(sum > 0, heap::RECORDS, "{page}");
    }
}
