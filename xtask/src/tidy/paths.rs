//! Paths as they stand in code: `crate::a::{b, c::D}` read into `crate a b` and `crate a c D`.

use super::source::is_word;

/// A path found in code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CodePath {
    /// Where it starts, in bytes.
    pub(crate) at: usize,
    pub(crate) segments: Vec<String>,
    /// The name it is known by afterwards: its last segment, unless `as` gives another.
    pub(crate) name: String,
}

/// Every path that begins with one of `heads` (`crate`, `super`, `self`), anywhere in `code`.
pub(crate) fn with_heads(code: &str, heads: &[&str]) -> Vec<CodePath> {
    let mut paths = Vec::new();
    for head in heads {
        for (at, _) in code.match_indices(&format!("{head}::")) {
            let before = code.get(..at).unwrap_or("");
            let continues = before.ends_with("::") || before.ends_with(is_word);
            if !continues {
                paths.extend(expand(code, at));
            }
        }
    }
    paths
}

/// Every path of the `use` statements whose text before `use` satisfies `is_kind`.
pub(crate) fn in_uses(code: &str, is_public: bool) -> Vec<CodePath> {
    let mut paths = Vec::new();
    for (at, found) in code.match_indices("use ") {
        let line_start = code.get(..at).and_then(|head| head.rfind('\n')).map_or(0, |at| at + 1);
        let before = code.get(line_start..at).unwrap_or("").trim();
        let public = before.starts_with("pub");
        let statement = before.is_empty() || (public && (before == "pub" || before.ends_with(')')));
        if statement && public == is_public {
            paths.extend(expand(code, at + found.len()));
        }
    }
    paths
}

fn expand(code: &str, at: usize) -> Vec<CodePath> {
    let mut paths = Vec::new();
    let mut cursor = Cursor { rest: code.get(at..).unwrap_or("") };
    cursor.tree(&mut Vec::new(), &mut paths);
    paths.into_iter().map(|(segments, name)| CodePath { at, segments, name }).collect()
}

/// Reads the tree of a `use`, or a plain path, from the front of `rest`.
struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn tree(&mut self, prefix: &mut Vec<String>, paths: &mut Vec<(Vec<String>, String)>) {
        let depth = prefix.len();
        loop {
            if self.take("{") {
                self.branches(prefix, paths);
                break;
            }
            let word = self.word();
            if word.is_empty() {
                // A glob or a turbofish: what stands so far is the path.
                push(prefix, None, paths);
                break;
            }
            prefix.push(word);
            if !self.take("::") {
                let alias = if self.take("as ") { Some(self.word()) } else { None };
                push(prefix, alias, paths);
                break;
            }
        }
        prefix.truncate(depth);
    }

    fn branches(&mut self, prefix: &mut Vec<String>, paths: &mut Vec<(Vec<String>, String)>) {
        while !self.rest.trim_start().is_empty() && !self.take("}") {
            let before = self.rest.len();
            self.tree(prefix, paths);
            if !self.take(",") && !self.take("*") && self.rest.len() == before {
                return;
            }
        }
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> String {
        let trimmed = self.rest.trim_start();
        let length = trimmed.find(|character| !is_word(character)).unwrap_or(trimmed.len());
        let (word, rest) = trimmed.split_at(length);
        self.rest = rest;
        word.to_owned()
    }
}

fn push(prefix: &[String], alias: Option<String>, paths: &mut Vec<(Vec<String>, String)>) {
    let mut segments = prefix.to_vec();
    // `a::{self, b}`: the path is `a`.
    if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    let name = alias.or_else(|| segments.last().cloned()).unwrap_or_default();
    paths.push((segments, name));
}

#[cfg(test)]
mod tests {
    use super::{CodePath, in_uses, with_heads};

    fn joined(paths: &[CodePath]) -> Vec<String> {
        paths.iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn a_use_tree_is_read_whole() {
        let code = "use crate::{a::X, b::{self, c as d, E},\n f};\nlet g = crate::h::i::<u8>();";
        let found = joined(&with_heads(code, &["crate"]));
        assert_eq!(
            found,
            ["crate::a::X", "crate::b", "crate::b::c", "crate::b::E", "crate::f", "crate::h::i"]
        );
    }

    #[test]
    fn public_uses_are_told_from_private_ones() {
        let code = "pub use a::X;\nuse b::Y as Z;\npub(crate) use c::W;\n";
        assert_eq!(joined(&in_uses(code, true)), ["a::X", "c::W"]);
        let private = in_uses(code, false);
        assert_eq!(joined(&private), ["b::Y"]);
        assert_eq!(private[0].name, "Z");
    }

    #[test]
    fn a_glob_ends_its_path() {
        assert_eq!(joined(&with_heads("use crate::a::*;", &["crate"])), ["crate::a"]);
    }
}
