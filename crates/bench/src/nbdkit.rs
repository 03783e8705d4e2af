//! The contestant nbdkit: its `file` plugin on a preallocated file, through the page cache; and its
//! `memory` plugin.

use std::ffi::OsStr;
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
        Self::serve(&[OsStr::new("file"), file.as_os_str()], file)
    }

    /// Serves memory; what it says goes to a log in `folder`.
    pub(crate) fn of_memory(folder: &Path, size_bytes: u64) -> Result<Self, Failure> {
        let size = size_bytes.to_string();
        Self::serve(&[OsStr::new("memory"), OsStr::new(&size)], &folder.join("memory"))
    }

    fn serve(plugin: &[&OsStr], beside: &Path) -> Result<Self, Failure> {
        let socket = socket_path("nbdkit");
        let mut command = bound("nbdkit");
        command.args(["--foreground", "--unix"]).arg(&socket).args(plugin);
        let log = beside.with_extension("log");
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
