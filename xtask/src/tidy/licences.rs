//! Only permissive licences come in: what we ship must be usable by anyone under Apache-2.0.

use super::finding::Finding;
use super::workspace::Package;

/// SPDX names of the licences we take.
const PERMISSIVE: [&str; 15] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Zlib",
    // That of bzip2: BSD's with other words.
    "bzip2-1.0.6",
    "BSL-1.0",
    "CC0-1.0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
];

/// Every package whose licence gives us no permissive choice.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    packages.iter().filter_map(check_package).collect()
}

fn check_package(package: &Package) -> Option<Finding> {
    let message = match &package.license {
        Some(license) if is_permissive(license) => return None,
        Some(license) => format!("{} {} is under `{license}`", package.name, package.version),
        None => format!("{} {} names no licence", package.name, package.version),
    };
    Some(Finding::of("Cargo.lock", message))
}

/// Does the SPDX expression leave a way to use the work under permissive terms alone.
fn is_permissive(expression: &str) -> bool {
    // Old manifests write `MIT/Apache-2.0` for `MIT OR Apache-2.0`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let permissive = any_of(&words, &mut at);
    permissive && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize) -> bool {
    let mut permissive = all_of(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        permissive |= all_of(words, at);
    }
    permissive
}

fn all_of(words: &[&str], at: &mut usize) -> bool {
    let mut permissive = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        permissive &= one(words, at);
    }
    permissive
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let permissive = any_of(words, at);
        let closes = words.get(*at) == Some(&")");
        *at += 1;
        return permissive && closes;
    }
    if words.get(*at) == Some(&"WITH") {
        let name = format!("{word} WITH {}", words.get(*at + 1).copied().unwrap_or_default());
        *at += 2;
        return PERMISSIVE.contains(&name.as_str());
    }
    PERMISSIVE.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::{check, is_permissive};
    use crate::tidy::workspace::Package;

    #[test]
    fn expressions_are_read_as_choices_and_duties() {
        assert!(is_permissive("MIT"));
        assert!(is_permissive("MIT/Apache-2.0"));
        assert!(is_permissive("GPL-3.0-only OR MIT"));
        assert!(is_permissive("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(is_permissive("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only"));
        assert!(!is_permissive("GPL-3.0-only"));
        assert!(!is_permissive("MIT AND LGPL-2.1-only"));
        assert!(!is_permissive("(MIT"));
        assert!(!is_permissive(""));
    }

    #[test]
    fn a_package_without_a_permissive_licence_is_found() {
        let named = |license: Option<&str>| Package {
            license: license.map(str::to_owned),
            ..Package::default()
        };
        assert_eq!(check(&[named(Some("MIT"))]), []);
        assert_eq!(check(&[named(Some("SSPL-1.0")), named(None)]).len(), 2);
    }
}
