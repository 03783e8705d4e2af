//! Where two versions of a volume differ.

use std::path::PathBuf;

use clap::Args;

use super::options::Format;

/// List the ranges in which two volumes or snapshots differ
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis diff /srv/store vm1@monday vm1@tuesday
  tamis diff /srv/store vm1@monday vm1 --json
The second is what vm1 has changed since. Ranges are in whole chunks and said
from the first to the second: `written` holds other data there (or the same,
written again without deduplication), `unmapped` nothing, which reads as zeros.
What both share is passed over unread, so that it takes as long as the
differences are many. Works while the store is being served; a volume that is
written meanwhile is compared as it is when its turn comes, snapshots do not
change.")]
pub(crate) struct DiffArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// The volume or snapshot that is compared with: VOLUME or VOLUME@NAME
    #[arg(value_name = "VOLUME@A")]
    pub(crate) from: String,
    /// The volume or snapshot whose changes are listed
    #[arg(value_name = "VOLUME@B")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) format: Format,
}
