//! A store as commands see it. They do not know whether this command opened it or another process
//! serves it: both are asked in the control language, and both give out and take the bytes of their
//! volumes ([`crate::data`]). Only who checks or enlarges a store needs it for itself and asks for
//! an [`OpenStore`].
//!
//! ```text
//! Store::with ── a server answers at control.sock ──> Served (admin::Client)
//!            └── nobody does ── lock, files, engine thread ──> Here (OpenStore, admin::Local)
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ::buckets::{BucketsOptions, DomainQuotas};
use accounts::Accounts;
use admin::{
    CloseBucket, Control, ControlError, Disconnect, GetObject, Local, ObjectPut, ObjectSink,
    ObjectSource, PutObject, Spoken,
};
use engine::control::{DeleteRequest, GetStats, ListOpens, RenameVolume, ResizeVolume};
use engine::{Options, RequestError, Stats, VolumeInfo, VolumeKind, VolumeWritten};
use tenants::Tenants;

use crate::args::Force;
use crate::error::{BucketsError, CliError, Present};
use crate::output;
use crate::removal::remove_zone;
use crate::store::{OpenStore, question_options};

/// How often clients are disconnected for one change: those that connect again by themselves are
/// back within milliseconds, and mostly too late.
const DISCONNECTIONS_MAX: usize = 50;
/// A pause until requests of disconnected clients have ended.
const UNDER_WAY_PAUSE: Duration = Duration::from_millis(20);

/// A store for questions, changes, and bytes.
pub(crate) enum Store {
    /// Opened by this command.
    Here(OpenStore, Box<Local>),
    /// Served by another process.
    Served(Served),
}

/// A store that another process serves.
pub(crate) struct Served {
    /// Where the store is.
    pub(crate) path: PathBuf,
    server: Mutex<admin::Client>,
}

/// The quotas of tenants, for their buckets.
pub(crate) fn quotas_of(tenants: &Arc<Tenants>) -> DomainQuotas {
    let tenants = Arc::clone(tenants);
    DomainQuotas::new(move |domain| tenants.of_domain(domain)?.quota_bytes())
}

/// Its server, when the store at `path` is being served.
pub(crate) fn connect(path: &Path) -> Result<Option<admin::Client>, CliError> {
    Ok(admin::Client::connect(path)?)
}

impl Store {
    /// Reaches the store at `path`, lets `work` use it, and closes it whatever `work` came to.
    pub(crate) fn with<T>(
        path: &Path,
        work: impl FnOnce(&Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        Self::with_options(path, question_options, work)
    }

    /// The same for who moves bytes: an engine that this command opens is as `options` say.
    pub(crate) fn with_engine<T>(
        path: &Path,
        options: &Options,
        work: impl FnOnce(&Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let options = || ::store::Options { engine: options.clone(), ..Default::default() };
        Self::with_options(path, options, work)
    }

    fn with_options<T>(
        path: &Path,
        options: impl Fn() -> ::store::Options,
        work: impl FnOnce(&Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let store = match connect(path)? {
            Some(server) => {
                Self::Served(Served { path: path.to_owned(), server: Mutex::new(server) })
            }
            None => {
                let store = OpenStore::open_to_read(path, options)?;
                let (client, place) = (store.client().clone(), path.to_owned());
                let remove =
                    move |zone| remove_zone(&place, &client, zone).map_err(CliError::into_refusal);
                // Where the accounts cannot be read nobody has limits: this is their operator.
                let tenants = Arc::new(Accounts::in_directory(path));
                let tenants = Tenants::over(tenants).map(Arc::new).ok();
                let buckets = BucketsOptions {
                    is_read_only: store.is_read_only(),
                    domain_quotas: tenants.as_ref().map(quotas_of),
                    ..BucketsOptions::default()
                };
                let local = Local::new(store.client().clone())
                    .with_remover(Box::new(remove))
                    .with_buckets_options(buckets)
                    .with_tenants(tenants);
                Self::Here(store, Box::new(local))
            }
        };
        let result = work(&store).map_err(|error| store.with_present(path, error));
        let closed = store.close();
        let value = result?;
        closed.map(|()| value)
    }

    /// The same error; where a volume or snapshot is not there it says what there is.
    fn with_present(&self, path: &Path, error: CliError) -> CliError {
        let name = match &error {
            CliError::NoVolume { name, .. }
            | CliError::Request(RequestError::NoSuchVolume { name }) => name.clone(),
            _ => return error,
        };
        match self.volumes() {
            Ok(volumes) => {
                let asked = name.split('@').next();
                // `tamis volume list` leaves buckets out, and so does this, but for the one asked.
                let listed = volumes.into_iter().filter(|volume| {
                    let of = volume.name.split('@').next();
                    volume.kind == VolumeKind::Block || of == asked
                });
                let names: Vec<String> = listed.map(|volume| volume.name).collect();
                CliError::absent(path, &name, &names)
            }
            Err(_) => error,
        }
    }

    fn close(self) -> Result<(), CliError> {
        match self {
            Self::Here(store, local) => {
                // What was acknowledged as durable is; a full store has no room for the merge.
                if let Err(error) = local.close_buckets() {
                    output::say(format_args!(
                        "note: a bucket was not closed well, and opens more slowly next: {error}"
                    ));
                }
                store.close()
            }
            Self::Served(_) => Ok(()),
        }
    }

    /// Whether another process has it.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask<V: Spoken>(&self, verb: V) -> Result<V::Answer, CliError> {
        let mut asked = self;
        Ok(Control::ask(&mut asked, verb)?)
    }

    /// Checks that no client has the volume or snapshot of this name open, or that `force` lets
    /// clients be disconnected.
    ///
    /// # Errors
    /// [`RequestError::InUse`] names them.
    pub(crate) fn check_unopened(&self, name: &str, force: Force) -> Result<(), CliError> {
        let name = name.to_owned();
        let opens = self.ask(ListOpens { name: name.clone() })?;
        if opens.is_empty() || force.force {
            return Ok(());
        }
        Err(RequestError::InUse { name, opens }.into())
    }

    /// That nobody has a volume open from now on, unless a client comes back. With `force` the
    /// server disconnects its clients.
    ///
    /// # Errors
    /// [`RequestError::InUse`] names those who have it open, without `force` or in spite of it.
    pub(crate) fn end_opens(&self, name: &str, force: Force) -> Result<(), CliError> {
        if force.force && self.check_unopened(name, Force { force: false }).is_err() {
            self.ask(Disconnect { name: name.to_owned() })?;
        }
        self.check_unopened(name, Force { force: false })
    }

    /// Asks for a change that no client may have the volume open for. With `force` the server
    /// disconnects its clients first.
    ///
    /// # Errors
    /// [`RequestError::InUse`] names those who have it open, without `force` or in spite of it.
    pub(crate) fn ask_alone<V: Spoken + Clone>(
        &self,
        verb: V,
        force: Force,
    ) -> Result<V::Answer, CliError> {
        for _ in 0..DISCONNECTIONS_MAX {
            match self.ask(verb.clone()) {
                Err(CliError::Request(RequestError::InUse { name, .. })) if force.force => {
                    self.ask(Disconnect { name })?;
                }
                Err(CliError::Request(RequestError::RequestsUnderWay { .. })) if force.force => {
                    thread::sleep(UNDER_WAY_PAUSE);
                }
                outcome => return outcome,
            }
        }
        self.ask(verb)
    }

    /// All volumes and snapshots, by name.
    pub(crate) fn volumes(&self) -> Result<Vec<VolumeInfo>, CliError> {
        let mut asked = self;
        Ok(Control::volumes(&mut asked)?)
    }

    /// The figures of the store.
    pub(crate) fn stats(&self) -> Result<Stats, CliError> {
        self.ask(GetStats {})
    }

    /// What was written into a volume since the store was opened; nothing where it is gone.
    pub(crate) fn written_into(&self, name: &str) -> Result<VolumeWritten, CliError> {
        Ok(self.stats()?.written_into(name))
    }

    /// Gives a volume another size, smaller if need be.
    pub(crate) fn resize(&self, name: &str, size_bytes: u64) -> Result<VolumeInfo, CliError> {
        let (name, may_shrink, even_if_open) = (name.to_owned(), true, false);
        self.ask(ResizeVolume { name, size_bytes, may_shrink, even_if_open })
    }

    /// Gives a volume another name.
    pub(crate) fn rename(&self, name: &str, new_name: &str) -> Result<VolumeInfo, CliError> {
        self.ask(RenameVolume { name: name.to_owned(), new_name: new_name.to_owned() })
    }

    /// Deletes whatever has this name, if that has no snapshots.
    pub(crate) fn delete(&self, name: &str) -> Result<(), CliError> {
        self.ask(DeleteRequest::of(name))
    }

    /// The same, with its snapshots.
    pub(crate) fn delete_with_snapshots(&self, name: &str) -> Result<(), CliError> {
        self.ask(DeleteRequest { with_snapshots: true, ..DeleteRequest::of(name) })
    }

    /// The block volume of this name: what is done to volumes alone is not done to a bucket.
    ///
    /// # Errors
    /// [`BucketsError::IsBucket`] names the command for buckets.
    pub(crate) fn block_volume(&self, path: &Path, name: &str) -> Result<VolumeInfo, CliError> {
        let volume = self.volume(path, name)?;
        match volume.kind {
            VolumeKind::Block => Ok(volume),
            VolumeKind::Bucket => Err(BucketsError::is_bucket(path, name).into()),
        }
    }

    /// Has the bucket or snapshot closed that the server keeps open for quick access; a volume is
    /// left as it is.
    pub(crate) fn close_bucket(&self, volume: &VolumeInfo) -> Result<(), CliError> {
        match volume.kind {
            VolumeKind::Block => Ok(()),
            VolumeKind::Bucket => self.ask(CloseBucket { name: volume.name.clone() }),
        }
    }

    /// Puts an object; durable when this returns.
    pub(crate) fn put_object(
        &self,
        wish: PutObject,
        source: &mut impl ObjectSource<Error = CliError>,
    ) -> Result<ObjectPut, CliError> {
        match self {
            Self::Here(_, local) => local.put_object(&wish, source),
            Self::Served(served) => served.client().put_object(wish, source),
        }
    }

    /// Reads an object into `sink`.
    pub(crate) fn get_object(
        &self,
        wish: GetObject,
        sink: &mut impl ObjectSink<Error = CliError>,
    ) -> Result<(), CliError> {
        match self {
            Self::Here(_, local) => local.get_object(&wish, sink),
            Self::Served(served) => served.client().get_object(wish, sink),
        }
    }

    /// The volume or snapshot of this name in the store at `path`.
    pub(crate) fn volume(&self, path: &Path, name: &str) -> Result<VolumeInfo, CliError> {
        let found = self.volumes()?.into_iter().find(|volume| volume.name == name);
        found.ok_or_else(|| CliError::NoVolume {
            store: path.to_owned(),
            name: name.to_owned(),
            present: Present::default(),
        })
    }
}

impl Served {
    fn client(&self) -> MutexGuard<'_, admin::Client> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Control for &Store {
    fn ask<V: Spoken>(&mut self, verb: V) -> Result<V::Answer, ControlError> {
        match self {
            Store::Here(_, local) => verb.carry_out(local),
            Store::Served(served) => Control::ask(&mut *served.client(), verb),
        }
    }
}
