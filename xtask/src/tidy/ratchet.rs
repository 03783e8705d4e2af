//! The ratchet: exceptions to what may be counted, which may only shrink.
//!
//! `xtask/ratchet.txt` holds one exception a line, `NUMBER PLACE # REASON`. PLACE is a path (a long
//! file: its lines), `path::function` (a long function: its lines) or `path::circle` (a circle of
//! imports, named by the first of its files: how many files), `folder::Type::calls` (a circle of
//! method calls: how many files), `room::phrases` (banned phrases in comments or documents: how
//! many) or `room::silent_exits` (exits without a reason: how many). The number is exact: who makes
//! the place better must lower it (the ratchet clicks), who makes it worse is stopped. Raising a
//! number or adding a line against the committed file is a finding too, so that it takes a commit
//! of its own and a reader's agreement.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::finding::Finding;

const FILE: &str = "xtask/ratchet.txt";

/// Something that is more than it may be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Excess {
    pub(crate) path: PathBuf,
    /// Where it starts, from 1; 0 for a whole file.
    pub(crate) line: usize,
    /// What the ratchet calls it.
    pub(crate) place: String,
    pub(crate) amount: usize,
    /// What to say when it is not excused.
    pub(crate) message: String,
}

/// One exception.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Entry {
    amount: usize,
    has_reason: bool,
    at_line: usize,
}

/// What is in excess and not excused, and what in the ratchet no longer holds.
pub(crate) fn check(found: &[Excess], now: &str, before: &str) -> Vec<Finding> {
    let (entries, mut findings) = parse(now);
    for excess in found {
        match entries.get(&excess.place) {
            Some(entry) => findings.extend(compare(excess, entry)),
            None => findings.push(Finding::at(&excess.path, excess.line, &excess.message)),
        }
    }
    for (place, entry) in &entries {
        if !found.iter().any(|excess| excess.place == *place) {
            let message = format!("`{place}` needs no excuse any more: remove its line");
            findings.push(Finding::at(FILE.as_ref(), entry.at_line, message));
        }
        if !entry.has_reason {
            let message = format!("`{place}` is excused without a reason");
            findings.push(Finding::at(FILE.as_ref(), entry.at_line, message));
        }
    }
    findings.extend(grown(&entries, before));
    findings
}

fn compare(excess: &Excess, entry: &Entry) -> Option<Finding> {
    let Excess { place, amount, .. } = excess;
    let message = if *amount > entry.amount {
        format!("`{place}` grew from {} to {amount}", entry.amount)
    } else if *amount < entry.amount {
        format!("`{place}` shrank from {} to {amount}: write that here", entry.amount)
    } else {
        return None;
    };
    Some(Finding::at(FILE.as_ref(), entry.at_line, message))
}

/// Entries that are new or larger than in the committed file. Nothing when none was committed yet.
fn grown(entries: &BTreeMap<String, Entry>, before: &str) -> Vec<Finding> {
    if before.is_empty() {
        return Vec::new();
    }
    let (old, _) = parse(before);
    let loosened = entries.iter().filter(|(place, entry)| {
        old.get(*place).is_none_or(|old_entry| old_entry.amount < entry.amount)
    });
    loosened
        .map(|(place, entry)| {
            let message = format!("the ratchet may only shrink, but `{place}` was loosened");
            Finding::at(FILE.as_ref(), entry.at_line, message)
        })
        .collect()
}

fn parse(text: &str) -> (BTreeMap<String, Entry>, Vec<Finding>) {
    let mut entries = BTreeMap::new();
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (facts, reason) = line.split_once('#').unwrap_or((line, ""));
        let words: Vec<&str> = facts.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [amount, place] if amount.parse::<usize>().is_ok() => {
                let amount = amount.parse().unwrap_or_default();
                let has_reason = !reason.trim().is_empty();
                let entry = Entry { amount, has_reason, at_line: index + 1 };
                entries.insert((*place).to_owned(), entry);
            }
            _ => {
                let message = "not `NUMBER PLACE # REASON`";
                findings.push(Finding::at(FILE.as_ref(), index + 1, message));
            }
        }
    }
    (entries, findings)
}

#[cfg(test)]
mod tests {
    use super::{Excess, check};

    fn measure(amount: usize) -> Excess {
        let (path, place, message) = ("a.rs".into(), "a.rs::f".into(), format!("{amount} lines"));
        Excess { path, line: 3, place, amount, message }
    }

    fn messages(found: &[Excess], now: &str, before: &str) -> Vec<String> {
        check(found, now, before).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_is_not_excused_is_found() {
        assert_eq!(messages(&[measure(70)], "", ""), ["70 lines"]);
    }

    #[test]
    fn an_excuse_holds_exactly() {
        let now = "# head\n70 a.rs::f # one match over all commands\n";
        assert_eq!(messages(&[measure(70)], now, now), Vec::<String>::new());
        assert!(messages(&[measure(71)], now, now)[0].contains("grew from 70 to 71"));
        assert!(messages(&[measure(69)], now, now)[0].contains("shrank from 70 to 69"));
        assert!(messages(&[], now, now)[0].contains("needs no excuse"));
    }

    #[test]
    fn loosening_against_the_committed_file_is_found() {
        let now = "70 a.rs::f # why\n";
        assert!(messages(&[measure(70)], now, "65 a.rs::f # why\n")[0].contains("loosened"));
        assert!(messages(&[measure(70)], now, "# nothing yet\n")[0].contains("loosened"));
    }

    #[test]
    fn a_line_without_reason_or_sense_is_found() {
        assert!(messages(&[measure(70)], "70 a.rs::f\n", "")[0].contains("without a reason"));
        assert!(messages(&[], "much a.rs\n", "")[0].contains("NUMBER PLACE"));
    }
}
