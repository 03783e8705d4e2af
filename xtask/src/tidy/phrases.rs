//! Phrases that only this project used, each with the field's own words for it.
//!
//! A user reads help, errors, output and the documents for users: there none may stand. Comments
//! and the documents for developers have some left, which the ratchet counts by room. A phrase is
//! found also where a line ends inside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::ratchet::Excess;
use super::source::{SourceFile, is_word};
use super::workspace::Workspace;

/// In small letters: what not to write, and what to write.
const PHRASES: [(&str, &str); 26] = [
    ("bring near", "prefetch"),
    ("brings near", "prefetches"),
    ("brought near", "prefetched"),
    ("chunk aside", "unindexed chunk"),
    ("chunks aside", "unindexed chunks"),
    ("courteous", "of low priority (SCHED_BATCH)"),
    ("crowd", "the threads that wait"),
    ("gave up", "abandoned, or closed"),
    ("give up", "abandon, or close"),
    ("given up", "abandoned, or closed"),
    ("gives up", "abandons, or closes"),
    ("gone for good", "lost"),
    ("lets go", "releases, evicts or drops"),
    ("make no sense", "are invalid"),
    ("makes no sense", "is invalid"),
    ("open nothing", "are refused"),
    ("opens nothing", "is refused"),
    ("patience", "a time limit, or a spin time"),
    ("sealed well", "with a valid checksum"),
    ("stand aside", "are unindexed"),
    ("stands aside", "is unindexed"),
    ("stands still", "stalls"),
    ("stored aside", "unindexed"),
    ("unsought", "unindexed"),
    ("whoever", "the client, the caller, the thread that"),
    ("without a word", "silently"),
];

/// The list itself has them.
const THIS: &str = "xtask/src/tidy/phrases.rs";
/// Where a comment is the text of a help.
const HELP: &str = "crates/cli/src/args";
/// The documents for users.
const FOR_USERS: [&str; 4] = ["README.md", "docs/guide", "docs/reference", "docs/glossary.md"];

/// What a file says, line by line.
type Lines = Vec<(usize, String)>;

/// Every phrase that a user reads.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in product(workspace) {
        let mut said = phrases_in(&strings(file));
        if file.path.starts_with(HELP) {
            said.extend(phrases_in(&comments(file)));
        }
        findings.extend(said.into_iter().map(|found| finding(&file.path, found)));
    }
    for (path, text) in workspace.documents.iter().filter(|(path, _)| is_for_users(path)) {
        findings.extend(phrases_in(&lines(text)).into_iter().map(|found| finding(path, found)));
    }
    findings
}

/// How many stand in comments and in documents for developers, by room.
pub(crate) fn excesses(workspace: &Workspace) -> Vec<Excess> {
    let mut by_room: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let mut count = |path: &Path, lines: &Lines| {
        let found = phrases_in(lines).len();
        if found > 0 {
            *by_room.entry(path.components().take(2).collect()).or_default() += found;
        }
    };
    for file in product(workspace).filter(|file| !file.path.starts_with(HELP)) {
        count(&file.path, &comments(file));
    }
    for (path, text) in workspace.documents.iter().filter(|(path, _)| !is_for_users(path)) {
        count(path, &lines(text));
    }
    let excess = |(path, amount): (PathBuf, usize)| Excess {
        place: format!("{}::phrases", path.display()),
        line: 0,
        amount,
        message: format!("{amount} phrases that only this project used ({THIS} says what instead)"),
        path,
    };
    by_room.into_iter().map(excess).collect()
}

fn product(workspace: &Workspace) -> impl Iterator<Item = &SourceFile> {
    workspace.sources.iter().filter(|file| file.path != Path::new(THIS))
}

fn is_for_users(path: &Path) -> bool {
    FOR_USERS.iter().any(|place| path.starts_with(place))
}

fn finding(path: &Path, (line, phrase, instead): (usize, &str, &str)) -> Finding {
    Finding::at(path, line, format!("`{phrase}`: write {instead}"))
}

fn lines(text: &str) -> Lines {
    text.lines().enumerate().map(|(index, line)| (index + 1, line.to_owned())).collect()
}

/// What stands in literals of product code; the mark of a line that goes on is left out.
fn strings(file: &SourceFile) -> Lines {
    let literal = |code: char, text: char| (code == '"' && text != '\\').then_some(text);
    picked(file, literal)
}

/// What stands in comments of product code, without their marks.
fn comments(file: &SourceFile) -> Lines {
    let mut said = picked(file, |code, text| (code == ' ').then_some(text));
    for (_, line) in &mut said {
        *line = line.trim_start_matches([' ', '/', '!', '*']).to_owned();
    }
    said
}

/// Of each line the characters that `pick` takes, and a space for each other.
fn picked(file: &SourceFile, pick: impl Fn(char, char) -> Option<char>) -> Lines {
    let product = file.lines().zip(file.text.lines()).filter(|(line, _)| !line.test);
    let pick_line = |(code, text): (&str, &str)| {
        code.chars().zip(text.chars()).map(|(code, text)| pick(code, text).unwrap_or(' ')).collect()
    };
    product.map(|(line, text)| (line.number, pick_line((line.code, text)))).collect()
}

/// Every phrase, with the line in which it begins.
fn phrases_in(lines: &Lines) -> Vec<(usize, &'static str, &'static str)> {
    let mut joined = String::new();
    let mut starts = Vec::new();
    for (number, line) in lines {
        for word in line.split_whitespace() {
            starts.push((joined.len(), *number));
            joined.push_str(&word.to_lowercase());
            joined.push(' ');
        }
    }
    let mut found = Vec::new();
    for (phrase, instead) in PHRASES {
        for (at, _) in joined.match_indices(phrase) {
            let (before, rest) = joined.split_at(at);
            if before.ends_with(is_word) || rest[phrase.len()..].starts_with(is_word) {
                continue;
            }
            let index = starts.partition_point(|(start, _)| *start <= at);
            found.push((starts[index - 1].1, phrase, instead));
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::{PHRASES, check, excesses};
    use crate::tidy::source::SourceFile;
    use crate::tidy::workspace::Workspace;

    fn source(path: &str, text: &str) -> Workspace {
        Workspace { sources: vec![SourceFile::new(path, text)], ..Workspace::default() }
    }

    fn document(path: &str, text: &str) -> Workspace {
        Workspace { documents: vec![(path.into(), text.to_owned())], ..Workspace::default() }
    }

    #[test]
    fn each_phrase_is_found_in_errors_help_and_documents_for_users() {
        for (phrase, instead) in PHRASES {
            let error = source("crates/engine/src/a.rs", &format!("let a = \"it {phrase}s\";\n"));
            assert_eq!(check(&error), [], "a longer word than {phrase}");
            let error = source("crates/engine/src/a.rs", &format!("let a = \"it {phrase}\";\n"));
            assert!(check(&error)[0].message.contains(instead));
            let help = source("crates/cli/src/args/a.rs", &format!("/// So {phrase}\nstruct A;\n"));
            assert_eq!((check(&help).len(), excesses(&help)), (1, Vec::new()), "{phrase}");
            let guide = document("docs/guide/a.md", &format!("# A\n\n{phrase}.\n"));
            assert_eq!(check(&guide)[0].line, 3, "{phrase}");
        }
    }

    #[test]
    fn comments_and_documents_for_developers_are_counted_by_room() {
        let mut both = source("crates/engine/src/a.rs", "// Whoever waits.\nfn whoever() {}\n");
        both.documents.push(("docs/design/a.md".into(), "whoever, Whoever\n".to_owned()));
        assert_eq!(check(&both), []);
        let counted: Vec<_> =
            excesses(&both).into_iter().map(|excess| (excess.place, excess.amount)).collect();
        let places = ["crates/engine::phrases", "docs/design::phrases"];
        assert_eq!(counted, [(places[0].to_owned(), 1), (places[1].to_owned(), 2)]);
    }

    #[test]
    fn a_phrase_is_found_over_the_end_of_a_line() {
        let text = "#[error(\n    \"a store that is gone \\\n     for good\"\n)]\n";
        assert_eq!(check(&source("crates/engine/src/a.rs", text))[0].line, 2);
        let text = "//! It is gone\n//! for good.\n";
        assert_eq!(excesses(&source("crates/engine/src/a.rs", text)).len(), 1);
    }

    #[test]
    fn tests_and_names_in_code_may_have_them() {
        let text = "#[cfg(test)]\nmod tests { fn f() { g(\"whoever\"); } } // whoever\n";
        let tests = source("crates/engine/src/a.rs", text);
        assert_eq!((check(&tests), excesses(&tests)), (Vec::new(), Vec::new()));
    }
}
