//! Who may import whom: the arrows between rooms, in one table.
//!
//! The arrow points down only and siblings never name each other (`docs/design/architecture.md`).
//! Cargo already forbids circles; this table forbids every edge that nobody decided on.
//! Dependencies of tests count as well: a test that needs two rooms belongs to `lab`.

use super::finding::Finding;
use super::workspace::Package;

/// Each room with the rooms it may import, from the bottom up.
const ARROWS: [(&str, &[&str]); 38] = [
    ("mutants", &[]),
    ("format", &[]),
    ("threads", &[]),
    ("disk", &["threads", "format"]),
    ("reduce", &["threads", "format"]),
    ("accelerator", &["reduce", "format"]),
    ("tables", &["disk", "format", "mutants"]),
    ("journal", &["disk", "format", "mutants"]),
    ("containers", &["disk", "format", "mutants"]),
    (
        "engine",
        &[
            "accelerator",
            "tables",
            "journal",
            "containers",
            "reduce",
            "disk",
            "threads",
            "format",
            "mutants",
        ],
    ),
    ("images", &[]),
    ("estimate", &["images", "reduce", "format"]),
    ("traces", &[]),
    ("charts", &[]),
    ("plan", &["charts", "reduce", "format"]),
    ("store", &["engine", "disk", "threads", "format"]),
    ("segments", &[]),
    ("parquet_footer", &["segments"]),
    ("objects", &["segments", "store", "format", "mutants"]),
    ("replication", &["objects", "store", "format", "mutants"]),
    ("buckets", &["replication", "segments", "objects", "store", "engine", "format"]),
    ("replicas", &["buckets", "replication", "objects", "store", "engine"]),
    ("accounts", &[]),
    ("tenants", &["accounts"]),
    ("memcached", &[]),
    ("items", &["memcached", "buckets", "objects", "store", "format"]),
    ("door", &["store", "engine", "disk", "threads", "format"]),
    ("nbd", &["door", "store", "engine", "disk", "threads", "format"]),
    (
        "admin",
        &[
            "replication",
            "segments",
            "buckets",
            "tenants",
            "objects",
            "store",
            "engine",
            "disk",
            "threads",
            "format",
        ],
    ),
    ("memcached_door", &["items", "tenants", "memcached", "buckets", "accounts"]),
    (
        "s3",
        &[
            "parquet_footer",
            "buckets",
            "objects",
            "accounts",
            "tenants",
            "store",
            "engine",
            "format",
            "threads",
        ],
    ),
    (
        "lab",
        &[
            "replication",
            "objects",
            "segments",
            "store",
            "engine",
            "tables",
            "journal",
            "containers",
            "reduce",
            "disk",
            "threads",
            "format",
            "mutants",
        ],
    ),
    (
        "models",
        &[
            "charts",
            "traces",
            "segments",
            "accelerator",
            "store",
            "engine",
            "tables",
            "journal",
            "containers",
            "reduce",
            "disk",
            "threads",
            "format",
            "mutants",
        ],
    ),
    ("cosim", &["models", "store", "engine", "reduce"]),
    (
        "cli",
        &[
            "replicas",
            "memcached_door",
            "items",
            "tenants",
            "s3",
            "nbd",
            "door",
            "admin",
            "buckets",
            "objects",
            "accounts",
            "store",
            "charts",
            "traces",
            "estimate",
            "plan",
            "images",
            "engine",
            "disk",
            "threads",
            "format",
        ],
    ),
    (
        "bench",
        &[
            "charts",
            "nbd",
            "door",
            "store",
            "engine",
            "tables",
            "journal",
            "containers",
            "reduce",
            "disk",
            "threads",
            "format",
        ],
    ),
    ("python", &["segments", "buckets", "objects", "store", "engine", "format"]),
    ("xtask", &[]),
];

/// Rooms that know no form in which doors speak of them: JSON belongs to `admin` and above.
const WITHOUT_SERDE: [&str; 9] =
    ["format", "disk", "reduce", "accelerator", "tables", "journal", "containers", "engine", "nbd"];

/// Every edge between our own packages that the table does not name.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    let ours: Vec<&Package> = packages.iter().filter(|package| package.ours).collect();
    let mut findings = Vec::new();
    for package in &ours {
        let Some((_, allowed)) = ARROWS.iter().find(|(room, _)| *room == package.name) else {
            let message =
                format!("room `{}` is not in the table of arrows (arrows.rs)", package.name);
            findings.push(Finding::of(manifest(package), message));
            continue;
        };
        if WITHOUT_SERDE.contains(&package.name.as_str())
            && package.dependencies.iter().any(|name| name == "serde")
        {
            let message = format!("`{}` must not import `serde`: forms are admin's", package.name);
            findings.push(Finding::of(manifest(package), message));
        }
        let rooms = package.dependencies.iter().filter(|name| is_room(&ours, name));
        for room in rooms.filter(|name| !allowed.contains(&name.as_str())) {
            let message = format!("`{}` must not import `{room}` (arrows.rs)", package.name);
            findings.push(Finding::of(manifest(package), message));
        }
    }
    findings
}

fn is_room(ours: &[&Package], name: &str) -> bool {
    ours.iter().any(|package| package.name == name)
}

fn manifest(package: &Package) -> String {
    match package.name.as_str() {
        "xtask" => "xtask/Cargo.toml".to_owned(),
        room => format!("crates/{room}/Cargo.toml"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ARROWS, check};
    use crate::tidy::workspace::Package;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies.iter().map(|name| (*name).to_owned()).collect();
        Package { name: name.to_owned(), ours: true, dependencies, ..Package::default() }
    }

    #[test]
    fn an_arrow_up_or_sideways_is_found() {
        let good = [package("format", &[]), package("disk", &["format", "rustix"])];
        assert_eq!(check(&good), []);
        let bad = [
            package("journal", &["tables"]),
            package("tables", &["engine"]),
            package("engine", &[]),
        ];
        let found: Vec<String> = check(&bad).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`journal` must not import `tables`"));
    }

    #[test]
    fn serde_in_the_engine_is_found() {
        assert_eq!(check(&[package("engine", &["serde"])]).len(), 1);
        assert_eq!(check(&[package("admin", &["serde"])]), []);
    }

    #[test]
    fn a_room_nobody_decided_on_is_found() {
        assert_eq!(check(&[package("utilities", &[])]).len(), 1);
    }

    #[test]
    fn the_table_itself_points_down_only() {
        for (index, (room, below)) in ARROWS.iter().enumerate() {
            for name in *below {
                let place = ARROWS.iter().position(|(other, _)| other == name);
                assert!(place.is_some_and(|place| place < index), "{room} > {name}");
            }
        }
    }
}
