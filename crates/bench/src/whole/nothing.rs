//! A server that does nothing: what the client and the socket alone allow and cost. A server that
//! does something hardly gives the client more, or takes less of the machine.

use std::path::Path;

use super::system::System;
use crate::failure::Failure;
use crate::fio::Target;
use crate::nbdkit::Nbdkit;

/// It, and its server.
pub(super) struct Nothing(Nbdkit);

impl Nothing {
    /// Serves so many bytes of nothing; what the server says goes to a log in `folder`.
    pub(super) fn start(folder: &Path, size_bytes: u64) -> Result<Self, Failure> {
        Nbdkit::of_nothing(folder, size_bytes).map(Self)
    }
}

impl System for Nothing {
    fn target(&self) -> Target {
        self.0.target()
    }

    /// It knows nothing.
    fn restart(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn stored_bytes(&self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn remove(self: Box<Self>) -> Result<(), Failure> {
        self.0.stop()
    }
}
