//! A store that is open in this process, for callers here and for its server.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use buckets::{Buckets, BucketsOptions};
use engine::control::CloseOpens;
use engine::{Ending, OpenInfo, RequestError};
use tenants::Tenants;

use crate::caches::{CacheShown, SharedCaches};
use crate::error::ControlError;
use crate::protocol::{
    DataOpened, DataRemoved, Grown, GrowthWish, Identity, Refusal, RefusalKind, Status,
};

/// How long connections that are to end may take to answer what they have in flight.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);
/// How long connections that were cut may take to close the volume; a refusal names those that
/// have it open after that.
const CUT_TIME_MAX: Duration = Duration::from_secs(5);
/// How often it is looked whether connections have ended.
const LOOK_TIME: Duration = Duration::from_millis(5);

/// What the server says of itself. It can be set after the server has started: the control socket
/// is opened first, so that a client that gets through an NBD door finds it open.
#[derive(Clone, Debug, Default)]
pub struct SharedStatus(Arc<Mutex<Status>>);

impl SharedStatus {
    /// What is said from now on.
    pub fn set(&self, status: Status) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    fn get(&self) -> Status {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes the store that is served larger, its files first.
pub type Grower = Box<dyn Fn(GrowthWish) -> Result<Grown, ControlError> + Send + Sync>;

/// Takes a data zone that is empty out of the store, then its file.
pub type Remover = Box<dyn Fn(u16) -> Result<DataRemoved, ControlError> + Send + Sync>;

/// Serves volumes over a connection until that ends: it speaks NBD, from its greeting on. The text
/// says who is at the other end.
pub type DataDoor = Box<dyn Fn(UnixStream, String) + Send + Sync>;

/// A running engine that is asked in the control language.
pub struct Local {
    client: engine::Client,
    status: SharedStatus,
    /// One growth at a time: a second would plan from what the first is about to change.
    grower: Mutex<Option<Grower>>,
    remover: Option<Remover>,
    data_door: Option<DataDoor>,
    buckets_options: BucketsOptions,
    tenants: Option<Arc<Tenants>>,
    caches: SharedCaches,
    /// Started when they are first asked for, unless they were given.
    buckets: Mutex<Option<Buckets>>,
}

impl Local {
    /// Over `client`.
    #[must_use]
    pub fn new(client: engine::Client) -> Self {
        let status = SharedStatus::default();
        Self {
            client,
            status,
            grower: Mutex::default(),
            remover: None,
            data_door: None,
            buckets_options: BucketsOptions::default(),
            tenants: None,
            caches: SharedCaches::default(),
            buckets: Mutex::default(),
        }
    }

    /// The same of a store that is served: `status` is told to clients, and `grower` makes the
    /// store larger.
    #[must_use]
    pub fn served(client: engine::Client, status: SharedStatus, grower: Grower) -> Self {
        let grower = Mutex::new(Some(grower));
        Self { grower, status, ..Self::new(client) }
    }

    /// Has `remover` take data files out of the store.
    #[must_use]
    pub fn with_remover(self, remover: Remover) -> Self {
        Self { remover: Some(remover), ..self }
    }

    /// Hands connections over which bytes of volumes are to go to `data_door`.
    #[must_use]
    pub fn with_data_door(self, data_door: DataDoor) -> Self {
        Self { data_door: Some(data_door), ..self }
    }

    /// Knows the tenants of the store.
    #[must_use]
    pub fn with_tenants(self, tenants: Option<Arc<Tenants>>) -> Self {
        Self { tenants, ..self }
    }

    pub(crate) fn tenants(&self) -> Option<&Arc<Tenants>> {
        self.tenants.as_ref()
    }

    /// Knows the buckets that are served as caches.
    #[must_use]
    pub fn with_caches(self, caches: SharedCaches) -> Self {
        Self { caches, ..self }
    }

    pub(crate) fn caches(&self) -> Vec<CacheShown> {
        self.caches.list()
    }

    /// Uses buckets that run already, which their owner closes.
    #[must_use]
    pub fn with_buckets(self, buckets: Buckets) -> Self {
        Self { buckets: Mutex::new(Some(buckets)), ..self }
    }

    /// Starts buckets so, when they are first asked for.
    #[must_use]
    pub fn with_buckets_options(self, buckets_options: BucketsOptions) -> Self {
        Self { buckets_options, ..self }
    }

    /// The buckets of the store, started if need be.
    pub(crate) fn buckets(&self) -> Result<Buckets, ControlError> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(buckets) = &*buckets {
            return Ok(buckets.clone());
        }
        let started = Buckets::start(self.client.clone(), self.buckets_options.clone())?;
        *buckets = Some(started.clone());
        Ok(started)
    }

    /// Closes the buckets, if they were started; before the engine is closed.
    ///
    /// # Errors
    /// [`ControlError`] of the first that could not be closed; nothing that was acknowledged is
    /// lost.
    pub fn close_buckets(&self) -> Result<(), ControlError> {
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(buckets.map_or(Ok(()), |buckets| buckets.close())?)
    }

    pub(crate) fn client(&self) -> &engine::Client {
        &self.client
    }

    pub(crate) fn status(&self) -> Status {
        self.status.get()
    }

    pub(crate) fn identity(&self) -> Result<Identity, ControlError> {
        let geometry = self.client.geometry()?;
        Ok(Identity { uuid: geometry.uuid, chunk_bytes: geometry.chunk_bytes })
    }

    pub(crate) fn data_door(&self) -> Option<&DataDoor> {
        self.data_door.as_ref()
    }

    /// Says whether there is a way for bytes; who has the connection hands it over.
    pub(crate) fn open_data(&self) -> Result<DataOpened, ControlError> {
        match self.data_door {
            Some(_) => Ok(DataOpened {}),
            None => Err(has_no_data_door().into()),
        }
    }

    /// Carries out [`crate::Disconnect`].
    pub(crate) fn disconnect(&self, name: &str) -> Result<Vec<OpenInfo>, ControlError> {
        let close = |ending| self.client.ask(CloseOpens { name: name.to_owned(), ending });
        let asked = close(Ending::Drain)?;
        let began = Instant::now();
        loop {
            let opens = match self.client.opens(name) {
                // Deleted meanwhile, and with it nobody's.
                Err(RequestError::NoSuchVolume { .. }) => Vec::new(),
                opens => opens?,
            };
            let left: Vec<_> = opens.into_iter().filter(|open| asked.contains(open)).collect();
            if left.is_empty() {
                return Ok(asked);
            }
            match began.elapsed() {
                elapsed if elapsed < DRAIN_TIME_MAX => {}
                elapsed if elapsed < DRAIN_TIME_MAX + CUT_TIME_MAX => {
                    close(Ending::Cut)?;
                }
                _ => return Err(RequestError::InUse { name: name.to_owned(), opens: left }.into()),
            }
            thread::sleep(LOOK_TIME);
        }
    }

    pub(crate) fn grow(&self, wish: GrowthWish) -> Result<Grown, ControlError> {
        let grower = self.grower.lock().unwrap_or_else(PoisonError::into_inner);
        match grower.as_ref() {
            Some(grow) => grow(wish),
            None => Err(cannot_grow().into()),
        }
    }
}

impl Local {
    /// Carries out [`crate::RemoveData`], never while the store grows.
    pub(crate) fn remove_data(&self, zone: u16) -> Result<DataRemoved, ControlError> {
        let _grower = self.grower.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.remover {
            Some(remove) => remove(zone),
            None => Err(cannot_grow().into()),
        }
    }
}

fn has_no_data_door() -> Refusal {
    let sentence = "this process gives out no bytes of volumes".to_owned();
    Refusal { kind: RefusalKind::Failed, sentence }
}

fn cannot_grow() -> Refusal {
    let sentence = "this process does not know where the files of the store are".to_owned();
    Refusal { kind: RefusalKind::Failed, sentence }
}
