//! Which file declares which: `mod name;` lines followed to the files they name.
//!
//! Two checks live on it: a file nobody declares is dead, and a file declared under `#[cfg(test)]`
//! is a test whatever it is called.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::source::{SourceFile, is_word};

/// A `mod name;` line.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Declaration {
    name: String,
    test: bool,
}

/// Every file that no root reaches: Cargo would silently not compile it.
pub(crate) fn unreached(sources: &[SourceFile]) -> Vec<Finding> {
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    let mut queue: Vec<&SourceFile> = sources.iter().filter(|file| is_root(&file.path)).collect();
    while let Some(file) = queue.pop() {
        if reached.insert(file.path.clone()) {
            queue.extend(children(file, sources).into_iter().map(|(child, _)| child));
        }
    }
    let dead = sources.iter().filter(|file| !reached.contains(&file.path));
    dead.map(|file| {
        Finding::of(&file.path, "no `mod` line reaches this file: declare it or delete it")
    })
    .collect()
}

/// Marks the files declared under `#[cfg(test)]`, and all they declare, as tests.
pub(crate) fn mark_test_files(sources: &mut [SourceFile]) {
    loop {
        let found: BTreeSet<PathBuf> = sources
            .iter()
            .flat_map(|file| children(file, sources))
            .filter(|(child, test)| *test && !child.is_test())
            .map(|(child, _)| child.path.clone())
            .collect();
        if found.is_empty() {
            return;
        }
        for file in sources.iter_mut().filter(|file| found.contains(&file.path)) {
            file.make_test();
        }
    }
}

/// The files that `file` declares, and whether it does so in a test.
fn children<'a>(file: &SourceFile, sources: &'a [SourceFile]) -> Vec<(&'a SourceFile, bool)> {
    let folder = child_folder(&file.path);
    let mut children = Vec::new();
    for declaration in declarations(file) {
        let places = [
            folder.join(format!("{}.rs", declaration.name)),
            folder.join(&declaration.name).join("mod.rs"),
        ];
        let child = sources.iter().find(|other| places.contains(&other.path));
        children.extend(child.map(|child| (child, declaration.test)));
    }
    children
}

fn declarations(file: &SourceFile) -> Vec<Declaration> {
    let whole_file = file.is_test() && !file.tests.is_empty();
    file.lines()
        .filter_map(|line| {
            let (before, after) = line.code.split_once("mod ")?;
            let name: String = after.chars().take_while(|character| is_word(*character)).collect();
            let ends = after.get(name.len()..)?.trim_start().starts_with(';');
            let opens = !before.chars().next_back().is_some_and(is_word);
            (ends && opens).then_some(Declaration { name, test: line.test || whole_file })
        })
        .collect()
}

/// Where the files a module declares lie: beside a root or `mod.rs`, else in a folder of its name.
fn child_folder(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let is_mod = path.file_name().is_some_and(|name| name == "mod.rs");
    if is_mod || is_root(path) { folder } else { path.with_extension("") }
}

/// Is `path` where Cargo starts to read a target.
fn is_root(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let inside = if parts.first() == Some(&"crates") { parts.get(2..) } else { parts.get(1..) };
    match inside.unwrap_or(&[]) {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", _] | ["src", "bin", _, "main.rs"] => true,
        ["tests" | "benches" | "examples" | "fuzz_targets", file] => file.ends_with(".rs"),
        ["tests" | "benches" | "examples", _, "main.rs"] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{mark_test_files, unreached};
    use crate::tidy::source::SourceFile;

    #[test]
    fn a_file_without_a_mod_line_is_found() {
        let sources = [
            SourceFile::new("crates/x/src/lib.rs", "mod a;\n// mod dead;\n"),
            SourceFile::new("crates/x/src/a.rs", "pub(crate) mod b;\n"),
            SourceFile::new("crates/x/src/a/b.rs", "fn f() {}\n"),
            SourceFile::new("crates/x/src/dead.rs", "fn f() {}\n"),
            SourceFile::new("crates/x/tests/whole.rs", "mod model;\n"),
            SourceFile::new("crates/x/tests/model/mod.rs", "fn f() {}\n"),
        ];
        let findings = unreached(&sources);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].path.ends_with("dead.rs"));
    }

    #[test]
    fn what_a_test_declares_is_a_test() {
        let mut sources = [
            SourceFile::new("crates/x/src/lib.rs", "#[cfg(test)]\nmod model;\nmod a;\n"),
            SourceFile::new("crates/x/src/model.rs", "mod deep;\n"),
            SourceFile::new("crates/x/src/model/deep.rs", "fn f() {}\n"),
            SourceFile::new("crates/x/src/a.rs", "fn f() {}\n"),
        ];
        mark_test_files(&mut sources);
        let tests: Vec<bool> = sources.iter().map(SourceFile::is_test).collect();
        assert_eq!(tests, [false, true, true, false]);
    }
}
