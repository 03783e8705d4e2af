//! Why a stream of changes is not applied to a volume.

use super::Exit;

/// What keeps a stream from its volume. Nothing of the stream stays.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamNotApplied {
    #[error(
        "the stream holds what changed since snapshot {base}, and its base {volume}@{base} is not \
         in this store: import the stream that ends at {base} first"
    )]
    NoBase { volume: String, base: String },
    #[error(
        "{volume}@{base} is not the snapshot that the stream is based on: it was taken of another \
         volume or at another moment, has another size or holds other bytes"
    )]
    OtherBase { volume: String, base: String },
    #[error(
        "volume {volume} has changed since {volume}@{base}: add --overwrite to give these changes \
         up; a clone of a snapshot that you take now keeps them"
    )]
    ChangedSinceBase { volume: String, base: String },
    #[error(
        "the stream was applied, and {volume} does not hold what {target} is said to hold; nothing \
         of it was kept"
    )]
    NotTheTarget { volume: String, target: String },
}

impl StreamNotApplied {
    /// What the error means to a script.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::NoBase { .. } => Exit::NotFound,
            Self::OtherBase { .. } => Exit::Usage,
            Self::ChangedSinceBase { .. } => Exit::Exists,
            Self::NotTheTarget { .. } => Exit::Damage,
        }
    }
}
