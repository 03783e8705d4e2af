//! What DHAT wrote: each backtrace that allocated, how often and how much. From it follow the
//! thread, by what it runs, and the place, which is the innermost function of a room.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

/// The rooms, as the names of their functions begin.
const ROOMS: [&str; 9] =
    ["engine", "tables", "journal", "containers", "reduce", "disk", "format", "nbd", "bench"];
/// What the core's thread is in, whatever else it calls.
const CORE: &str = "engine::engine::Engine::run";
/// What a worker's thread is in.
const WORKERS: &str = "reduce::workers";

/// Where nothing of ours is named.
const OUTSIDE: &str = "outside of our rooms";

/// Which threads allocate.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    /// The core.
    Core,
    /// Workers.
    Workers,
    /// Readers and writers of connections.
    Door,
    /// The client, which is ours, and all others.
    Others,
}

/// A place in the code that allocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Site {
    pub(crate) part: Part,
    /// Function, file and line.
    pub(crate) place: String,
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

#[derive(Deserialize)]
struct Profile {
    pps: Vec<Point>,
    ftbl: Vec<String>,
}

#[derive(Deserialize)]
struct Point {
    /// Bytes and blocks that were asked for in all.
    tb: u64,
    tbk: u64,
    /// From the allocation outwards.
    fs: Vec<usize>,
}

/// All places in a profile, the one that allocated most often first; `None` if it is none.
pub(crate) fn sites(json: &str) -> Option<Vec<Site>> {
    let Profile { pps, ftbl } = serde_json::from_str(json).ok()?;
    let mut sites: Vec<Site> = Vec::new();
    for Point { tb, tbk, fs } in pps {
        let frames = fs.iter().filter_map(|&frame| Some(Frame::of(ftbl.get(frame)?)));
        let frames: Vec<Frame<'_>> = frames.collect();
        let (part, place) = (part(&frames), place(&frames));
        match sites.iter_mut().find(|site| site.part == part && site.place == place) {
            Some(site) => {
                site.allocations += tbk;
                site.bytes += tb;
            }
            None => sites.push(Site { part, place, allocations: tbk, bytes: tb }),
        }
    }
    sites.sort_by_key(|site| Reverse(site.allocations));
    Some(sites)
}

fn part(frames: &[Frame<'_>]) -> Part {
    let within = |name: &str| frames.iter().any(|frame| frame.function.contains(name));
    let in_room = |room: &str| frames.iter().any(|frame| frame.room() == Some(room));
    // The core calls doors to answer, and small jobs run on it.
    if within(CORE) {
        Part::Core
    } else if in_room("nbd") {
        Part::Door
    } else if within(WORKERS) {
        Part::Workers
    } else {
        Part::Others
    }
}

impl Site {
    /// Whether a function of ours is named.
    pub(crate) fn is_ours(&self) -> bool {
        self.place != OUTSIDE
    }
}

fn place(frames: &[Frame<'_>]) -> String {
    let Some(frame) = frames.iter().find(|frame| frame.room().is_some()) else {
        return OUTSIDE.to_owned();
    };
    // The column says nothing to a reader.
    let line = frame.position.rsplit_once(':').map_or(frame.position, |(line, _)| line);
    format!("{} ({line})", frame.function)
}

/// One call of a backtrace.
struct Frame<'a> {
    function: &'a str,
    position: &'a str,
}

impl<'a> Frame<'a> {
    /// Out of `0x1234: room::file::function (room/src/file.rs:1:2)`.
    fn of(text: &'a str) -> Self {
        let named = text.split_once(": ").map_or(text, |(_, named)| named);
        let (function, position) = named.rsplit_once(" (").unwrap_or((named, ""));
        Self { function, position: position.trim_end_matches(')') }
    }

    /// The room that the function is of; one of a trait has its type's.
    fn room(&self) -> Option<&'static str> {
        let name = self.function.trim_start_matches(['<', '&']);
        let name = name.split("::").next().unwrap_or_default();
        ROOMS.into_iter().find(|room| *room == name)
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Site, sites};

    const PROFILE: &str = r#"{"dhatFileVersion": 2, "pps": [
        {"tb": 24, "tbk": 1, "tl": 9, "fs": [1, 2, 3]},
        {"tb": 48, "tbk": 2, "tl": 9, "fs": [1, 2, 6, 3]},
        {"tb": 10, "tbk": 5, "tl": 9, "fs": [1, 2, 4]},
        {"tb": 7, "tbk": 1, "tl": 9, "fs": [1, 5]},
        {"tb": 5, "tbk": 4, "tl": 9, "fs": [1, 4, 7]}],
        "ftbl": ["[root]",
        "0x1: alloc::vec::Vec<T>::push (alloc/src/vec.rs:1:2)",
        "0x2: <engine::group::Groups as core::ops::Drop>::drop (engine/src/group.rs:7:9)",
        "0x3: engine::engine::Engine::run (engine/src/engine.rs:3:4)",
        "0x4: reduce::workers::Shared::work (reduce/src/workers.rs:8:1)",
        "0x5: std::thread::spawn (std/src/thread.rs:1:1)",
        "0x6: nbd::link::Link::complete (nbd/src/link.rs:5:5)",
        "0x7: nbd::session::Session::write (nbd/src/session.rs:6:6)"]}"#;

    #[test]
    fn allocations_belong_to_threads_and_to_the_innermost_function_of_ours() {
        let site = |part, place: &str, allocations, bytes| {
            let place = place.to_owned();
            Site { part, place, allocations, bytes }
        };
        let drop = "<engine::group::Groups as core::ops::Drop>::drop (engine/src/group.rs:7)";
        let work = "reduce::workers::Shared::work (reduce/src/workers.rs:8)";
        assert_eq!(
            sites(PROFILE).unwrap(),
            [
                site(Part::Workers, drop, 5, 10),
                site(Part::Door, work, 4, 5),
                site(Part::Core, drop, 3, 72),
                site(Part::Others, "outside of our rooms", 1, 7),
            ]
        );
    }

    #[test]
    fn what_is_no_profile_has_no_sites() {
        assert_eq!(sites("{}"), None);
    }
}
