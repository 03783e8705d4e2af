//! Whom to tell when a request has ended.

use std::sync::Arc;

use crate::error::RequestError;
use crate::outcome::Reply;

/// Where outcomes go. Called on the core's thread: must not block.
pub trait Completions: Send + Sync {
    /// The request that was given `tag` has ended.
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>);

    /// Whether nobody is left to hear of outcomes, so that what waits yet, for room or a quota, is
    /// not to be carried out: it may have been sent again, and more behind it that has ended since.
    /// Asked when a request that had to wait could go on, and of no other.
    fn is_gone(&self) -> bool {
        false
    }
}

/// Whom to tell when one request has ended.
#[derive(Clone)]
pub struct Done {
    /// Whom.
    pub sink: Arc<dyn Completions>,
    /// What the sink knows the request by.
    pub tag: u64,
}

impl Done {
    pub(crate) fn reply(self, reply: Reply) {
        self.sink.complete(self.tag, Ok(reply));
    }

    pub(crate) fn fail(self, error: RequestError) {
        self.sink.complete(self.tag, Err(error));
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.sink.is_gone()
    }

    /// Tells whichever it is.
    pub(crate) fn finish(self, outcome: Result<Reply, RequestError>) {
        self.sink.complete(self.tag, outcome);
    }
}
