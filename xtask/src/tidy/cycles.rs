//! No circles between the files of a crate.
//!
//! An edge is a path in product code that begins with `crate`, `super` or `self`, or a private
//! `use` of a child module, followed through re-exports to the file that holds the item. That is an
//! approximation read from text: a method call on an imported type leaves no trace, and so a type
//! whose `impl` is spread over child files is no circle. What is reported is one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::paths::{CodePath, in_uses, with_heads};
use super::ratchet::Excess;
use super::source::{SourceFile, line_index};

/// How often a name may be re-exported on its way before we stop following it.
const REEXPORTS_MAX: usize = 8;

type ModulePath = Vec<String>;
/// Each file with those that it needs.
pub(super) type Edges<'a> = BTreeMap<&'a Path, BTreeSet<&'a Path>>;

/// Every set of files of one crate that import each other in a circle.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Excess> {
    let mut crates: BTreeMap<PathBuf, Vec<&SourceFile>> = BTreeMap::new();
    for file in sources.iter().filter(|file| !file.is_test() || file.tests.is_empty()) {
        if let Some((folder, _)) = module_path(&file.path) {
            crates.entry(folder).or_default().push(file);
        }
    }
    crates.values().flat_map(|files| check_crate(files)).collect()
}

fn check_crate(files: &[&SourceFile]) -> Vec<Excess> {
    let map = ModuleMap::new(files);
    let edges: Edges<'_> =
        files.iter().map(|file| (file.path.as_path(), map.imports(file))).collect();
    let excess = |circle: BTreeSet<&Path>| {
        let start = circle.first()?;
        Some(Excess {
            path: start.to_path_buf(),
            line: 0,
            place: format!("{}::circle", start.display()),
            amount: circle.len(),
            message: describe(&circle, &edges),
        })
    };
    circles(&edges).into_iter().filter_map(excess).collect()
}

/// Every set of files between which there is a way in both directions.
pub(super) fn circles<'a>(edges: &Edges<'a>) -> Vec<BTreeSet<&'a Path>> {
    let mut circles: Vec<BTreeSet<&Path>> = Vec::new();
    for &start in edges.keys() {
        let forward = reachable(edges, start);
        if circles.iter().any(|circle| circle.contains(start)) || !forward.contains(start) {
            continue;
        }
        let back = |other: &&Path| reachable(edges, other).contains(start);
        circles.push(forward.into_iter().filter(back).collect());
    }
    circles
}

fn describe(circle: &BTreeSet<&Path>, edges: &Edges<'_>) -> String {
    let shortest = circle.iter().filter_map(|start| way_round(start, edges)).min_by_key(Vec::len);
    let way: Vec<String> =
        shortest.into_iter().flatten().map(|path| path.display().to_string()).collect();
    let way = way.join(" > ");
    format!("{} files import each other in a circle; the shortest is {way}", circle.len())
}

/// The shortest way from `start` back to it.
fn way_round<'a>(start: &'a Path, edges: &Edges<'a>) -> Option<Vec<&'a Path>> {
    let mut came_from: BTreeMap<&Path, &Path> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for next in edges.get(at).into_iter().flatten() {
            if came_from.contains_key(next) {
                continue;
            }
            came_from.insert(next, at);
            queue.push_back(next);
        }
    }
    let mut way = vec![start];
    let mut at = *came_from.get(start)?;
    while at != start {
        way.push(at);
        at = came_from.get(at)?;
    }
    way.push(start);
    way.reverse();
    Some(way)
}

fn reachable<'a>(edges: &Edges<'a>, from: &Path) -> BTreeSet<&'a Path> {
    let mut seen = BTreeSet::new();
    let mut queue: Vec<&Path> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(next) = queue.pop() {
        if seen.insert(next) {
            queue.extend(edges.get(next).into_iter().flatten().copied());
        }
    }
    seen
}

/// The crate's `src` folder and the module that `path` holds: none for binaries beside a library.
fn module_path(path: &Path) -> Option<(PathBuf, ModulePath)> {
    let folder = path.ancestors().find(|folder| folder.ends_with("src"))?;
    let inside = path.strip_prefix(folder).ok()?.with_extension("");
    let mut parts: ModulePath =
        inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.first().is_some_and(|first| first == "bin") {
        return None;
    }
    let is_root = parts.len() == 1 && matches!(parts.first()?.as_str(), "lib" | "main");
    if is_root || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    Some((folder.to_path_buf(), parts))
}

/// The modules of one crate, each with what it passes on under its own name.
struct ModuleMap<'a> {
    files: BTreeMap<ModulePath, &'a SourceFile>,
    passed_on: BTreeMap<ModulePath, Vec<CodePath>>,
}

impl<'a> ModuleMap<'a> {
    fn new(files: &[&'a SourceFile]) -> ModuleMap<'a> {
        let mut map = ModuleMap { files: BTreeMap::new(), passed_on: BTreeMap::new() };
        for file in files {
            if let Some((_, module)) = module_path(&file.path) {
                map.passed_on.insert(module.clone(), in_uses(&file.code, true));
                map.files.insert(module, file);
            }
        }
        map
    }

    /// The other files whose items `file` names in product code.
    fn imports(&self, file: &SourceFile) -> BTreeSet<&'a Path> {
        let Some((_, module)) = module_path(&file.path) else { return BTreeSet::new() };
        let mut paths = with_heads(&file.code, &["crate", "super", "self"]);
        paths.extend(in_uses(&file.code, false));
        let public: BTreeSet<usize> =
            in_uses(&file.code, true).iter().map(|path| path.at).collect();
        paths.retain(|path| !public.contains(&path.at) && !self.in_test(file, path.at));
        let targets = paths.iter().filter_map(|path| self.resolve(&module, &path.segments, 0));
        let targets = targets.filter_map(|module| self.files.get(&module));
        targets.map(|target| target.path.as_path()).filter(|path| *path != file.path).collect()
    }

    fn in_test(&self, file: &SourceFile, at: usize) -> bool {
        file.tests.get(line_index(&file.code, at)).copied().unwrap_or(false)
    }

    /// The module that holds the item which `module` calls by `segments`.
    fn resolve(&self, module: &[String], segments: &[String], hops: usize) -> Option<ModulePath> {
        let mut at = module.to_vec();
        let mut segments = segments.iter();
        let mut relative = true;
        for segment in segments.by_ref() {
            match segment.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                name => {
                    let child = joined(&at, name);
                    if self.files.contains_key(&child) {
                        at = child;
                    } else {
                        // A first word that is no child module is another crate's.
                        return if relative { None } else { self.item(at, name, hops) };
                    }
                }
            }
            relative = false;
        }
        Some(at)
    }

    fn item(&self, module: ModulePath, name: &str, hops: usize) -> Option<ModulePath> {
        let passed_on = self.passed_on.get(&module);
        let via = passed_on.into_iter().flatten().find(|path| path.name == name);
        match via {
            Some(path) if hops < REEXPORTS_MAX => self.resolve(&module, &path.segments, hops + 1),
            _ => Some(module),
        }
    }
}

fn joined(module: &[String], name: &str) -> ModulePath {
    let mut child = module.to_vec();
    child.push(name.to_owned());
    child
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::source::SourceFile;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile::new(format!("crates/x/src/{path}"), text)
    }

    #[test]
    fn a_circle_of_two_files_is_found() {
        let sources = [
            file("lib.rs", "mod a;\nmod b;\n"),
            file("a.rs", "use crate::b::B;\n"),
            file("b.rs", "fn f() { super::a::g() }\n"),
        ];
        let findings = check(&sources);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].message.contains("a.rs > crates/x/src/b.rs"),
            "{}",
            findings[0].message
        );
    }

    #[test]
    fn a_circle_through_the_front_door_is_found() {
        let sources = [
            file("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;\n"),
            file("a.rs", "use crate::B;\n"),
            file("b.rs", "use crate::A;\n"),
        ];
        assert_eq!(check(&sources).len(), 1);
    }

    #[test]
    fn a_child_that_needs_its_parent_which_needs_it_is_found() {
        let sources = [
            file("a/mod.rs", "mod child;\nuse child::f;\npub struct S;\n"),
            file("a/child.rs", "use super::S;\n"),
        ];
        assert_eq!(check(&sources).len(), 1);
    }

    #[test]
    fn a_one_way_street_and_a_test_are_no_circle() {
        let sources = [
            file("lib.rs", "mod a;\nmod b;\npub use a::A;\n"),
            file("a.rs", "use crate::b::B;\n#[cfg(test)]\nmod tests {\n use crate::A;\n}\n"),
            file("b.rs", "use std::fmt;\n#[cfg(test)]\nmod tests {\n use crate::A;\n}\n"),
        ];
        assert_eq!(check(&sources), []);
    }
}
