//! Who has a volume open: an explicit register, by which "in use" is decided.
//!
//! A client opens a volume by name, saying who it is and when. Until it drops its guard
//! ([`OpenVolume`]) the volume lists it, and what would change the volume under it is refused with
//! its name. Nothing else counts: neither a plain handle that somebody kept, nor an answer that
//! waits to be sent, nor what the engine holds of the volume for itself.
//!
//! Requests take an `&OpenVolume`. So whoever is not listed sends nothing: once the core has seen
//! an empty list, all requests to the volume are in its queues ([`Engine::has_requests_to`]), and
//! further ones come only behind another opening, which the core itself carries out.
//!
//! [`OpenVolume`]: crate::door::open_volume::OpenVolume
//! [`Engine::has_requests_to`]: crate::engine::Engine::has_requests_to

use std::fmt::{self, Display, Formatter};
use std::sync::{Mutex, PoisonError};

use crate::door::moment::utc;

/// Openings that a sentence names; of the others it says how many there are.
const NAMED_OPENS_MAX: usize = 3;

/// Who opens a volume, as operators are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// For example `127.0.0.1:4711` or `unix socket, pid 1234`.
    pub who: String,
    /// When, in seconds since 1970: the engine has no clock. 0: that is not known.
    pub since_unix_s: u64,
}

impl Opener {
    /// Whoever is described like this, since that second.
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

/// Openings, as a sentence names them.
pub(crate) struct Named<'a>(pub(crate) &'a [OpenInfo]);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let named = self.0.len().min(NAMED_OPENS_MAX);
        for (at, open) in self.0[..named].iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "; " })?;
            open.opener.fmt(f)?;
        }
        match self.0.len() - named {
            0 => Ok(()),
            others => write!(f, "; and {others} others"),
        }
    }
}

/// The openings of one volume.
#[derive(Debug, Default)]
pub(crate) struct Opens(Mutex<Vec<OpenInfo>>);

impl Opens {
    pub(crate) fn list(&self) -> Vec<OpenInfo> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, open: OpenInfo) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(open);
    }

    pub(crate) fn remove(&self, id: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| open.id != id);
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
        assert_eq!(Named(&opens).to_string(), "c0; c1; c2; and 2 others");
        let timed = Opener::new("127.0.0.1:4711", 1_000_000_000);
        assert_eq!(timed.to_string(), "127.0.0.1:4711 (since 2001-09-09 01:46:40 UTC)");
    }
}
