//! No circles between the files of one type, by the calls of its methods.
//!
//! A type whose `impl` lies in many files that all call each other is one file in pieces: no reader
//! can begin anywhere. An edge is `self.method(` or `Self::method` in an inherent `impl` of product
//! code, from its file to the one that has the method. That is read from text, as `cycles.rs` reads
//! imports: calls through another name than `self` leave no trace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cycles::{Edges, circles};
use super::ratchet::Excess;
use super::source::{SourceFile, is_word};

/// The inherent `impl` blocks of one type in one file, product lines only.
type Blocks<'a> = BTreeMap<&'a Path, String>;

/// Every type of which files call each other in a circle, with the number of those files.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Excess> {
    let mut types: BTreeMap<(PathBuf, String), Blocks<'_>> = BTreeMap::new();
    for file in sources.iter().filter(|file| !file.is_test()) {
        let Some(folder) = file.path.ancestors().find(|folder| folder.ends_with("src")) else {
            continue;
        };
        for (name, block) in impl_blocks(file) {
            let of_type = types.entry((folder.to_path_buf(), name)).or_default();
            of_type.entry(&file.path).or_default().push_str(&block);
        }
    }
    types.iter().filter_map(|((folder, name), blocks)| excess(folder, name, blocks)).collect()
}

fn excess(folder: &Path, name: &str, blocks: &Blocks<'_>) -> Option<Excess> {
    let amount = circles(&edges(blocks)).iter().map(BTreeSet::len).sum();
    (amount > 0).then(|| Excess {
        path: folder.to_path_buf(),
        line: 0,
        place: format!("{}::{name}::calls", folder.display()),
        amount,
        message: format!("{amount} files of `{name}` call each other's methods in a circle"),
    })
}

fn edges<'a>(blocks: &Blocks<'a>) -> Edges<'a> {
    let mut homes: BTreeMap<&str, &Path> = BTreeMap::new();
    for (path, block) in blocks {
        homes.extend(methods(block).map(|method| (method, *path)));
    }
    let targets = |path: &Path, block: &str| {
        let called = calls(block);
        let files = called.iter().filter_map(|method| homes.get(method.as_str()).copied());
        files.filter(|home| *home != path).collect()
    };
    blocks.iter().map(|(path, block)| (*path, targets(path, block))).collect()
}

/// The type and the lines of each inherent `impl`, which rustfmt begins and ends at the margin.
fn impl_blocks(file: &SourceFile) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in file.lines().filter(|line| !line.test) {
        match &mut open {
            Some(_) if line.code.starts_with('}') => blocks.extend(open.take()),
            Some((_, block)) => {
                block.push_str(line.code);
                block.push('\n');
            }
            None if line.code.trim_end().ends_with('}') => {}
            None => open = type_of(line.code).map(|name| (name, String::new())),
        }
    }
    blocks
}

/// The type of an inherent `impl` that this line begins.
fn type_of(line: &str) -> Option<String> {
    let head = line.strip_prefix("impl")?;
    let head = if head.starts_with('<') { behind_generics(head)? } else { head };
    let head = head.strip_prefix(' ')?;
    let name: String = head.chars().take_while(|letter| is_word(*letter)).collect();
    (!name.is_empty() && !head.contains(" for ")).then_some(name)
}

fn behind_generics(head: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, letter) in head.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return head.get(at + 1..);
        }
    }
    None
}

/// The methods that a block has: those at the first step of indentation.
fn methods(block: &str) -> impl Iterator<Item = &str> {
    let signatures =
        block.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
    signatures.filter_map(|line| {
        let (before, rest) = line.split_once("fn ")?;
        let end = rest.find(|letter| !is_word(letter))?;
        (!before.ends_with(is_word)).then(|| &rest[..end])
    })
}

/// The names that follow `self.` and are called, and those that follow `Self::`.
fn calls(block: &str) -> BTreeSet<String> {
    let mut called = BTreeSet::new();
    for (at, _) in block.match_indices("self") {
        let rest = block[at + "self".len()..].trim_start();
        let Some(rest) = rest.strip_prefix('.').filter(|_| !block[..at].ends_with(is_word)) else {
            continue;
        };
        let (name, behind) = word_at(rest.trim_start());
        if behind.starts_with(['(', ':']) {
            called.insert(name.to_owned());
        }
    }
    for (at, _) in block.match_indices("Self::") {
        called.insert(word_at(&block[at + "Self::".len()..]).0.to_owned());
    }
    called
}

fn word_at(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter| !is_word(letter)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::source::SourceFile;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile::new(format!("crates/x/src/{path}"), text)
    }

    #[test]
    fn files_of_a_type_that_call_each_other_are_found() {
        let sources = [
            file(
                "a.rs",
                "impl S {\n    pub fn a(&mut self) {\n        self\n            .b();\n    }\n}\n",
            ),
            file(
                "b.rs",
                "impl<'a> S<'a> {\n    fn b(&self) {\n        timed(Self::a);\n    }\n}\n",
            ),
            file("c.rs", "impl S {\n    fn c(&self) {\n        self.a();\n    }\n}\n"),
        ];
        let found = check(&sources);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].place.as_str(), found[0].amount), ("crates/x/src::S::calls", 2));
    }

    #[test]
    fn fields_traits_tests_and_one_way_are_no_circle() {
        let sources = [
            file("a.rs", "impl S {\n    fn a(&self) {\n        self.b();\n    }\n}\n"),
            file("b.rs", "impl S {\n    fn b(&self) -> u8 {\n        self.a\n    }\n}\n"),
            file("d.rs", "impl T for S {\n    fn t(&self) {\n        self.a();\n    }\n}\n"),
            file("e.rs", "impl S {\n    fn t(&self) {}\n}\n"),
            file(
                "t.rs",
                "#[cfg(test)]\nmod tests {\n    impl S {\n    fn t(&self) { self.a() }\n}\n}\n",
            ),
        ];
        assert_eq!(check(&sources), []);
    }
}
