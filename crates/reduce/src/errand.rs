//! Work of other rooms on the threads of this one.

use std::fmt::{self, Debug, Formatter};

/// Work that somebody else knows how to do, and that takes a thread's time.
pub struct Errand(Box<dyn FnOnce() + Send>);

impl Errand {
    /// To do `work`.
    #[must_use]
    pub fn new(work: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(work))
    }

    pub(crate) fn run(self) {
        (self.0)();
    }
}

impl Debug for Errand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Errand")
    }
}
