//! Where the doors of a server listen.

use std::net::SocketAddr;

use memcached_door::Address;
use nbd::Listen;

/// The addresses of each door, with the ports that were chosen.
#[derive(Clone, Copy)]
pub(super) struct Listening<'a> {
    pub(super) nbd: &'a [Listen],
    pub(super) s3: &'a [SocketAddr],
    pub(super) memcached: &'a [Address],
    /// Where it waits for servers whose buckets are replicated to this one.
    pub(super) replicas: &'a [String],
}
