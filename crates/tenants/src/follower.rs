//! A thread that follows the accounts, for connections that look nothing up for long.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use accounts::AccountsError;

use crate::registry::Tenants;

/// How soon a change of rates or quotas is followed.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// Follows the accounts of tenants until it is dropped.
#[derive(Debug)]
pub struct Follower {
    ending: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts the thread. It tells `observer` when the accounts cannot be read, once until they
    /// can.
    ///
    /// # Errors
    /// The machine gives no thread.
    pub fn start(
        tenants: &Arc<Tenants>,
        observer: impl Fn(&AccountsError) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (ending, ended) = channel();
        let tenants: Weak<Tenants> = Arc::downgrade(tenants);
        let follow = move || {
            let mut was_readable = true;
            while ended.recv_timeout(LOOK_TIME) == Err(RecvTimeoutError::Timeout) {
                let Some(tenants) = tenants.upgrade() else { return };
                let read = tenants.refresh();
                if let Err(error) = &read
                    && was_readable
                {
                    observer(error);
                }
                was_readable = read.is_ok();
            }
        };
        let thread = thread::Builder::new().name("tenants".to_owned()).spawn(follow)?;
        Ok(Self { ending: Some(ending), thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ending = None;
        // A panic of the thread has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
