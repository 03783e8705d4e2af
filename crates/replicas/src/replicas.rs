//! All replicated buckets of a running store, those it has and those it is the replica of.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use buckets::{BucketsError, Replicator};
use engine::Client;
use objects::volume::BucketVolume;
use replication::{LinkState, Mirrored, Primary, RING_BYTES_MAX, ReplicaRole, ReplicaState};
use store::{MachineError, Volume, random_bytes};

use crate::address::Address;
use crate::link::Link;
use crate::notice::{Notice, Notices, Observer};
use crate::replica::{self, Places, lock};
use crate::reply_wait::Clocked;
use crate::wire::Socket;

/// How long a closed bucket's threads are waited for, and how often it is looked.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(12);
const RELEASE_LOOK: Duration = Duration::from_millis(1);

/// How replicated buckets are served.
pub struct ReplicasOptions {
    /// How long an answer waits for the replica.
    pub wait_max: Duration,
    /// Hears what an operator should.
    pub observer: Observer,
}

/// They; a clone is the same.
#[derive(Clone)]
pub struct Replicas {
    shared: Arc<Shared>,
}

struct Shared {
    options: ReplicasOptions,
    /// Buckets whose primary is here.
    primaries: Mutex<HashMap<String, Weak<Mirrored>>>,
    /// Buckets whose replica is here.
    places: Places,
}

impl Replicas {
    /// Those of the store of `client`.
    #[must_use]
    pub fn new(client: Client, options: ReplicasOptions) -> Self {
        let (primaries, places) = (Mutex::default(), Places::new(client));
        Self { shared: Arc::new(Shared { options, primaries, places }) }
    }

    /// Ends the connections by which replicas are written.
    pub fn close(&self) {
        self.shared.places.suspend_all();
    }

    /// Serves a primary that has connected, until the connection ends.
    pub(crate) fn serve(&self, socket: &Socket) {
        let fence = |bucket: &str, reason: &str| self.shared.fence(bucket, reason);
        if let Err(error) = replica::serve(&self.shared.places, socket, &fence) {
            self.shared.tell_ended(&error);
        }
    }
}

impl Shared {
    fn primary(&self, bucket: &str) -> Option<Arc<Mirrored>> {
        lock(&self.primaries).get(bucket).and_then(Weak::upgrade)
    }

    /// Waits until nobody has a primary any more whose bucket is closed; false: somebody still has.
    fn has_ended(&self, bucket: &str) -> bool {
        let Some(mirrored) = lock(&self.primaries).remove(bucket) else { return true };
        // Its threads hold it for a message at a time.
        let begun = Instant::now();
        while mirrored.strong_count() > 0 {
            if begun.elapsed() > RELEASE_TIME_MAX {
                return false;
            }
            thread::sleep(RELEASE_LOOK);
        }
        true
    }

    /// Fences the primary of this name, if it is open.
    fn fence(&self, bucket: &str, reason: &str) {
        let Some(mirrored) = self.primary(bucket) else { return };
        // It is fenced in this process, whether or not its volume can say so.
        let _ = mirrored.fence(reason);
        self.warn(format!("bucket {bucket} takes no changes any more: {reason}"));
    }

    fn warn(&self, text: String) {
        (self.options.observer)(&Notice::Warning(text));
    }

    fn tell_ended(&self, error: &io::Error) {
        let is_usual = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
        );
        if !is_usual {
            self.warn(format!("the connection of a primary was ended: {error}"));
        }
    }
}

impl Replicator for Replicas {
    fn mirror(
        &self,
        name: &str,
        volume: Volume,
        state: ReplicaState,
    ) -> Result<Arc<dyn BucketVolume>, BucketsError> {
        if !self.shared.has_ended(name) {
            return Err(BucketsError::InUse { name: name.to_owned() });
        }
        let (peer, is_fenced) = (state.peer.clone(), state.role == ReplicaRole::Fenced);
        let policy = (state.may_go_on_alone, state.was_in_step);
        let life = u64::from_le_bytes(random_bytes()?);
        let primary = Primary::new(name, state, life, RING_BYTES_MAX);
        let reply_wait = Arc::new(Clocked::new(self.shared.options.wait_max));
        let waits = Arc::clone(&reply_wait) as Arc<dyn replication::ReplyWait>;
        let mirrored = Arc::new(Mirrored::new(Arc::new(volume), primary, waits));
        if !is_fenced {
            let address = peer.parse::<Address>().map_err(|error| BucketsError::Replication {
                name: name.to_owned(),
                reason: error.to_string(),
            })?;
            let observer = Arc::clone(&self.shared.options.observer);
            let notices = Notices::new(observer, name, &address, policy);
            let link = Link { mirrored: Arc::downgrade(&mirrored), reply_wait, address, notices };
            link.start().map_err(|source| MachineError {
                action: "start the thread of a replica",
                source,
            })?;
            lock(&self.shared.primaries).insert(name.to_owned(), Arc::downgrade(&mirrored));
            mirrored.wait_until_met()?;
        }
        Ok(mirrored)
    }

    fn suspend(&self, name: &str) -> bool {
        self.shared.places.suspend(name);
        self.shared.has_ended(name)
    }

    fn resume(&self, name: &str) {
        self.shared.places.resume(name);
    }

    fn link(&self, name: &str) -> Option<String> {
        if let Some(mirrored) = self.shared.primary(name) {
            let primary = mirrored.primary();
            let link = match primary.link() {
                LinkState::Away | LinkState::Greeting => "away",
                LinkState::TakingBack(_) => "taking back",
                LinkState::Met | LinkState::Comparing => "comparing",
                LinkState::InStep => "in step",
            };
            return Some(link.to_owned());
        }
        let is_connected = self.shared.places.is_connected(name)?;
        Some(if is_connected { "connected" } else { "away" }.to_owned())
    }
}
