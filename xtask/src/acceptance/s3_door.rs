//! The S3 door of a store under test: where it is, and who may do all there.

use std::net::TcpListener;

use crate::acceptance::Setting;
use crate::acceptance::server::Store;
use crate::failure::Failure;
use crate::program::Program;

/// An address, which is the same for every server of the store, and an account.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) endpoint: String,
    pub(crate) address: String,
    pub(crate) access_key: String,
    pub(crate) secret: String,
}

impl Door {
    /// An account that may do all, and a port that nobody has.
    pub(crate) fn of(setting: &Setting, store: &Store) -> Result<Self, Failure> {
        let account = Program::new(setting.tamis()).args(["account", "create"]);
        let account = account.path(store.folder()).args(["acceptance", "--write", "*", "--json"]);
        let made = account.json()?;
        let text = |field: &str| made[field].as_str().unwrap_or_default().to_owned();
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let free = free.map_err(|error| Failure::unmet("a free port", error.to_string()))?;
        let address = free.to_string();
        Ok(Self {
            endpoint: format!("http://{address}"),
            address,
            access_key: text("access_key"),
            secret: text("secret"),
        })
    }

    /// What `tamis serve --s3` is to be given.
    pub(crate) fn listen(&self) -> String {
        format!("tcp:{}", self.address)
    }

    /// A Python script of ours that begins with asking where, and as whom.
    pub(crate) fn script(&self, setting: &Setting, name: &str) -> Program {
        setting.script(name).arg(&self.endpoint).arg(&self.access_key).arg(&self.secret)
    }
}
