//! Domains: volumes of different domains share no chunk.
//!
//! The fingerprints of a domain are made with a key, which follows from the store's *secret* and
//! the domain's number. So every chunk that a frame says is of a domain can be fingerprinted again
//! for as long as the store lives, whether or not a volume is left in the domain; and the secret is
//! all that has to be kept. Numbers are never used again, so neither are keys.
//!
//! The default domain has number 0 and no key. A store that has no other has no secret either, and
//! is what it was before there were domains.

use std::fmt;

use crate::error::{FormatError, Structure};
use crate::name::VolumeName;

/// Longest name of a domain, in UTF-8.
pub const DOMAIN_NAME_BYTES_MAX: usize = 64;

/// Number of a domain.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DomainId(u16);

impl DomainId {
    /// What is in no other domain is in this one, which has no key.
    pub const DEFAULT: Self = Self(0);
    /// Domains that a store can have had, the default one left out: a frame has 14 bits for it.
    pub const COUNT_MAX: u16 = (1 << 14) - 1;

    /// Domain `number`; none when it is more than [`Self::COUNT_MAX`].
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if number <= Self::COUNT_MAX { Some(Self(number)) } else { None }
    }

    /// Its number, at most [`Self::COUNT_MAX`].
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Whether its chunks share with no other domain's.
    #[must_use]
    pub const fn is_keyed(self) -> bool {
        self.0 != 0
    }
}

/// What the keys of a store's domains are made from.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct DomainSecret(pub [u8; 32]);

impl fmt::Debug for DomainSecret {
    /// Nothing of it: it must not get into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DomainSecret(..)")
    }
}

/// A keyed domain, as the versions in it name it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Domain {
    /// Its number, which is not that of the default domain.
    pub id: DomainId,
    /// As users call it: a [`VolumeName`] of at most [`DOMAIN_NAME_BYTES_MAX`] bytes.
    pub name: String,
}

impl Domain {
    /// Whether a new domain can have this name.
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        text.len() <= DOMAIN_NAME_BYTES_MAX && VolumeName::parse(text).is_ok()
    }

    fn is_stored_name(text: &str) -> bool {
        text.len() <= DOMAIN_NAME_BYTES_MAX && VolumeName::parse_stored(text).is_ok()
    }

    /// The domain of this number and name; none where the number is that of the default domain,
    /// which has no name.
    pub(crate) fn decode(
        structure: Structure,
        number: u16,
        name: &[u8],
    ) -> Result<Option<Self>, FormatError> {
        let impossible = |field, found| FormatError::field(structure, field, found);
        let id = DomainId::new(number).ok_or_else(|| impossible("domain", u64::from(number)))?;
        let text = std::str::from_utf8(name).ok().filter(|name| Self::is_stored_name(name));
        match text {
            None if !id.is_keyed() && name.is_empty() => Ok(None),
            Some(name) if id.is_keyed() => Ok(Some(Self { id, name: name.to_owned() })),
            _ => Err(impossible("domain's name of length", name.len() as u64)),
        }
    }
}
