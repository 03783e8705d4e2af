//! Keyed domains: which chunk is of which.
//!
//! A domain is no thing of its own: it is what versions in the catalog say they are in. It begins
//! with the first volume that is made in it and ends with its last version; its number is never
//! used again, so what takes its name later shares nothing with what it left behind. A volume's
//! domain never changes, and snapshots and clones are in the domain of what they came from: so a
//! map names chunks of one domain only.
//!
//! Chunks are fingerprinted before their volume stands in the catalog, since a door may write as
//! soon as a volume has a name. So what domain a volume is in is kept here from its first moment.

use std::collections::BTreeMap;

use format::domain::{Domain, DomainId};
use format::units::VolumeId;
use mutants::mutant;

/// The domains of all versions that were ever seen since the opening; those of the default domain
/// are left out.
#[derive(Default)]
pub(crate) struct Domains {
    keyed: BTreeMap<VolumeId, DomainId>,
}

impl Domains {
    /// A version is in this domain, for good.
    pub(crate) fn note(&mut self, volume: VolumeId, domain: Option<&Domain>) {
        if let Some(domain) = domain {
            self.keyed.insert(volume, domain.id);
        }
    }

    /// The domain of a version.
    pub(crate) fn of(&self, volume: VolumeId) -> DomainId {
        if mutant!(SharesAcrossDomains) {
            return DomainId::DEFAULT;
        }
        self.keyed.get(&volume).copied().unwrap_or_default()
    }

    /// Those of chunk after chunk.
    pub(crate) fn of_chunks(&self) -> ChunkDomains<'_> {
        ChunkDomains { domains: self, last: None }
    }
}

/// The domains of chunks, most of which are of the volume of the chunk before.
pub(crate) struct ChunkDomains<'a> {
    domains: &'a Domains,
    last: Option<(VolumeId, DomainId)>,
}

impl ChunkDomains<'_> {
    /// Appends the domain of a chunk of this volume; nothing in a store without keyed domains.
    pub(crate) fn push(&mut self, volume: VolumeId, to: &mut Vec<DomainId>) {
        if self.domains.keyed.is_empty() {
            return;
        }
        let domain = match self.last {
            Some((last, domain)) if last == volume => domain,
            _ => self.domains.of(volume),
        };
        self.last = Some((volume, domain));
        to.push(domain);
    }
}
