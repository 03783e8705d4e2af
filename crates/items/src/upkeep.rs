//! A thread that deletes what a flush has ended: no reader finds it, and this gives its room back.
//! It also keeps the bound of a cache that other doors write to.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use objects::bucket::{BucketError, ListOptions};

use crate::evict::delete_listed;
use crate::shared::Shared;

/// Objects that are looked at in one step.
pub(crate) const STEP_OBJECTS: usize = 256;
/// Pause between two looks where there is nothing to do, and between two steps.
const LOOK_TIME: Duration = Duration::from_millis(500);
const STEP_TIME: Duration = Duration::from_millis(5);

/// The thread; it ends when this is dropped.
pub(crate) struct Upkeep {
    ending: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (ending, ended) = channel();
        let shared = Arc::clone(shared);
        let run = move || {
            let (mut cleaning, mut pause) = (Cleaning::default(), LOOK_TIME);
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                // Another door may have made the bucket larger.
                shared.keep_bound(now_s());
                // What fails is tried again; requests say what is wrong with the store.
                let has_more = cleaning.step(&shared, STEP_OBJECTS, now_s());
                pause = if has_more.unwrap_or(false) { STEP_TIME } else { LOOK_TIME };
            }
        };
        let thread = thread::Builder::new().name("items".to_owned()).spawn(run)?;
        Ok(Self { ending: Some(ending), thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.ending = None;
        // A panic of the thread has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A walk over the objects of a bucket that deletes those of before a flush.
#[derive(Default)]
pub(crate) struct Cleaning {
    /// The walk ends what this flush has ended, and goes on behind this key.
    walk: Option<(u64, Vec<u8>)>,
}

impl Cleaning {
    /// Looks at some objects; returns whether there is more to look at.
    pub(crate) fn step(
        &mut self,
        shared: &Shared,
        objects_max: usize,
        now_s: u64,
    ) -> Result<bool, BucketError> {
        let Some(ended_below) = shared.flushes.to_delete_below() else { return Ok(false) };
        let (below, from) = self.walk.take().unwrap_or((ended_below, Vec::new()));
        let now_ms = now_s.saturating_mul(1000);
        let (prefix, delimiter) = (Vec::new(), Vec::new());
        let options = ListOptions { prefix, delimiter, from, limit: objects_max, now_ms };
        let listing = shared.bucket.list(&options)?;
        let ended = listing.objects.iter().filter(|listed| listed.info.version < below);
        delete_listed(&shared.bucket, ended, now_ms)?;
        match listing.next {
            Some(next) => self.walk = Some((below, next)),
            None => shared.flushes.deleted(&shared.bucket, below)?,
        }
        Ok(true)
    }
}
