//! `cargo xtask tidy`: the laws of the house that the compiler cannot hold.
//!
//! One file per law. Each check is a pure function from what was loaded to what it found, has a
//! test that shows it a bad sample, and says in its message what to do instead.

mod arrows;
mod bans;
mod columns;
mod cycles;
mod finding;
mod length;
mod licences;
mod method_circles;
mod modules;
mod names;
mod paths;
mod phrases;
mod ratchet;
mod silent_exits;
mod source;
mod story;
mod versions;
mod workspace;

use std::path::Path;

use crate::failure::Failure;
use crate::tidy::finding::Finding;
use crate::tidy::workspace::Workspace;

/// One law: its name and how it is checked.
type Law = (&'static str, fn(&Workspace) -> Vec<Finding>);

const LAWS: [Law; 10] = [
    ("arrows between rooms", |workspace| arrows::check(&workspace.packages)),
    ("dead files", |workspace| modules::unreached(&workspace.sources)),
    ("ratchet", ratcheted),
    ("columns", columns::check),
    ("ban list", |workspace| bans::check(&workspace.sources)),
    ("names", |workspace| names::check(&workspace.sources)),
    ("phrases", phrases::check),
    ("stories", |workspace| story::check(&workspace.sources)),
    ("licences", |workspace| licences::check(&workspace.packages)),
    ("versions", |workspace| versions::check(&workspace.packages)),
];

/// Checks every law and prints what is broken.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let workspace = Workspace::load(root)?;
    let mut count = 0;
    for (name, check) in LAWS {
        let mut findings = check(&workspace);
        findings.sort();
        for finding in &findings {
            println!("{finding} [{name}]");
        }
        count += findings.len();
    }
    println!("tidy: {} files, {} laws, {count} findings", workspace.sources.len(), LAWS.len());
    if count == 0 { Ok(()) } else { Err(Failure::Told) }
}

/// What is counted and may be excused by the ratchet.
fn ratcheted(workspace: &Workspace) -> Vec<Finding> {
    let mut found = length::too_long(&workspace.sources);
    found.extend(cycles::check(&workspace.sources));
    found.extend(method_circles::check(&workspace.sources));
    found.extend(phrases::excesses(workspace));
    found.extend(silent_exits::check(&workspace.sources));
    ratchet::check(&found, &workspace.ratchet, &workspace.ratchet_before)
}
