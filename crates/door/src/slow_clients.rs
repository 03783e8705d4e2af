//! When a client that does not take its answers loses its connection.
//!
//! Such a client keeps its place, and the memory of its reads, for as long as nobody else waits for
//! that memory: a laptop that sleeps costs nothing. What its reads hold of the *write buffer* it
//! keeps for a second at most, for all who write need that
//! ([`Connection::unpin_write_buffer`](crate::Connection::unpin_write_buffer)).

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use crate::payload_grace::PayloadGrace;

/// How long a client may take nothing of what it is sent, and send nothing of what it announced.
pub struct SlowClientPolicy {
    /// For so long whatever happens.
    pub stalled_time_max: Duration,
    /// And until somebody waits for the memory of its replies, which this tells.
    pub is_memory_wanted: Box<dyn Fn() -> bool + Send + Sync>,
    /// For payloads that do not come, shared with the other connections of the server.
    pub payload_grace: Arc<PayloadGrace>,
}

impl SlowClientPolicy {
    /// Whether a client that has taken nothing for this time is given up; only one that holds
    /// memory of reads can be.
    pub(crate) fn gives_up(&self, stalled: Duration, holds_memory: impl FnOnce() -> bool) -> bool {
        stalled >= self.stalled_time_max && holds_memory() && (self.is_memory_wanted)()
    }
}

impl Debug for SlowClientPolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let time_max = &self.stalled_time_max;
        f.debug_struct("SlowClientPolicy").field("time_max", time_max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::SlowClientPolicy;

    #[test]
    fn only_one_that_stalls_long_and_holds_what_others_want_is_given_up() {
        let second = Duration::from_secs(1);
        for (stalled, holds, wanted) in
            [(1, true, true), (1, true, false), (1, false, true), (0, true, true)]
        {
            let policy = SlowClientPolicy {
                stalled_time_max: second,
                is_memory_wanted: Box::new(move || wanted),
                payload_grace: Arc::default(),
            };
            let gives_up = policy.gives_up(second * stalled, || holds);
            assert_eq!(gives_up, stalled == 1 && holds && wanted);
        }
    }
}
