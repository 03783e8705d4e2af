//! When a client that does not take its answers loses its connection.
//!
//! Such a client keeps its place, and the memory of its reads, for as long as nobody else waits for
//! that memory: a laptop that sleeps costs nothing. What its reads hold of the *write buffer* it
//! keeps for a second at most, for all who write need that
//! ([`Connection::unpin_write_buffer`](crate::Connection::unpin_write_buffer)).

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::shared_grace::SharedGrace;

/// How long a client may take nothing of what it is sent, and send nothing of what it announced.
/// Both graces are shared with the other connections of the server.
pub struct SlowClientPolicy {
    /// For replies that are not taken: so long whatever happens.
    pub reply_grace: Arc<SharedGrace>,
    /// And until somebody waits for the memory of its replies, which this tells.
    pub is_memory_wanted: Box<dyn Fn() -> bool + Send + Sync>,
    /// For payloads that do not come.
    pub payload_grace: Arc<SharedGrace>,
}

impl SlowClientPolicy {
    /// Whether a client that has taken nothing for this time, until `now`, is disconnected; only
    /// one that holds memory of reads can be. Its time is then spent.
    pub(crate) fn gives_up(
        &self,
        stalled: Duration,
        now: Instant,
        holds_memory: impl FnOnce() -> bool,
    ) -> bool {
        let is_over = stalled >= self.reply_grace.time_max(now);
        let gives_up = is_over && holds_memory() && (self.is_memory_wanted)();
        if gives_up {
            self.reply_grace.spend(stalled, now);
        }
        gives_up
    }
}

impl Debug for SlowClientPolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let grace = &self.reply_grace;
        f.debug_struct("SlowClientPolicy").field("reply_grace", grace).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::SlowClientPolicy;
    use crate::shared_grace::SharedGrace;

    const SECOND: Duration = Duration::from_secs(1);

    fn policy(reply_grace: &Arc<SharedGrace>, wanted: bool) -> SlowClientPolicy {
        SlowClientPolicy {
            reply_grace: Arc::clone(reply_grace),
            is_memory_wanted: Box::new(move || wanted),
            payload_grace: Arc::new(SharedGrace::of_payloads()),
        }
    }

    #[test]
    fn only_one_that_stalls_long_and_holds_what_others_want_is_given_up() {
        for (stalled, holds, wanted) in
            [(1, true, true), (1, true, false), (1, false, true), (0, true, true)]
        {
            let policy = policy(&Arc::new(SharedGrace::of_replies(SECOND)), wanted);
            let gives_up = policy.gives_up(SECOND * stalled, Instant::now(), || holds);
            assert_eq!(gives_up, stalled == 1 && holds && wanted);
        }
    }

    #[test]
    fn who_stalls_behind_one_that_was_given_up_has_the_least_and_who_is_not_wanted_all() {
        let grace = Arc::new(SharedGrace::of_replies(10 * SECOND));
        let (wanted, now) = (policy(&grace, true), Instant::now());
        assert!(!wanted.gives_up(SECOND, now, || true));
        assert!(wanted.gives_up(10 * SECOND, now, || true));
        assert!(!policy(&grace, false).gives_up(SECOND, now, || true));
        assert!(!wanted.gives_up(SECOND / 10, now, || true));
        assert!((0..100).all(|_| wanted.gives_up(SECOND / 4, now, || true)));
    }
}
