//! Which two places of a store are hit: pairs in which one is what the other is mended from, or
//! what would tell of it.

use engine::Structure;

use crate::damage::atlas::{Atlas, Bond};
use crate::damage::hit::Blow;
use crate::dice::Dice;

/// A kind of structure, another one, and what the second is to the first.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Pair(pub(crate) &'static str, pub(crate) &'static str, Bond);

/// A map's page, as the atlas calls it.
const MAP: &str = "map, ";
const MAP_LEAF: &str = "map, leaf";
const CATALOG: &str = "volume catalog, ";
const PLACES: &str = "PBN-PBA table, ";
const PLACES_LEAF: &str = "PBN-PBA table, leaf";
const COPIES: &str = "table of second copies, ";
const CONTAINERS: &str = "container table, ";
const HASH: &str = "Hash-PBN table";
const FREE: &str = "queue of free PBNs";
const RECORD: &str = "journal record";

const PAIRS: &[Pair] = &[
    Pair("geometry", "geometry", Bond::Any),
    Pair("geometry", "root", Bond::Any),
    Pair("root", "root", Bond::Any),
    Pair("root", CATALOG, Bond::Any),
    Pair("root", MAP, Bond::Any),
    Pair("root", PLACES, Bond::Any),
    Pair("root", CONTAINERS, Bond::Any),
    Pair("root", RECORD, Bond::Any),
    Pair("root", "frame", Bond::Any),
    Pair("root", "directory", Bond::Any),
    Pair(RECORD, RECORD, Bond::Any),
    Pair(RECORD, RECORD, Bond::Next),
    Pair(RECORD, "frame", Bond::Named),
    Pair(RECORD, MAP, Bond::Any),
    Pair(RECORD, PLACES, Bond::Any),
    Pair(RECORD, CATALOG, Bond::Any),
    Pair(RECORD, "directory", Bond::Any),
    Pair(CATALOG, CATALOG, Bond::OnePage),
    Pair(CATALOG, CATALOG, Bond::OnePath),
    Pair(CATALOG, MAP, Bond::Any),
    Pair(MAP_LEAF, "frame", Bond::Named),
    Pair(MAP, MAP, Bond::OnePage),
    Pair(MAP, MAP, Bond::OnePath),
    Pair(MAP, MAP, Bond::Any),
    Pair(MAP, PLACES, Bond::Any),
    Pair(MAP, "directory", Bond::Any),
    Pair(PLACES_LEAF, "frame", Bond::Named),
    Pair(PLACES, PLACES, Bond::OnePage),
    Pair(PLACES, PLACES, Bond::OnePath),
    Pair(PLACES, PLACES, Bond::Any),
    Pair(PLACES, "directory", Bond::Any),
    Pair(PLACES, "footer", Bond::Any),
    Pair(PLACES, CONTAINERS, Bond::Any),
    Pair(PLACES, HASH, Bond::Any),
    Pair(PLACES, COPIES, Bond::Any),
    Pair(PLACES, FREE, Bond::Any),
    Pair(PLACES, "second copy", Bond::Any),
    Pair(COPIES, "second copy", Bond::Named),
    Pair(COPIES, "frame", Bond::Any),
    Pair(CONTAINERS, CONTAINERS, Bond::OnePage),
    Pair(CONTAINERS, "directory", Bond::Any),
    Pair(CONTAINERS, "frame", Bond::Any),
    Pair(CONTAINERS, HASH, Bond::Any),
    Pair(HASH, HASH, Bond::Any),
    Pair(HASH, HASH, Bond::OnePath),
    Pair(HASH, "directory", Bond::Any),
    Pair(HASH, "frame", Bond::Any),
    Pair("frame", "frame", Bond::Any),
    Pair("frame", "directory", Bond::OneContainer),
    Pair("frame", "footer", Bond::OneContainer),
    Pair("frame", "second copy", Bond::Twin),
    Pair("second copy", "directory", Bond::OneContainer),
    Pair("directory", "footer", Bond::OneContainer),
    Pair("directory", "directory", Bond::Any),
    Pair("", "", Bond::Any),
];

impl Pair {
    pub(crate) fn choose(dice: &mut Dice) -> Self {
        PAIRS[dice.below(PAIRS.len() as u64) as usize]
    }

    /// How a table calls it.
    pub(crate) fn name(&self) -> String {
        let part = |kind: &str| match kind.trim_end_matches(", ") {
            "" => "anything".to_owned(),
            kind => kind.replace(',', ""),
        };
        let bond = match self.2 {
            Bond::Any => "",
            Bond::OneContainer => ", one container",
            Bond::OnePage => ", one page below two roots",
            Bond::OnePath => ", one path",
            Bond::Named => ", named by it",
            Bond::Twin => ", of one chunk",
            Bond::Next => ", the next",
        };
        format!("{} + {}{bond}", part(self.0), part(self.1))
    }

    /// What the first hit aims at.
    pub(crate) fn first(&self, atlas: &Atlas, dice: &mut Dice) -> Option<Structure> {
        let all = atlas.of_kind(self.0);
        // Of the kinds that begin so each comes as often.
        let mut kinds: Vec<&str> = all.iter().map(|structure| &structure.kind[..]).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kind = pick(&kinds, dice)?;
        let of_kind: Vec<_> = all.iter().filter(|structure| structure.kind == *kind).collect();
        // What has a partner is worth more than what has none.
        for _ in 0..20 {
            let first = pick(&of_kind, dice)?;
            if !atlas.bound(first, self.2, self.1).is_empty() {
                return Some((**first).clone());
            }
        }
        pick(&of_kind, dice).map(|first| (**first).clone())
    }

    /// What the second hit aims at.
    pub(crate) fn second(
        &self,
        atlas: &Atlas,
        first: &Structure,
        dice: &mut Dice,
    ) -> Option<Structure> {
        let bound = atlas.bound(first, self.2, self.1);
        let bound = if bound.is_empty() { atlas.of_kind(self.1) } else { bound };
        let mut kinds: Vec<&str> = bound.iter().map(|structure| &structure.kind[..]).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kind = pick(&kinds, dice)?;
        let bound: Vec<_> = bound.iter().filter(|structure| structure.kind == *kind).collect();
        pick(&bound, dice).map(|second| (**second).clone())
    }
}

fn pick<'a, T>(all: &'a [T], dice: &mut Dice) -> Option<&'a T> {
    let count = all.len() as u64;
    if count == 0 { None } else { all.get(dice.below(count) as usize) }
}

/// What happens to a structure.
pub(crate) fn blow(dice: &mut Dice) -> Blow {
    match dice.below(16) {
        0 => Blow::Truncate,
        1..4 => Blow::Zero,
        4..6 => Blow::Older,
        6..8 => Blow::Unreadable,
        8 => Blow::Swap,
        _ => Blow::Flip,
    }
}
