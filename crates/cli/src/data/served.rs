//! A volume of a store that another process serves: NBD over connections to its control socket.
//!
//! The server expands what one connection reads on one thread, so there is a connection for every
//! two processors, and requests take turns with them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::{Extent, RequestError};
use nbd::client::{Client, ClientError, Done, Wish};
use nbd::wire::STATE_HOLE;

use super::sink::{WriteFailure, WriteSink};
use crate::control::connect;
use crate::error::CliError;
use crate::opener::opener;
use crate::store::processors;

/// The longest range that is zeroed by one request.
pub(super) const ZERO_BYTES_MAX: u64 = 1 << 30;
/// Connections to one volume.
const CONNECTIONS_MAX: usize = 4;
/// Requests on each that hide the way there and back.
const READERS_PER_CONNECTION: usize = 6;
/// Where data and holes are.
const ALLOCATION: &str = "base:allocation";

/// A volume that another process serves.
#[derive(Debug)]
pub(crate) struct ServedVolume {
    connections: Vec<Client>,
    next: AtomicUsize,
    /// The number of [`ALLOCATION`].
    allocation: u32,
}

impl ServedVolume {
    /// Opens `name` of the store at `path` for `command`.
    pub(super) fn open(path: &Path, name: &str, command: &str) -> Result<Self, CliError> {
        let count = processors().div_ceil(2).min(CONNECTIONS_MAX);
        let connections = (0..count).map(|_| connection(path, name, command));
        let connections = connections.collect::<Result<Vec<_>, _>>()?;
        let first = connections.first().and_then(|first| first.export().contexts.first());
        let allocation = first.ok_or(ClientError::Closed)?.id;
        Ok(Self { connections, next: AtomicUsize::new(0), allocation })
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.connections.first().map_or(0, |first| first.export().size_bytes)
    }

    pub(super) fn readers(&self) -> usize {
        self.connections.len() * READERS_PER_CONNECTION
    }

    /// The connection whose turn it is.
    fn turn(&self) -> Result<&Client, ClientError> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = turn.checked_rem(self.connections.len());
        connection.and_then(|at| self.connections.get(at)).ok_or(ClientError::Closed)
    }

    pub(super) fn read(&self, offset_bytes: u64, bytes: &mut Vec<u8>) -> Result<(), CliError> {
        *bytes = self.turn()?.read(offset_bytes, std::mem::take(bytes))?;
        Ok(())
    }

    pub(super) fn extents(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<Vec<Extent>, CliError> {
        let told = self.turn()?.extents(self.allocation, offset_bytes, length_bytes)?;
        let mut left_bytes = length_bytes;
        let mut extents = Vec::new();
        for extent in told {
            // The last may end behind what was asked for.
            let length_bytes = extent.length_bytes.min(left_bytes);
            left_bytes -= length_bytes;
            if length_bytes > 0 {
                extents.push(Extent { length_bytes, hole: extent.flags & STATE_HOLE != 0 });
            }
        }
        Ok(extents)
    }

    pub(super) fn write<S: WriteSink>(&self, offset_bytes: u64, bytes: &[u8], sink: &Arc<S>) {
        match self.turn() {
            Ok(connection) => connection.begin_write(offset_bytes, bytes, false, told(sink)),
            Err(error) => sink.end(Err(WriteFailure::Served(error))),
        }
    }

    pub(super) fn zero<S: WriteSink>(&self, offset_bytes: u64, length_bytes: u64, sink: &Arc<S>) {
        match self.turn() {
            Ok(connection) => {
                connection.begin_write_zeroes(offset_bytes, length_bytes, told(sink));
            }
            Err(error) => sink.end(Err(WriteFailure::Served(error))),
        }
    }

    /// Over whichever connection something was written.
    pub(super) fn flush(&self) -> Result<(), CliError> {
        Ok(self.turn()?.flush()?)
    }
}

fn connection(path: &Path, name: &str, command: &str) -> Result<Client, CliError> {
    let server = connect(path)?.ok_or(ClientError::Closed)?;
    let stream = server.open_data(opener(command).who)?;
    let wish = Wish { export: name, structured: true, contexts: &[ALLOCATION] };
    Client::over(stream, wish).map_err(|error| match error {
        ClientError::NoExport { .. } => RequestError::NoSuchVolume { name: name.to_owned() }.into(),
        error => error.into(),
    })
}

fn told<S: WriteSink>(sink: &Arc<S>) -> Done {
    let sink = Arc::clone(sink);
    Box::new(move |answer| sink.end(answer.map(drop).map_err(WriteFailure::Served)))
}
