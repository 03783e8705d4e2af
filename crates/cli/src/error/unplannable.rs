//! Why `tamis plan` makes no plan.

use std::path::PathBuf;

/// What a plan cannot be made of.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unplannable {
    #[error("{} holds no prices: {reason}; `tamis plan --help` names them", path.display())]
    NoPrices { path: PathBuf, reason: String },
    #[error(
        "there is no data under the paths that a plan could be made by: name others, or give \
         --duplicates and --compressed"
    )]
    NoData,
}
