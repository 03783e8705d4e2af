//! The connections of replicated buckets.

use std::sync::Arc;
use std::time::Duration;

use ::buckets::Buckets;
use engine::Client;
use replicas::{Address, Listening, Replicas, ReplicasOptions};

use super::absolute_path::absolute_path;
use super::notices::Teller;
use crate::args::ServeArgs;
use crate::error::CliError;

/// How long a change waits for the replica.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Those of a server; none of a store that is only read.
pub(super) struct ReplicationDoor {
    replicas: Option<Replicas>,
    listening: Vec<Listening>,
}

impl ReplicationDoor {
    /// Has buckets connect to their replicas when they are opened.
    pub(super) fn open(
        args: &ServeArgs,
        buckets: &Buckets,
        client: &Client,
        teller: &Teller,
    ) -> Self {
        if args.read_only {
            return Self { replicas: None, listening: Vec::new() };
        }
        let told = teller.clone();
        let observer =
            Arc::new(move |notice: &replicas::Notice| told.tell(format_args!("{notice}")));
        let options = ReplicasOptions { wait_max: WAIT_MAX, observer };
        let replicas = Replicas::new(client.clone(), options);
        buckets.set_replicator(Arc::new(replicas.clone()));
        Self { replicas: Some(replicas), listening: Vec::new() }
    }

    /// Waits for primaries at these addresses.
    pub(super) fn listen(mut self, addresses: &[Address]) -> Result<Self, CliError> {
        let Some(replicas) = &self.replicas else { return Ok(self) };
        for address in addresses {
            self.listening.push(Listening::start(replicas, &replica_from_anywhere(address))?);
        }
        Ok(self)
    }

    /// Where it waits, with the ports that were chosen.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.listening.iter().map(|one| one.address().to_string()).collect()
    }

    /// Ends the connections by which replicas are written.
    pub(super) fn close(self) {
        drop(self.listening);
        if let Some(replicas) = self.replicas {
            replicas.close();
        }
    }
}

/// The same address for processes with another working directory.
pub(in crate::commands) fn replica_from_anywhere(address: &Address) -> Address {
    match address {
        Address::Unix(path) => Address::Unix(absolute_path(path)),
        Address::Tcp(_) => address.clone(),
    }
}
