//! One version of each dependency: two of the same crate are twice the code and twice the bugs.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::workspace::Package;

/// Crates that may stand twice in the graph, each with the reason that ends with its cause.
const ALLOWED_TWICE: [(&str, &str); 3] = [
    ("crypto-common", "crc-fast 1.10 offers traits of digest 0.10, which nobody here uses"),
    ("digest", "crc-fast 1.10 offers its traits, which nobody here uses"),
    (
        "syn",
        "macros of the crates below s3s are at 2, those of serde and clap at 3; no program has it",
    ),
];

/// Every dependency that is in the graph in more than one version.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    check_against(packages, &ALLOWED_TWICE)
}

fn check_against(packages: &[Package], allowed: &[(&str, &str)]) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let mut findings = Vec::new();
    for (name, versions) in &versions {
        if !allowed.iter().any(|(other, _)| other == name) {
            let message = format!("`{name}` is here as {}: agree on one", versions.join(" and "));
            findings.push(Finding::of("Cargo.lock", message));
        }
    }
    for (name, _) in allowed.iter().filter(|(name, _)| !versions.contains_key(name)) {
        let message = format!("`{name}` is allowed twice but stands there once: remove the line");
        findings.push(Finding::of("xtask/src/tidy/versions.rs", message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check_against;
    use crate::tidy::workspace::Package;

    fn package(name: &str, version: &str) -> Package {
        Package { name: name.to_owned(), version: version.to_owned(), ..Package::default() }
    }

    #[test]
    fn two_versions_of_one_crate_are_found() {
        let packages =
            [package("zstd", "0.13.4"), package("zstd", "0.14.3"), package("a", "1.0.0")];
        let findings = check_against(&packages, &[]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("0.13.4 and 0.14.3"));
        assert_eq!(check_against(&packages, &[("zstd", "a rival needs the old one")]), []);
    }

    #[test]
    fn an_exception_that_is_no_longer_needed_is_found() {
        assert_eq!(check_against(&[package("a", "1.0.0")], &[("a", "why")]).len(), 1);
    }
}
