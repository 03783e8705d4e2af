//! What a store has, said to who asked for a volume or snapshot that it does not have.

use std::fmt;
use std::path::Path;

use super::CliError;
use crate::shell::shell_path;

/// How many names a sentence lists.
const NAMES_MAX: usize = 3;

/// The names nearest to one that is not there, and how many there are in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Present {
    /// Nearest first.
    pub(crate) names: Vec<String>,
    /// Of how many.
    pub(crate) count: usize,
}

impl Present {
    /// Those of `all` that are of the kind of `name`, the nearest first. Of a volume that is there,
    /// only its own snapshots count.
    pub(crate) fn near(name: &str, all: &[String]) -> Self {
        let volume = name.split('@').next().unwrap_or(name);
        let has_volume = all.iter().any(|other| other == volume);
        let is_of_kind = |other: &&String| match other.split_once('@') {
            Some((of, _)) => name.contains('@') && (of == volume || !has_volume),
            None => !name.contains('@'),
        };
        let mut of_kind: Vec<&String> = all.iter().filter(is_of_kind).collect();
        of_kind.sort_by_key(|other| (distance(name, other), other.as_str()));
        let names = of_kind.iter().take(NAMES_MAX).map(|name| (*name).clone()).collect();
        Self { names, count: of_kind.len() }
    }
}

impl fmt::Display for Present {
    /// `v`, `v and w`, `v, w and x`, `v, w, x and 37 others`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = match self.count - self.names.len() {
            0 => None,
            1 => Some("1 other".to_owned()),
            count => Some(format!("{count} others")),
        };
        let mut words: Vec<&str> = self.names.iter().map(String::as_str).collect();
        words.extend(others.as_deref());
        match words.split_last() {
            Some((last, before)) if !before.is_empty() => {
                write!(f, "{} and {last}", before.join(", "))
            }
            _ => f.write_str(&words.join("")),
        }
    }
}

/// That something is not there, and what the store has instead.
pub(super) fn sentence(store: &Path, name: &str, present: &Present) -> String {
    let kind = kind_of(name);
    let told = format!("there is no {kind} {name} in {}: ", store.display());
    let store = shell_path(store);
    told + &match (present.count, kind) {
        (0, "volume") => {
            format!("it has none, make one with `tamis volume create {store} NAME --size SIZE`")
        }
        (0, _) => format!("it has none, take one with `tamis snapshot create {store} VOLUME@NAME`"),
        (1, _) => format!("there is {present}"),
        (count, _) if count == present.names.len() => format!("there are {present}"),
        _ => format!("there are {present}, which `tamis {kind} list {store}` shows"),
    }
}

/// What a name is one of.
fn kind_of(name: &str) -> &'static str {
    if name.contains('@') { "snapshot" } else { "volume" }
}

impl CliError {
    /// There is no volume or snapshot of this name among `all` that are in the store.
    pub(crate) fn absent(store: &Path, name: &str, all: &[String]) -> Self {
        let volume = name.split('@').next().unwrap_or(name);
        // Without the volume there is none of its snapshots.
        let name = if all.iter().any(|other| other == volume) { name } else { volume };
        let present = Present::near(name, all);
        Self::NoVolume { store: store.to_owned(), name: name.to_owned(), present }
    }
}

/// How many letters are to be put in, left out or changed to make one of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, candidate) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *candidate);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{Present, distance};

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_nearest_come_first() {
        for (one, other, expected) in
            [("", "", 0), ("", "abc", 3), ("vm1", "vm2", 1), ("web", "we", 1), ("ab", "ba", 2)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{one} {other}");
        }
        let all = names(&["zebra", "vm1", "vm2", "data", "vm1@monday"]);
        let near = Present::near("vm", &all);
        assert_eq!(near.to_string(), "vm1, vm2, data and 1 other");
        assert_eq!(near.count, 4);
    }

    #[test]
    fn snapshots_are_told_of_their_volume_where_it_is_there() {
        let all = names(&["v", "v@a", "w", "w@b"]);
        assert_eq!(Present::near("v@x", &all).to_string(), "v@a");
        assert_eq!(Present::near("z@x", &all).to_string(), "v@a and w@b");
        assert_eq!(Present::near("x", &all).to_string(), "v and w");
        assert_eq!(Present::near("x", &[]), Present::default());
        assert_eq!(Present::default().to_string(), "");
    }
}
