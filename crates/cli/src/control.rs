//! A store as commands see it that ask and change settings. They do not know whether this command
//! opened it or another process serves it: both are asked in the control language. Who moves bytes
//! or checks needs the store for itself and asks for an [`OpenStore`].
//!
//! ```text
//! Store::with ── a server answers at control.sock ──> Served (admin::Client)
//!            └── nobody does ── lock, files, engine thread ──> Here (OpenStore, admin::Local)
//! ```

use std::path::Path;
use std::thread;
use std::time::Duration;

use admin::{Control, Disconnect, Local, Spoken};
use engine::control::ListOpens;
use engine::{RequestError, VolumeInfo};

use crate::args::Force;
use crate::error::CliError;
use crate::store::{OpenStore, question_options};

/// How often clients are disconnected for one change: those that connect again by themselves are
/// back within milliseconds, and mostly too late.
const DISCONNECTIONS_MAX: usize = 50;
/// A pause until requests of disconnected clients have ended.
const UNDER_WAY_PAUSE: Duration = Duration::from_millis(20);

/// A store for questions and small changes.
pub(crate) enum Store {
    /// Opened by this command.
    Here(OpenStore, Local),
    /// Served by another process.
    Served(admin::Client),
}

/// Its server, when the store at `path` is being served.
pub(crate) fn connect(path: &Path) -> Result<Option<admin::Client>, CliError> {
    Ok(admin::Client::connect(path)?)
}

impl Store {
    /// Reaches the store at `path`, lets `work` use it, and closes it whatever `work` came to.
    pub(crate) fn with<T>(
        path: &Path,
        work: impl FnOnce(&mut Self) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let mut store = match connect(path)? {
            Some(client) => Self::Served(client),
            None => {
                let store = OpenStore::open_to_read(path, question_options)?;
                let local = Local::new(store.client().clone());
                Self::Here(store, local)
            }
        };
        let result = work(&mut store);
        let closed = store.close();
        let value = result?;
        closed.map(|()| value)
    }

    fn close(self) -> Result<(), CliError> {
        match self {
            Self::Here(store, _) => store.close(),
            Self::Served(_) => Ok(()),
        }
    }

    /// Whether another process has it.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask<V: Spoken>(&mut self, verb: V) -> Result<V::Answer, CliError> {
        Ok(match self {
            Self::Here(_, local) => local.ask(verb)?,
            Self::Served(server) => server.ask(verb)?,
        })
    }

    /// That nobody has the volume or snapshot of this name open, or that whoever has it may be
    /// disconnected.
    ///
    /// # Errors
    /// [`RequestError::InUse`] names them.
    pub(crate) fn check_unopened(&mut self, name: &str, force: Force) -> Result<(), CliError> {
        let name = name.to_owned();
        let opens = self.ask(ListOpens { name: name.clone() })?;
        if opens.is_empty() || force.force {
            return Ok(());
        }
        Err(RequestError::InUse { name, opens }.into())
    }

    /// Asks for a change for which nobody may have a volume open. With `force` whoever has is
    /// disconnected first.
    ///
    /// # Errors
    /// [`RequestError::InUse`] names those who have it open, without `force` or in spite of it.
    pub(crate) fn ask_alone<V: Spoken + Clone>(
        &mut self,
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
    pub(crate) fn volumes(&mut self) -> Result<Vec<VolumeInfo>, CliError> {
        Ok(match self {
            Self::Here(_, local) => local.volumes()?,
            Self::Served(server) => server.volumes()?,
        })
    }

    /// The volume or snapshot of this name in the store at `path`.
    pub(crate) fn volume(&mut self, path: &Path, name: &str) -> Result<VolumeInfo, CliError> {
        let found = self.volumes()?.into_iter().find(|volume| volume.name == name);
        found.ok_or_else(|| CliError::NoVolume { store: path.to_owned(), name: name.to_owned() })
    }
}
