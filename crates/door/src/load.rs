//! How much of a connection's share something takes: a count of requests, and bytes of reads.

use crate::request::Request;

/// Requests in flight on one connection.
pub const REQUESTS_MAX: usize = 256;
/// Bytes of reads in flight on one connection, however much memory the engine has; one read may
/// exceed it alone.
pub const READ_BYTES_MAX: usize = 64 << 20;

/// What requests take of a connection's share.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub(crate) requests: usize,
    pub(crate) read_bytes: usize,
}

impl Load {
    /// What one request takes.
    pub(crate) fn of<T>(request: &Request<T>) -> Self {
        Self { requests: 1, read_bytes: request.read_bytes() }
    }

    /// The same and what `request` takes.
    pub fn add<T>(&mut self, request: &Request<T>) {
        self.requests += 1;
        self.read_bytes += request.read_bytes();
    }

    pub(crate) fn has_capacity_for<T>(&self, request: &Request<T>, read_bytes_max: usize) -> bool {
        let read_bytes = request.read_bytes();
        self.requests < REQUESTS_MAX
            && (read_bytes == 0
                || self.read_bytes == 0
                || self.read_bytes + read_bytes <= read_bytes_max)
    }
}
