//! Metadata contexts: `base:allocation`, and `tamis:changed:NAME` for each snapshot NAME of the
//! exported volume, or of the volume whose snapshot is exported.
//!
//! A name that is none gives no context and is no error, as the protocol says. A context counts for
//! the export that it was chosen for.

use super::agreed::{Agreed, Changed};
use super::choice::{Export, Exports};

/// The number by which the extents of `base:allocation` go.
pub const ALLOCATION_CONTEXT: u32 = 1;
/// Where data and holes are.
pub(super) const ALLOCATION: &str = "base:allocation";
/// What stands before the name of a snapshot since which it is told what changed.
pub(super) const CHANGED: &str = "tamis:changed:";
/// Contexts of changes that are chosen at most: each snapshot is open as long as the connection.
const CHANGED_MAX: usize = 16;

/// What a client chose.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    /// The export, as the client calls it.
    export: String,
    allocation: bool,
    /// Names of snapshots, in full. Their numbers follow [`ALLOCATION_CONTEXT`].
    since: Vec<String>,
}

impl Chosen {
    /// For the export that the client calls so.
    pub(super) fn of(export: &str) -> Self {
        Self { export: export.to_owned(), ..Self::default() }
    }

    /// Chooses what a query names exactly; the number and the name of the context, if there is one.
    pub(super) fn choose<'a, X: Exports>(
        &mut self,
        query: &'a str,
        export: &X::Export,
        exports: &X,
    ) -> Option<(u32, &'a str)> {
        if query == ALLOCATION {
            let first = !std::mem::replace(&mut self.allocation, true);
            return first.then_some((ALLOCATION_CONTEXT, query));
        }
        let full = snapshot_of(query, export)?;
        if self.since.len() == CHANGED_MAX || self.since.contains(&full) {
            return None;
        }
        exports.open(&full).ok()?;
        let id = changed_id(self.since.len());
        self.since.push(full);
        Some((id, query))
    }

    /// The terms under which `export`, which the client calls `name`, is served.
    pub(super) fn agree<X: Exports>(
        self,
        export: X::Export,
        name: &str,
        structured: bool,
        exports: &X,
    ) -> Agreed<X::Export> {
        if self.export != name {
            return Agreed { export, structured, allocation: false, changed: Vec::new() };
        }
        let changed = self.since.iter().enumerate().map(|(at, full)| Changed {
            id: changed_id(at),
            // One that was deleted since it was chosen is told of when it is asked.
            base: exports.open(full).ok(),
        });
        Agreed { export, structured, allocation: self.allocation, changed: changed.collect() }
    }
}

fn changed_id(at: usize) -> u32 {
    ALLOCATION_CONTEXT + 1 + u32::try_from(at).unwrap_or(u32::MAX - 2)
}

/// The snapshot that a query names, in full.
fn snapshot_of(query: &str, export: &impl Export) -> Option<String> {
    let name = query.strip_prefix(CHANGED).filter(|name| !name.is_empty())?;
    Some(format!("{}@{name}", volume_of(&export.name())))
}

fn volume_of(export: &str) -> &str {
    export.split_once('@').map_or(export, |(volume, _)| volume)
}

/// The contexts that the queries of a list ask for; no query asks for all.
pub(super) fn listed<X: Exports>(queries: &[&str], export: &X::Export, exports: &X) -> Vec<String> {
    let asks = |one: &str| queries.is_empty() || queries.contains(&one);
    let mut names = Vec::new();
    if asks(ALLOCATION) || asks("base:") {
        names.push(ALLOCATION.to_owned());
    }
    if asks("tamis:") || asks(CHANGED) {
        let snapshots = exports.snapshots(volume_of(&export.name()));
        names.extend(snapshots.into_iter().map(|snapshot| format!("{CHANGED}{snapshot}")));
        return names;
    }
    for query in queries {
        if let Some(full) = snapshot_of(query, export)
            && exports.open(&full).is_ok()
        {
            names.push((*query).to_owned());
        }
    }
    names
}
