//! The contestant nbdkit: its `file` plugin on a preallocated file, through the page cache.

use std::path::Path;

use crate::failure::Failure;
use crate::fio::Target;
use crate::program::{Server, bound, socket_path, uri};

/// A served file.
pub(crate) struct Nbdkit {
    server: Server,
}

impl Nbdkit {
    /// Serves `file`.
    pub(crate) fn start(file: &Path) -> Result<Self, Failure> {
        let socket = socket_path("nbdkit");
        let mut command = bound("nbdkit");
        command.args(["--foreground", "--unix"]).arg(&socket);
        command.arg("file").arg(file);
        let log = file.with_extension("log");
        Ok(Self { server: Server::start("nbdkit", &mut command, socket, log)? })
    }

    /// Ends the server.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        self.server.stop()
    }

    /// Where clients find the file.
    pub(crate) fn target(&self) -> Target {
        Target::Nbd { uri: uri(&socket_path("nbdkit"), "") }
    }
}
