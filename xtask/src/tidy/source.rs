//! One Rust source file as the checks see it: its text, the same lines with comments and literals
//! blanked out, and which lines are tests.
//!
//! Tidy reads Rust as text, not as a syntax tree: the laws it holds are about names and lines, and
//! a small lexer that knows comments, strings, characters and lifetimes is enough to tell code from
//! what only looks like code. Comments become spaces, so that a line of nothing else is not a line
//! of code; literals become quote marks, so that their line still counts but no word in them does.

use std::path::{Path, PathBuf};

/// A Rust file of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Relative to the workspace's root.
    pub(crate) path: PathBuf,
    /// As it is on disk.
    pub(crate) text: String,
    /// `text`, line for line, with comments and literals blanked.
    pub(crate) code: String,
    /// Per line: does it belong to a test.
    pub(crate) tests: Vec<bool>,
}

/// One line with its number, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) code: &'a str,
    pub(crate) test: bool,
}

impl SourceFile {
    /// Reads `text` as the file at `path`.
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> SourceFile {
        let (path, text) = (path.into(), text.into());
        let code = blank(&text);
        let tests =
            if is_test_path(&path) { vec![true; code.lines().count()] } else { test_lines(&code) };
        SourceFile { path, text, code, tests }
    }

    /// The room it belongs to: the folder under `crates`, or `xtask`.
    pub(crate) fn room(&self) -> &str {
        let mut parts = self.path.iter().filter_map(|part| part.to_str());
        match parts.next() {
            Some("crates") => parts.next().unwrap_or(""),
            Some(top) => top,
            None => "",
        }
    }

    /// The file's lines, blanked.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.code.lines().zip(&self.tests).enumerate().map(|(index, (code, test))| Line {
            number: index + 1,
            code,
            test: *test,
        })
    }

    /// How many lines of code it has: no blank lines, no comments, no tests.
    pub(crate) fn code_lines(&self) -> usize {
        self.lines().filter(|line| !line.test && !line.code.trim().is_empty()).count()
    }

    /// Is the whole file a test.
    pub(crate) fn is_test(&self) -> bool {
        self.tests.iter().all(|test| *test)
    }

    /// Called for a file that is declared under `#[cfg(test)]`.
    pub(crate) fn make_test(&mut self) {
        self.tests.fill(true);
    }
}

fn is_test_path(path: &Path) -> bool {
    let in_test_folder =
        path.iter().any(|part| part == "tests" || part == "benches" || part == "examples");
    in_test_folder || path.file_name().is_some_and(|name| name == "tests.rs")
}

/// `text` with comments turned into spaces and literals into quote marks, line for line.
pub(crate) fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = ' ';
    while let Some(first) = rest.chars().next() {
        let (length, filler) = match not_code(rest, previous) {
            Some((length, filler)) => (length, Some(filler)),
            None => (first.len_utf8(), None),
        };
        let (piece, after) = rest.split_at(length);
        for character in piece.chars() {
            code.push(if character == '\n' { '\n' } else { filler.unwrap_or(character) });
        }
        previous = piece.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    code
}

/// When `rest` begins with a comment or a literal: its length in bytes and what blanks it.
fn not_code(rest: &str, previous: char) -> Option<(usize, char)> {
    if rest.starts_with("//") {
        return Some((rest.find('\n').unwrap_or(rest.len()), ' '));
    }
    if rest.starts_with("/*") {
        return Some((block_comment_length(rest), ' '));
    }
    if rest.starts_with('"') {
        return Some((string_length(rest), '"'));
    }
    if rest.starts_with('\'') {
        return character_length(rest).map(|length| (length, '"'));
    }
    if is_word(previous) { None } else { raw_string_length(rest).map(|length| (length, '"')) }
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `'x'` and `'\n'` are characters; `'a` is a lifetime, which is code.
fn character_length(rest: &str) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\\' {
        let (_, _escaped) = characters.next()?;
        return characters.find(|(_, character)| *character == '\'').map(|(at, _)| at + 1);
    }
    characters.next().filter(|(_, character)| *character == '\'').map(|(at, _)| at + 1)
}

fn raw_string_length(rest: &str) -> Option<usize> {
    let prefix = if rest.starts_with('r') { 1 } else { 2 };
    let body = rest.strip_prefix("br").or(rest.strip_prefix("cr")).or(rest.strip_prefix('r'))?;
    let hashes = body.bytes().take_while(|byte| *byte == b'#').count();
    let inside = body.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let inside_length = inside.find(&end).unwrap_or(inside.len());
    Some((prefix + hashes + 1 + inside_length + end.len()).min(rest.len()))
}

/// May `character` stand inside an identifier.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Which lines of blanked `code` lie in items under `#[cfg(test)]`.
fn test_lines(code: &str) -> Vec<bool> {
    let mut tests = vec![false; code.lines().count()];
    for (at, _) in code.match_indices("#[cfg(test)]") {
        let first = line_index(code, at);
        let last = line_index(code, item_end(code, at));
        for test in tests.iter_mut().take(last + 1).skip(first) {
            *test = true;
        }
    }
    if code.trim_start().starts_with("#![cfg(test)]") {
        tests.fill(true);
    }
    tests
}

/// The line, from 0, in which byte `at` lies.
pub(crate) fn line_index(code: &str, at: usize) -> usize {
    code.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// Where the item that starts at `from`, attributes included, ends: its `;` or closing brace.
pub(crate) fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return brace_end(code, offset),
            b';' if depth == 0 => return offset,
            _ => {}
        }
    }
    code.len()
}

/// Where the block that opens at `open` closes.
pub(crate) fn brace_end(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return offset;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Every place in one line of `code` where `needle` stands as whole words.
pub(crate) fn contains_word(code: &str, needle: &str) -> bool {
    code.match_indices(needle).any(|(at, found)| {
        let before = code.get(..at).and_then(|head| head.chars().next_back());
        let after = code.get(at + found.len()..).and_then(|tail| tail.chars().next());
        let opens = !needle.starts_with(is_word) || !before.is_some_and(is_word);
        let closes = !needle.ends_with(is_word) || !after.is_some_and(is_word);
        opens && closes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_spaces_and_literals_quote_marks() {
        assert_eq!(blank("a // b\nc"), "a     \nc");
        assert_eq!(blank("a /* x /* y */ z */ b"), "a                   b");
        assert_eq!(
            blank(r#"f("x\"y") + 1"#),
            r#"f(""""""") + 1"#.replace("\"\"\"\"\"\"\"", "\"\"\"\"\"\"")
        );
        assert_eq!(blank("r#\"a\"b\"# c"), "\"\"\"\"\"\"\"\" c");
        assert_eq!(blank("b'x' '\\'' &'a str"), "b\"\"\" \"\"\"\" &'a str");
    }

    #[test]
    fn raw_identifiers_and_words_that_end_in_r_stay_code() {
        assert_eq!(blank("r#type number\"x\""), "r#type number\"\"\"");
    }

    #[test]
    fn lines_under_cfg_test_are_tests_and_others_are_not() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let file = SourceFile::new("crates/x/src/a.rs", text);
        assert_eq!(file.tests, [false, true, true, true, true, false]);
        assert_eq!(file.code_lines(), 2);
        assert_eq!(file.room(), "x");
    }

    #[test]
    fn files_in_test_folders_are_tests() {
        assert!(SourceFile::new("crates/x/tests/a.rs", "fn a() {}").is_test());
        assert!(SourceFile::new("crates/x/src/a/tests.rs", "fn a() {}").is_test());
        assert!(!SourceFile::new("crates/x/src/a.rs", "fn a() {}").is_test());
    }

    #[test]
    fn an_item_ends_at_its_semicolon_or_brace() {
        assert_eq!(item_end("#[a(b)] use x;\nfn", 0), 13);
        assert_eq!(item_end("fn f(a: [u8; 4]) { { } }", 0), 23);
    }

    #[test]
    fn words_are_found_whole() {
        assert!(contains_word("let a = Instant::now()", "Instant"));
        assert!(!contains_word("let a = InstantLike", "Instant"));
        assert!(contains_word("use std::time::X", "std::time"));
        assert!(contains_word("a::thread::spawn", "thread::"));
    }
}
