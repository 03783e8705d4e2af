//! A store that is open in this process, for whoever asks here and for its server.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::ControlError;
use crate::protocol::{Grown, GrowthWish, Refusal, RefusalKind, Status};

/// What the server says of itself. It can be set after the server has started: the control socket
/// is opened first, so that whoever gets through an NBD door finds it open.
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

/// A running engine that is asked in the control language.
pub struct Local {
    client: engine::Client,
    status: SharedStatus,
    /// One growth at a time: a second would plan from what the first is about to change.
    grower: Mutex<Option<Grower>>,
}

impl Local {
    /// Over `client`.
    #[must_use]
    pub fn new(client: engine::Client) -> Self {
        Self { client, status: SharedStatus::default(), grower: Mutex::default() }
    }

    /// The same of a store that is served: `status` is told to whoever asks, and `grower` makes the
    /// store larger.
    #[must_use]
    pub fn served(client: engine::Client, status: SharedStatus, grower: Grower) -> Self {
        Self { client, status, grower: Mutex::new(Some(grower)) }
    }

    pub(crate) fn client(&self) -> &engine::Client {
        &self.client
    }

    pub(crate) fn status(&self) -> Status {
        self.status.get()
    }

    pub(crate) fn grow(&self, wish: GrowthWish) -> Result<Grown, ControlError> {
        let grower = self.grower.lock().unwrap_or_else(PoisonError::into_inner);
        match grower.as_ref() {
            Some(grow) => grow(wish),
            None => Err(cannot_grow().into()),
        }
    }
}

fn cannot_grow() -> Refusal {
    let sentence = "this process does not know where the files of the store are".to_owned();
    Refusal { kind: RefusalKind::Failed, sentence }
}
