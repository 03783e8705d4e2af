//! Whom to tell when a request has ended.
//!
//! Each is told once, whatever becomes of the request: who is dropped without a word, as when the
//! core panics over what it had in hands, is told of the close. Sinks are shared, and whoever waits
//! at one knows only what it was told.

use std::sync::Arc;

use crate::door::error::RequestError;
use crate::door::outcome::Reply;

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
pub struct Done {
    /// None once told.
    sink: Option<Arc<dyn Completions>>,
    /// What the sink knows the request by.
    pub tag: u64,
}

impl Done {
    /// Of the request that `sink` knows by `tag`.
    #[must_use]
    pub fn new(sink: Arc<impl Completions + 'static>, tag: u64) -> Self {
        Self { sink: Some(sink), tag }
    }

    pub(crate) fn reply(self, reply: Reply) {
        self.finish(Ok(reply));
    }

    pub(crate) fn fail(self, error: RequestError) {
        self.finish(Err(error));
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.is_gone())
    }

    /// Tells whichever it is.
    pub(crate) fn finish(mut self, outcome: Result<Reply, RequestError>) {
        self.tell(outcome);
    }

    /// The request ends with the call that began it, which says so itself.
    pub(crate) fn not_needed(mut self) {
        self.sink = None;
    }

    fn tell(&mut self, outcome: Result<Reply, RequestError>) {
        if let Some(sink) = self.sink.take() {
            sink.complete(self.tag, outcome);
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.tell(Err(RequestError::Closing));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Done;
    use crate::door::error::RequestError::{Closing, NoSpace};
    use crate::door::outcome::Reply;
    use crate::small_store::Told;

    #[test]
    fn each_is_told_once_and_of_the_close_when_it_is_dropped() {
        let told = Arc::<Told>::default();
        Done::new(Arc::clone(&told), 1).reply(Reply::Done);
        Done::new(Arc::clone(&told), 2).fail(NoSpace);
        drop(Done::new(Arc::clone(&told), 3));
        Done::new(Arc::clone(&told), 4).not_needed();
        let told = told.take();
        assert!(
            matches!(told[..], [(1, Ok(Reply::Done)), (2, Err(NoSpace)), (3, Err(Closing))]),
            "{told:?}"
        );
    }
}
