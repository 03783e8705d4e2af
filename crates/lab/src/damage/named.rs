//! What a check says of a store, chunk by chunk.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use engine::{CheckReport, Problem};

use crate::damage::truth::Place;

/// So many problems are told.
const PROBLEMS_TOLD: usize = 4;

/// Chunks that a check names.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) lost: BTreeSet<Place>,
    pub(crate) hidden: BTreeSet<Place>,
    /// Those that may be older, since records that changed them are not applied.
    pub(crate) older: BTreeSet<Place>,
    /// Volumes that such records made.
    gone: BTreeSet<usize>,
    /// Whether there are records that say neither.
    has_unread: bool,
    /// Whether nobody knows what was flushed behind the last record.
    pub(crate) has_lost_end: bool,
    /// Everything else, in sentences.
    pub(crate) problems: Vec<Problem>,
    /// Whether records that are there are said not to be applied.
    pub(crate) cuts: bool,
}

impl Named {
    pub(crate) fn of(report: CheckReport) -> Self {
        Self::of_problems(report.problems)
    }

    pub(crate) fn of_problems(problems: Vec<Problem>) -> Self {
        let mut named = Self::default();
        for problem in problems {
            let cuts = matches!(problem, Problem::Journal { .. } | Problem::CutJournal { .. });
            named.cuts |= cuts;
            named.has_lost_end |= matches!(problem, Problem::ShortJournal { .. });
            match &problem {
                Problem::LostChunks { volume, lba, count, .. } => {
                    named.lost.extend(places(volume, *lba..lba + count));
                }
                Problem::HiddenChunks { volume, lba, count, .. } => {
                    named.hidden.extend(places(volume, *lba..lba + count));
                }
                // These go with the record that is named as cut.
                Problem::OlderChunks { volume, lba, count, .. } => {
                    named.older.extend(places(volume, *lba..lba + count));
                }
                Problem::GoneVolume { volume } => named.gone.extend(number_of(volume)),
                Problem::UnreadRecords { .. } => named.has_unread = true,
                _ => named.problems.push(problem),
            }
        }
        named
    }

    /// Whether it is said that a chunk may not hold what was flushed last; `unread` is what records
    /// changed that cannot be read.
    pub(crate) fn tells_of(&self, place: &Place, unread: &BTreeSet<Place>) -> bool {
        [&self.lost, &self.hidden, &self.older].iter().any(|named| named.contains(place))
            || self.gone.contains(&place.0)
            || self.has_lost_end
            || self.has_unread && unread.contains(place)
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.lost.is_empty() && self.hidden.is_empty()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, hidden, problems, .. } = self;
        write!(
            f,
            "check: {} lost, {} hidden, {} others",
            lost.len(),
            hidden.len(),
            problems.len()
        )?;
        problems.iter().take(PROBLEMS_TOLD).try_for_each(|problem| write!(f, "; {problem}"))
    }
}

/// Number of a volume; none of a snapshot.
fn number_of(volume: &str) -> Option<usize> {
    volume.strip_prefix('v')?.parse().ok()
}

fn places(volume: &str, lbas: Range<u64>) -> impl Iterator<Item = Place> {
    let number = number_of(volume).unwrap_or(usize::MAX);
    lbas.map(move |lba| (number, lba))
}

/// Whether a problem is one that was known, as it may look after the store was open for a while:
/// the newest root has become the older one, a directory that was made again lists no frame that is
/// damaged, and of a container with a block that cannot be read only a check of a store that can be
/// opened says so as a whole. Copies are not looked at where pages or records are damaged.
pub(crate) fn may_come_of(problem: &Problem, known: &Problem) -> bool {
    use Problem::{DamagedCopy, DamagedFrame, DamagedInnerPage, DamagedPage, OlderPage};
    let hides_copies = |problem: &Problem| {
        use Problem::{Journal, Unreadable};
        is_page(problem) || matches!(problem, Unreadable { .. } | Journal { .. })
    };
    problem == known
        || match (problem, known) {
            (OlderPage { table, level, index }, known) => match known {
                DamagedInnerPage { table: of, level: at, index: number } => {
                    (table, level, index) == (of, at, number)
                }
                DamagedPage { index: number, .. } => (*level, index) == (0, number),
                _ => false,
            },
            (
                DamagedFrame { pbn, .. } | DamagedCopy { pbn, .. },
                DamagedFrame { pbn: known, .. } | DamagedCopy { pbn: known, .. },
            ) if pbn == known => true,
            (DamagedCopy { .. }, known) => hides_copies(known),
            (
                Problem::DirectoryLacks { pbn, .. } | Problem::FrameMisplaced { pbn, .. },
                DamagedFrame { pbn: known, .. } | DamagedCopy { pbn: known, .. },
            ) => pbn == known,
            (
                Problem::UnreadableContainer { container },
                DamagedFrame { container: known, .. } | Problem::Directory { container: known },
            ) => container == known,
            _ => false,
        }
}

/// Whether something of the tables cannot be read.
pub(crate) fn is_of_tables(problem: &Problem) -> bool {
    match problem {
        Problem::Unreadable { zone, .. } | Problem::ShortZone { zone, .. } => zone == "tables",
        Problem::LostCatalog { .. } => true,
        problem => is_page(problem),
    }
}

/// Whether it is said of a page of a table.
fn is_page(problem: &Problem) -> bool {
    use Problem::{DamagedInnerPage, DamagedPage, OlderPage};
    matches!(problem, DamagedPage { .. } | DamagedInnerPage { .. } | OlderPage { .. })
}
