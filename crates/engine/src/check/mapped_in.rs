//! A check's look at domains: whose chunks the maps name, and whose the frames say they are.
//!
//! Pages and frames may all pass their checksums and still not fit together: a volume's entry that
//! names another domain, or a map that names a chunk of one. Who reads such a volume gets another
//! tenant's bytes, and what is written to it is shared with that tenant. No repair can know which
//! of both is right, so it is told and nothing else. A PBN that names no chunk is shared by all
//! that lost one: what volumes of two domains map counts only once it is known to be stored.

use format::catalog::CatalogEntry;
use format::domain::DomainId;
use format::frame::FrameHeader;
use format::units::{Pbn, VolumeId};

use crate::check::problem::Problem;

/// What the maps say of domains.
pub(crate) struct MappedIn {
    /// For each PBN the domain whose volumes map it; nothing in a store without keyed domains.
    domains: Vec<Option<DomainId>>,
    /// What a volume of another domain maps as well.
    pub(crate) shared: Vec<(Pbn, VolumeId)>,
}

impl MappedIn {
    /// Of a store with so many PBNs, in which there are domains or were.
    pub(crate) fn new(has_domains: bool, pbns: usize) -> Self {
        let domains = if has_domains { vec![None; pbns] } else { Vec::new() };
        Self { domains, shared: Vec::new() }
    }

    /// A version maps a chunk that its parent does not.
    pub(crate) fn note(&mut self, volume: &CatalogEntry, pbn: Pbn) {
        let Some(noted) = self.domains.get_mut(pbn.0 as usize) else { return };
        let domain = volume.domain.as_ref().map(|domain| domain.id).unwrap_or_default();
        if *noted.get_or_insert(domain) != domain {
            self.shared.push((pbn, volume.id));
        }
    }

    /// What is wrong with the domain of a sound frame.
    pub(crate) fn check(&self, frame: &FrameHeader) -> Option<Problem> {
        let mapped_in = self.domains.get(frame.pbn.0 as usize).copied().flatten()?;
        let (pbn, found) = (frame.pbn.0, frame.domain.number());
        let problem = Problem::OtherDomain { pbn, found, mapped_in: mapped_in.number() };
        (mapped_in != frame.domain).then_some(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::MappedIn;
    use crate::check::problem::Problem;
    use format::catalog::{CatalogEntry, VolumeKind};
    use format::domain::{Domain, DomainId};
    use format::frame::FrameHeader;
    use format::units::{Codec, Pbn, VolumeId};

    fn volume(id: u32, domain: u16) -> CatalogEntry {
        let id_of = DomainId::new(domain).unwrap();
        let domain = id_of.is_keyed().then(|| Domain { id: id_of, name: format!("d{domain}") });
        let (name, kind) = (format!("v{id}"), VolumeKind::Block);
        CatalogEntry::of_new_volume(VolumeId(id), name, 1 << 20, false, domain, kind)
    }

    fn frame(pbn: u64, domain: u16) -> FrameHeader {
        let (pbn, domain) = (Pbn(pbn), DomainId::new(domain).unwrap());
        FrameHeader { codec: Codec::Raw, stored_bytes: 512, plain_bytes: 512, pbn, domain }
    }

    #[test]
    fn a_chunk_is_of_the_domain_of_all_that_map_it() {
        let mut mapped_in = MappedIn::new(true, 9);
        for domain in 0..3 {
            for volume in [volume(1, domain), volume(2, domain)] {
                let pbn = Pbn(u64::from(domain) + 1);
                mapped_in.note(&volume, pbn);
            }
            assert_eq!(mapped_in.check(&frame(u64::from(domain) + 1, domain)), None);
        }
        assert_eq!(mapped_in.shared, []);
        mapped_in.note(&volume(3, 2), Pbn(2));
        assert_eq!(mapped_in.shared, [(Pbn(2), VolumeId(3))]);
        let other = Problem::OtherDomain { pbn: 3, found: 0, mapped_in: 2 };
        assert_eq!(mapped_in.check(&frame(3, 0)), Some(other));
        // Nobody maps it, so nobody reads it.
        assert_eq!(mapped_in.check(&frame(5, 1)), None);
    }
}
