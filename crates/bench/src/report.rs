//! All that was measured in one call, for people, for programs, and for `docs/measurements`.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use serde::Serialize;

use crate::failure::Failure;
use crate::in_process::InProcess;
use crate::kinds::Kinds;
use crate::machine::Machine;
use crate::nbd::Nbd;
use crate::overwrite::Overwrite;

/// One call's figures.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) in_process: Option<InProcess>,
    pub(crate) nbd: Option<Nbd>,
    pub(crate) overwrite: Option<Overwrite>,
    pub(crate) kinds: Option<Kinds>,
}

impl Report {
    /// As JSON, with every sample.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Writes it as a page of the measurements.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let page = format!(
            "# 002: first figures\n\nMade by the command below, which overwrites this page.\n\n\
             {self}"
        );
        std::fs::write(path, page).map_err(Failure::file(path))
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Machine { processor, cores, memory_mib, kernel, date, commit, command } = &self.machine;
        writeln!(
            f,
            "- **Machine**: {cores} CPUs of {processor}, {memory_mib} MiB, {kernel}\n\
             - **Commit**: {commit}\n- **Date**: {date}\n- **Command**: `{command}`"
        )?;
        if let Some(figures) = &self.in_process {
            write!(f, "\n## The engine beside its kernels\n\n{figures}")?;
        }
        if let Some(figures) = &self.nbd {
            write!(f, "\n## Through NBD, beside nbdkit and O_DIRECT\n\n{figures}")?;
        }
        if let Some(figures) = &self.overwrite {
            write!(f, "\n## Overwriting at random\n\n{figures}")?;
        }
        if let Some(figures) = &self.kinds {
            write!(f, "\n## Fingerprints\n\n{figures}")?;
        }
        Ok(())
    }
}
