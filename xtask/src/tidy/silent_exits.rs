//! Exits that say nothing, where a store's bytes pass: `else { return }` and `else { continue }`.
//!
//! Where what was looked for cannot be missing, such an exit hides a broken invariant. So it is a
//! check that names it, or a comment says which race is legal: in its block, or on the line before.
//! The others are counted by room, and may only become fewer.

use std::collections::BTreeMap;

use super::ratchet::Excess;
use super::source::{SourceFile, line_index};

/// The rooms that are counted.
const ROOMS: [&str; 6] = ["containers", "disk", "engine", "format", "journal", "tables"];

/// How many each of them has.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Excess> {
    let mut by_room: BTreeMap<&str, usize> = BTreeMap::new();
    for file in sources.iter().filter(|file| ROOMS.contains(&file.room())) {
        *by_room.entry(file.room()).or_default() += count(file);
    }
    let excess = |(room, amount): (&str, usize)| Excess {
        path: format!("crates/{room}").into(),
        line: 0,
        place: format!("crates/{room}::silent_exits"),
        amount,
        message: format!("{amount} exits say nothing: assert, or say which race it is"),
    };
    by_room.into_iter().filter(|(_, amount)| *amount > 0).map(excess).collect()
}

fn count(file: &SourceFile) -> usize {
    let text: Vec<&str> = file.text.lines().collect();
    let is_silent = |&(at, end): &(usize, usize)| {
        let (first, last) = (line_index(&file.code, at), line_index(&file.code, end));
        let mut around = text[first.saturating_sub(1)..=last].iter();
        !file.tests[first] && !around.any(|line| line.contains("//"))
    };
    exits(&file.code).into_iter().filter(is_silent).count()
}

/// Where each `else` begins whose block is a bare exit, and where the block ends.
fn exits(code: &str) -> Vec<(usize, usize)> {
    let exit = |(at, word): (usize, &str)| {
        let start = at + word.len();
        let block = code[start..].split('}').next()?;
        let is_bare = matches!(block.trim(), "return" | "return;" | "continue" | "continue;");
        is_bare.then_some((at, start + block.len()))
    };
    code.match_indices("else {").filter_map(exit).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::source::SourceFile;

    const SILENT: &str = "\
fn f() {
    let Some(a) = b else { return };
    c();
    let Some(a) = b else {
        continue;
    };
}
";
    const JUDGED: &str = "\
fn f() {
    // The client has gone.
    let Some(a) = b else { return };
    let Some(a) = b else {
        // So has its answer.
        return;
    };
    let Some(a) = b else { return x };
}
";
    const TEST: &str = "\
#[cfg(test)]
mod tests {
    fn f() {
        let Some(a) = b else { return };
    }
}
";

    #[test]
    fn exits_without_a_reason_are_counted_by_room() {
        let sources = [
            SourceFile::new("crates/engine/src/a.rs", SILENT),
            SourceFile::new("crates/engine/src/b.rs", JUDGED),
            SourceFile::new("crates/engine/src/c.rs", TEST),
            SourceFile::new("crates/engine/tests/d.rs", SILENT),
            SourceFile::new("crates/tables/src/e.rs", JUDGED),
            SourceFile::new("crates/cli/src/f.rs", SILENT),
        ];
        let found = check(&sources);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].place.as_str(), found[0].amount), ("crates/engine::silent_exits", 2));
    }
}
