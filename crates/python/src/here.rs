//! What belongs to the process that made it.
//!
//! The engine is threads, and a fork copies none of them. So a child may neither use what its
//! parent opened nor drop it, which would wait for a thread or a lock that is not there:
//!
//! ```text
//! open ──take──> closed
//!   └──fork──> in the child: every use is refused, and the drop forgets
//! ```

use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::errors::{Kind, Refused};

/// A value that only the process that made it may touch; one user at a time.
pub(crate) struct Here<T> {
    pid: u32,
    value: Mutex<Option<T>>,
}

impl<T> Here<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { pid: process::id(), value: Mutex::new(Some(value)) }
    }

    /// Works with the value. The caller has released the interpreter's lock, or the work is short:
    /// two threads that wait for each other's lock would wait for ever.
    ///
    /// # Errors
    /// [`Kind::Forked`], [`Kind::Closed`]; what the work comes to.
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, Refused>,
    ) -> Result<R, Refused> {
        let mut value = self.lock()?;
        work(value.as_mut().ok_or_else(Refused::closed)?)
    }

    /// Takes the value: it is closed from then on.
    ///
    /// # Errors
    /// [`Kind::Forked`].
    pub(crate) fn take(&self) -> Result<Option<T>, Refused> {
        Ok(self.lock()?.take())
    }

    fn lock(&self) -> Result<MutexGuard<'_, Option<T>>, Refused> {
        if self.pid != process::id() {
            let sentence = "another process opened it, and this one was forked from that: open \
                            the store here, when the other has closed it, or connect to a server";
            return Err(Refused::new(Kind::Forked, sentence));
        }
        Ok(self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Drop for Here<T> {
    fn drop(&mut self) {
        if self.pid != process::id() {
            let value = self.value.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(value.take());
        }
    }
}
