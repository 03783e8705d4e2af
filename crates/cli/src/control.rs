//! A store as commands see it that ask and change settings. They do not know whether this command
//! opened it or another process serves it: both are asked in the control language. Who moves bytes
//! or checks needs the store for itself and asks for an [`OpenStore`].
//!
//! ```text
//! Store::with ── a server answers at control.sock ──> Served (admin::Client)
//!            └── nobody does ── lock, files, engine thread ──> Here (OpenStore, admin::Local)
//! ```

use std::path::Path;

use admin::{Control, Local, Spoken};
use engine::VolumeInfo;

use crate::error::CliError;
use crate::store::{OpenStore, question_options};

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
                let store = OpenStore::open(path, question_options())?;
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
