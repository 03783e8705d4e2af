//! The door of S3, where the operator wants one.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use ::buckets::Buckets;
use s3::{S3Options, S3Server, Timeouts};
use tenants::Tenants;

use super::notices::Teller;
use crate::error::CliError;
use crate::shell::shell_path;

/// A door that listens, or none.
pub(super) struct S3Door {
    server: Option<S3Server>,
    addresses: Vec<SocketAddr>,
}

impl S3Door {
    /// Listens at all of `addresses`; without one there is no door and no thread of it.
    pub(super) fn open(
        addresses: &[SocketAddr],
        buckets: &Buckets,
        tenants: &Arc<Tenants>,
        place: &Path,
        teller: &Teller,
    ) -> Result<Self, CliError> {
        if addresses.is_empty() {
            return Ok(Self { server: None, addresses: Vec::new() });
        }
        if tenants.accounts().list()?.is_empty() {
            teller.tell(format_args!(
                "note: no account may use S3 yet: make one with `tamis account create {} NAME \
                 --write '*'`",
                shell_path(place)
            ));
        }
        let told = teller.clone();
        let observer = Box::new(move |note: &str| told.tell(format_args!("warning: {note}")));
        let (buckets, tenants) = (buckets.clone(), Arc::clone(tenants));
        let options = S3Options { buckets, tenants, observer, timeouts: Timeouts::default() };
        let mut server = S3Server::start(options)?;
        let listening = addresses.iter().map(|address| server.listen(*address));
        let addresses = listening.collect::<Result<_, _>>()?;
        Ok(Self { server: Some(server), addresses })
    }

    /// Where it listens, with the ports that were chosen.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Answers what is under way, and ends.
    pub(super) fn close(self) {
        if let Some(server) = self.server {
            server.stop();
        }
    }
}
