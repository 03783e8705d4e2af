//! What becomes of a volume that is there when an image is copied into it over NBD.

use crate::size::human_bytes;

/// What of a volume such a copy replaces. It leaves the rest as it is, other than an import, which
/// makes zeros of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// The volume is yet to be made.
    Nothing,
    All,
    /// As far as the image reaches, where that is known.
    Beginning(Option<u64>),
}

impl Replaced {
    /// The same of `volume`, as a clause behind that it is done.
    pub(super) fn clause(self, volume: &str) -> String {
        let reach = match self {
            Self::Nothing => return String::new(),
            Self::All => return format!(", which replaces what {volume} holds"),
            Self::Beginning(Some(bytes)) => format!("the first {} of", human_bytes(bytes)),
            Self::Beginning(None) => "as much as the image has of".to_owned(),
        };
        format!(
            ", which replaces {reach} what {volume} holds and leaves what lies beyond (an import \
             would make zeros of it)"
        )
    }
}
