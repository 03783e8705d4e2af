//! Whom to tell when a request has ended.

use std::sync::Arc;

use crate::error::RequestError;
use crate::outcome::Reply;

/// Where outcomes go. Called on the core's thread: must not block.
pub trait Completions: Send + Sync {
    /// The request that was given `tag` has ended.
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>);
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

    /// Tells whichever it is.
    pub(crate) fn finish(self, outcome: Result<Reply, RequestError>) {
        self.sink.complete(self.tag, outcome);
    }
}
