//! What stands in a zone that is not this store's.

use std::fmt;

/// What stands in a zone instead of what this store wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What another store wrote.
    OtherStore,
    /// What this store wrote to the zone of this name.
    OtherZone(String),
    /// What this store wrote there once, without what its newest root was written behind.
    Older,
    /// Nothing that any store wrote, as far as can be seen.
    Nothing,
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherStore => f.write_str("what another store wrote"),
            Self::OtherZone(zone) => write!(f, "what was written to {zone}"),
            Self::Older => f.write_str("an older state of itself than the newest checkpoint"),
            Self::Nothing => f.write_str("nothing that this store wrote"),
        }
    }
}
