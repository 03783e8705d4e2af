//! Every file opens with its story: what it is, what it holds true, why this way.
//!
//! A crate's head is what a newcomer reads first, so it must be more than a title.

use super::finding::Finding;
use super::source::SourceFile;

/// Words the head of a crate has at least.
const CRATE_WORDS_MIN: usize = 30;

/// Every product file without a head, and every crate whose head is a mere title.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Finding> {
    sources.iter().filter(|file| !file.is_test()).filter_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Option<Finding> {
    let head = file.text.lines().map_while(|line| line.strip_prefix("//!"));
    let words = head.flat_map(str::split_whitespace).count();
    if words == 0 {
        return Some(Finding::of(&file.path, "no story: open the file with a `//!` head"));
    }
    let is_crate = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    (is_crate && words < CRATE_WORDS_MIN).then(|| {
        let message =
            format!("a crate's head of {words} words; tell its story in {CRATE_WORDS_MIN}");
        Finding::of(&file.path, message)
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::source::SourceFile;

    #[test]
    fn a_file_without_head_and_a_crate_with_a_title_are_found() {
        let sources = [
            SourceFile::new("crates/x/src/a.rs", "// not a head\nfn f() {}\n"),
            SourceFile::new("crates/x/src/lib.rs", "//! The journal.\nmod a;\n"),
            SourceFile::new("crates/x/src/b.rs", "//! Holds the ring.\nfn f() {}\n"),
            SourceFile::new("crates/x/tests/t.rs", "fn f() {}\n"),
        ];
        let found: Vec<String> = check(&sources).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
