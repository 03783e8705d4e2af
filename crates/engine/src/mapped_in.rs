//! A check's look at domains: whose chunks the maps name, and whose the frames say they are.
//!
//! Pages and frames may all pass their checksums and still not fit together: a volume's entry that
//! names another domain, or a map that names a chunk of one. Who reads such a volume gets another
//! tenant's bytes, and what is written to it is shared with that tenant. No repair can know which
//! of both is right, so it is told and nothing else.

use format::catalog::CatalogEntry;
use format::domain::DomainId;
use format::frame::FrameHeader;
use format::units::Pbn;

use crate::problem::Problem;

/// For each PBN the domain whose volumes map it; nothing in a store without keyed domains.
pub(crate) struct MappedIn(Vec<Option<DomainId>>);

impl MappedIn {
    /// Of a store with so many PBNs, in which there are domains or were.
    pub(crate) fn new(has_domains: bool, pbns: usize) -> Self {
        Self(if has_domains { vec![None; pbns] } else { Vec::new() })
    }

    /// A version maps a chunk that its parent does not; what is wrong with that, if anything.
    pub(crate) fn note(&mut self, volume: &CatalogEntry, name: &str, pbn: Pbn) -> Option<Problem> {
        let noted = self.0.get_mut(pbn.0 as usize)?;
        let domain = volume.domain.as_ref().map(|domain| domain.id).unwrap_or_default();
        let is_another = *noted.get_or_insert(domain) != domain;
        let problem = || Problem::SharedAcrossDomains { volume: name.to_owned(), pbn: pbn.0 };
        is_another.then(problem)
    }

    /// What is wrong with the domain of a sound frame.
    pub(crate) fn check(&self, frame: &FrameHeader) -> Option<Problem> {
        let mapped_in = self.0.get(frame.pbn.0 as usize).copied().flatten()?;
        let (pbn, found) = (frame.pbn.0, frame.domain.number());
        let problem = Problem::OtherDomain { pbn, found, mapped_in: mapped_in.number() };
        (mapped_in != frame.domain).then_some(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::MappedIn;
    use crate::problem::Problem;
    use format::catalog::CatalogEntry;
    use format::domain::{Domain, DomainId};
    use format::frame::FrameHeader;
    use format::units::{Codec, Pbn, VolumeId};

    fn volume(id: u32, domain: u16) -> CatalogEntry {
        let id_of = DomainId::new(domain).unwrap();
        let domain = id_of.is_keyed().then(|| Domain { id: id_of, name: format!("d{domain}") });
        CatalogEntry::of_new_volume(VolumeId(id), format!("v{id}"), 1 << 20, false, domain)
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
                assert_eq!(mapped_in.note(&volume, &volume.name, pbn), None);
            }
            assert_eq!(mapped_in.check(&frame(u64::from(domain) + 1, domain)), None);
        }
        let shared = mapped_in.note(&volume(3, 2), "v3", Pbn(2));
        let volume = "v3".to_owned();
        assert_eq!(shared, Some(Problem::SharedAcrossDomains { volume, pbn: 2 }));
        let other = Problem::OtherDomain { pbn: 3, found: 0, mapped_in: 2 };
        assert_eq!(mapped_in.check(&frame(3, 0)), Some(other));
        // Nobody maps it, so nobody reads it.
        assert_eq!(mapped_in.check(&frame(5, 1)), None);
    }
}
