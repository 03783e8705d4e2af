//! What a server tells its operator: what goes wrong before a client can be told, or that clients
//! are turned away. Of one kind at most one notice in [`QUIET_TIME`], with how many it stands for.

use std::fmt::{self, Debug, Formatter};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a kind of notice is not told again: a client that tries for ever is no flood.
const QUIET_TIME: Duration = Duration::from_secs(10);

/// Something that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Notice {
    /// A client chose an export, and all places are taken.
    #[error(
        "a connection was refused: there are {connections_max} already, as many as are served at \
         one time"
    )]
    Full {
        /// [`crate::ServerOptions::connections_max`].
        connections_max: usize,
    },
    /// A connection came, and the oldest that had not chosen an export was closed for it.
    #[error(
        "a connection that has not chosen a volume was closed: {half_open_max} others have not \
         either, as many as are waited for"
    )]
    HalfOpenDropped {
        /// [`crate::ServerOptions::half_open_max`].
        half_open_max: usize,
    },
    /// A connection could not be accepted or begun.
    #[error("a connection could not be accepted: {reason}")]
    NotAccepted {
        /// The system's word.
        reason: String,
    },
}

type Hear = dyn Fn(&Notice, u64) + Send + Sync;

/// Who hears notices; by default nobody.
#[derive(Clone, Default)]
pub struct Notices {
    hear: Option<Arc<Hear>>,
    kinds: Arc<Mutex<Vec<Kind>>>,
}

/// A kind of notice that was told.
struct Kind {
    kind: Discriminant<Notice>,
    told: Instant,
    /// How many were not told since.
    kept_back: u64,
}

impl Debug for Notices {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("heard", &self.hear.is_some()).finish_non_exhaustive()
    }
}

impl Notices {
    /// Tells `hear` of each notice, and how many of its kind were kept back before it. It is
    /// called on the threads that accept connections, and should not block.
    pub fn to(hear: impl Fn(&Notice, u64) + Send + Sync + 'static) -> Self {
        Self { hear: Some(Arc::new(hear)), kinds: Arc::default() }
    }

    pub(crate) fn tell(&self, notice: &Notice) {
        let Some(hear) = &self.hear else { return };
        if let Some(kept_back) = self.is_due(notice) {
            hear(notice, kept_back);
        }
    }

    /// How many of its kind were kept back, if it is told.
    fn is_due(&self, notice: &Notice) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, now) = (discriminant(notice), Instant::now());
        match kinds.iter_mut().find(|known| known.kind == kind) {
            None => {
                kinds.push(Kind { kind, told: now, kept_back: 0 });
                Some(0)
            }
            Some(known) if now.duration_since(known.told) < QUIET_TIME => {
                known.kept_back += 1;
                None
            }
            Some(known) => {
                known.told = now;
                Some(std::mem::take(&mut known.kept_back))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{Notice, Notices};

    #[test]
    fn a_kind_is_told_once_and_counted_until_it_is_told_again() {
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let hearing = Arc::clone(&heard);
        let notices = Notices::to(move |notice, kept_back| {
            hearing.lock().unwrap().push(format!("{notice:?} {kept_back}"));
        });
        let full = Notice::Full { connections_max: 2 };
        (0..5).for_each(|_| notices.tell(&full));
        notices.tell(&Notice::HalfOpenDropped { half_open_max: 1 });
        assert_eq!(
            *heard.lock().unwrap(),
            ["Full { connections_max: 2 } 0", "HalfOpenDropped { half_open_max: 1 } 0"]
        );
        assert_eq!(notices.kinds.lock().unwrap()[0].kept_back, 4);
    }
}
