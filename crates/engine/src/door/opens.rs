//! Who has a volume open: an explicit register, by which "in use" is decided.
//!
//! A client opens a volume by name, saying who it is and when. Until it drops its guard
//! ([`OpenVolume`]) the volume lists it, and what would change the volume under it is refused with
//! its name. Nothing else counts: neither a plain handle that somebody kept, nor an answer that
//! waits to be sent, nor what the engine holds of the volume for itself.
//!
//! Requests take an `&OpenVolume`. So a client that is not listed sends nothing: once the core has
//! seen an empty list, all requests to the volume are in its queues ([`Intake::has_requests_to`]),
//! and further ones come only behind another opening, which the core itself carries out.
//!
//! [`OpenVolume`]: crate::door::open_volume::OpenVolume
//! [`Intake::has_requests_to`]: crate::door::intake::Intake::has_requests_to

use std::fmt::{self, Display, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::door::moment::utc;

/// Openers that a sentence names; of the others it says how many there are.
const NAMED_OPENERS_MAX: usize = 3;

/// Who opens a volume, as operators are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// For example `127.0.0.1:4711` or `unix socket, pid 1234`.
    pub who: String,
    /// When, in seconds since 1970: the engine has no clock. 0: that is not known.
    pub since_unix_s: u64,
}

impl Opener {
    /// The client that is described so, since that second.
    #[must_use]
    pub fn new(who: impl Into<String>, since_unix_s: u64) -> Self {
        Self { who: who.into(), since_unix_s }
    }
}

impl Display for Opener {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.since_unix_s {
            0 => f.write_str(&self.who),
            since => write!(f, "{} (since {} UTC)", self.who, utc(since)),
        }
    }
}

/// One opening of a volume that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenInfo {
    /// Its number, which no other opening of this run of the engine has.
    pub id: u64,
    /// Who opened the volume, and when.
    pub opener: Opener,
}

/// How a door is asked to end an opening.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It takes no further requests and answers those that it has.
    Drain,
    /// It ends the connection now.
    Cut,
}

/// What ends an opening when somebody else asks for that. Called on the core's thread: it must not
/// block.
pub(crate) type Closer = Arc<dyn Fn(Ending) + Send + Sync>;

/// Openings, as a sentence names them.
pub(crate) struct Named<'a>(pub(crate) &'a [OpenInfo]);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let openers = self.openers();
        let named = openers.len().min(NAMED_OPENERS_MAX);
        for (at, (opener, connections)) in openers[..named].iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "; " })?;
            opener.fmt(f)?;
            if *connections > 1 {
                write!(f, " with {connections} connections")?;
            }
        }
        match openers.len() - named {
            0 => Ok(()),
            1 => f.write_str("; and 1 other"),
            others => write!(f, "; and {others} others"),
        }
    }
}

impl Named<'_> {
    /// Each opener once, since its first opening, with how many openings it has: a program may
    /// open several connections at once, and all of a process have one name.
    fn openers(&self) -> Vec<(Opener, u64)> {
        let mut openers: Vec<(Opener, u64)> = Vec::new();
        for OpenInfo { opener, .. } in self.0 {
            match openers.iter_mut().find(|(named, _)| named.who == opener.who) {
                Some((named, connections)) => {
                    named.since_unix_s = named.since_unix_s.min(opener.since_unix_s);
                    *connections += 1;
                }
                None => openers.push((opener.clone(), 1)),
            }
        }
        openers
    }
}

/// The openings of one volume.
#[derive(Default)]
pub(crate) struct Opens(Mutex<Vec<Opening>>);

struct Opening {
    info: OpenInfo,
    closer: Option<Closer>,
}

impl fmt::Debug for Opens {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Opens").field(&self.list()).finish()
    }
}

impl Opens {
    fn openings(&self) -> MutexGuard<'_, Vec<Opening>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn list(&self) -> Vec<OpenInfo> {
        self.openings().iter().map(|opening| opening.info.clone()).collect()
    }

    pub(crate) fn add(&self, info: OpenInfo) {
        self.openings().push(Opening { info, closer: None });
    }

    pub(crate) fn remove(&self, id: u64) {
        self.openings().retain(|opening| opening.info.id != id);
    }

    pub(crate) fn set_closer(&self, id: u64, closer: Closer) {
        let mut openings = self.openings();
        let opening = openings.iter_mut().find(|opening| opening.info.id == id);
        assert!(opening.is_some(), "an opening is listed until its guard is dropped");
        if let Some(opening) = opening {
            opening.closer = Some(closer);
        }
    }

    /// Asks all that can be closed to close; lists all.
    pub(crate) fn close(&self, ending: Ending) -> Vec<OpenInfo> {
        // Not under the lock: a closer may drop its guard.
        let closers: Vec<Closer> =
            self.openings().iter().filter_map(|opening| opening.closer.clone()).collect();
        let asked = self.list();
        closers.iter().for_each(|close| close(ending));
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::{Named, OpenInfo, Opener};

    #[test]
    fn a_sentence_names_three_and_counts_the_others() {
        let opens: Vec<_> =
            (0..5).map(|id| OpenInfo { id, opener: Opener::new(format!("c{id}"), 0) }).collect();
        assert_eq!(Named(&opens[..1]).to_string(), "c0");
        assert_eq!(Named(&opens[..3]).to_string(), "c0; c1; c2");
        assert_eq!(Named(&opens[..4]).to_string(), "c0; c1; c2; and 1 other");
        assert_eq!(Named(&opens).to_string(), "c0; c1; c2; and 2 others");
        let timed = Opener::new("127.0.0.1:4711", 1_000_000_000);
        assert_eq!(timed.to_string(), "127.0.0.1:4711 (since 2001-09-09 01:46:40 UTC)");
    }

    #[test]
    fn a_program_with_several_connections_is_named_once() {
        let second = 1_000_000_000;
        let opens: Vec<_> = [("nbdcopy", second + 1), ("vm", 0), ("nbdcopy", second)]
            .into_iter()
            .map(|(who, since)| OpenInfo { id: since, opener: Opener::new(who, since) })
            .collect();
        let expected = "nbdcopy (since 2001-09-09 01:46:40 UTC) with 2 connections; vm";
        assert_eq!(Named(&opens).to_string(), expected);
    }
}
