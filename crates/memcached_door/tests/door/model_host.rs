//! Serves the model cache of the protocol's room, and waits where it is told to.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memcached::model::{ModelCache, ModelReader, ModelWriter};
use memcached::{Answer, Answers, Cache, Counts, Fault, Figures, Request, Store};
use memcached_door::{Guest, Host, Meter, Place};
use tenants::PartyId;

/// Keys that begin with this are waited for until [`Gate::open`].
pub(crate) const SLOW: &[u8] = b"slow";
/// As [`SLOW`], and the cache does not say so before.
pub(crate) const STUCK: &[u8] = b"stuck";

/// What slow keys wait for.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Nothing waits any more.
    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        let _open = self.opened.wait_while(is_open, |is_open| !*is_open);
    }
}

/// One cache, and who may use it.
#[derive(Clone, Default)]
pub(crate) struct ModelHost {
    pub(crate) gate: Arc<Gate>,
    /// Names with passwords; none: everybody may come in.
    pub(crate) passwords: HashMap<String, String>,
    /// How long a client pauses after each request, by its name.
    pub(crate) pauses: HashMap<String, Duration>,
    /// Names that have to go.
    pub(crate) gone: Arc<Mutex<Vec<String>>>,
    pub(crate) cache: Arc<Mutex<ModelCache>>,
    pub(crate) place: Arc<Place>,
}

/// One client's view of the cache.
pub(crate) struct Client {
    cache: Arc<Mutex<ModelCache>>,
    gate: Arc<Gate>,
}

impl Client {
    fn cache(&self) -> MutexGuard<'_, ModelCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Pause(Duration);

impl Meter for Pause {
    fn charge(&self, requests: u64, _bytes: u64, _now: Instant) -> Option<Duration> {
        (requests > 0).then_some(self.0)
    }

    fn record(&self, _counts: &Counts, _took: Duration) {}
}

impl ModelHost {
    fn guest(&self, name: Option<&str>) -> Guest<Client> {
        let pause = name.and_then(|name| self.pauses.get(name)).copied();
        Guest {
            cache: Client { cache: Arc::clone(&self.cache), gate: Arc::clone(&self.gate) },
            place: Arc::clone(&self.place),
            name: name.map(Arc::from),
            meter: pause.map(|pause| Arc::new(Pause(pause)) as Arc<dyn Meter>),
            party: PartyId::new(name.map_or(1, |name| name.len() as u64)),
        }
    }
}

impl Host for ModelHost {
    type Cache = Client;

    fn without_name(&self) -> Option<Guest<Client>> {
        self.passwords.is_empty().then(|| self.guest(None))
    }

    fn by_name(&self, user: &[u8], password: &[u8]) -> Option<Guest<Client>> {
        let user = std::str::from_utf8(user).ok()?;
        let known = self.passwords.get(user)?;
        (known.as_bytes() == password).then(|| self.guest(Some(user)))
    }

    fn may_stay(&self, name: &str) -> bool {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        !gone.iter().any(|one| one == name)
    }
}

/// Whether a key begins like this.
fn has_key(requests: &[Request<'_>], prefix: &[u8]) -> bool {
    let mut keys = requests.iter().filter_map(|request| request.operation.key());
    keys.any(|key| key.starts_with(prefix))
}

impl Cache for Client {
    type Writer = ModelWriter;
    type Reader = ModelReader;

    fn run(&mut self, asked: &[Request<'_>], now_s: u64, answers: &mut Answers<'_, ModelReader>) {
        if self.would_wait(asked, now_s) || has_key(asked, STUCK) {
            self.gate.pass();
        }
        self.cache().run(asked, now_s, answers);
    }

    fn would_wait(&self, requests: &[Request<'_>], _now_s: u64) -> bool {
        has_key(requests, SLOW)
    }

    fn begin_store(&mut self, store: &Store<'_>, now_s: u64) -> Result<ModelWriter, Fault> {
        self.cache().begin_store(store, now_s)
    }

    fn finish_store(
        &mut self,
        writer: ModelWriter,
        store: &Store<'_>,
        now_s: u64,
    ) -> Result<Answer, Fault> {
        self.cache().finish_store(writer, store, now_s)
    }

    fn figures(&mut self, now_s: u64) -> Figures {
        self.cache().figures(now_s)
    }
}
