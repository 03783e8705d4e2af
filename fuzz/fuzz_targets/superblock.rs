//! Geometry, root, label and mark: what is decoded is sound, and encoded to the same again.
#![no_main]

use format::label::Label;
use format::mark::Mark;
use format::root::Root;
use format::superblock::Geometry;
use format::units::ContainerId;
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::{block, heal};

const UUID: [u8; 16] = [0; 16];

fuzz_target!(|input: &[u8]| {
    let _ = (Geometry::decode(input).is_ok(), Root::decode(input, UUID).is_ok());
    let _ = (Mark::decode(input).is_ok(), Label::decode(input, UUID).is_ok());
    let mut geometry = block(input);
    heal(&mut geometry, |bytes| Geometry::decode(bytes).map(drop));
    if let Ok(geometry) = Geometry::decode(&geometry) {
        assert_eq!(geometry.check(), Ok(()));
        let last = ContainerId((geometry.containers_total() - 1) as u32);
        assert!(geometry.container_zone(last).is_some());
        assert!(
            geometry
                .container_zone(ContainerId(last.0.wrapping_add(1)))
                .is_none_or(|_| last.0 == u32::MAX)
        );
        let zones = 0..geometry.data.len() as u16;
        let there: Vec<_> = zones.filter(|&number| geometry.has_data_zone(number)).collect();
        assert!(!there.is_empty() && geometry.zones().count() == 3 + there.len());
        let first = ContainerId(geometry.containers_of(there[0]).start);
        assert!(geometry.has_container(first) && geometry.containers_present() > 0);
        assert_eq!(Geometry::decode(&geometry.encode()), Ok(geometry));
    }
    let mut mark = block(input);
    heal(&mut mark, |bytes| Mark::decode(bytes).map(drop));
    if let Ok(mark) = Mark::decode(&mark) {
        assert_eq!(Mark::decode(&mark.encode()), Ok(mark));
    }
    let mut label = block(input);
    heal(&mut label, |bytes| Label::decode(bytes, UUID).map(drop));
    if let Ok(label) = Label::decode(&label, UUID) {
        assert_eq!(Label::decode(&label.encode(), UUID), Ok(label));
    }
    let mut root = block(input);
    heal(&mut root, |bytes| Root::decode(bytes, UUID).map(drop));
    if let Ok(root) = Root::decode(&root, UUID) {
        assert_eq!(Root::decode(&root.encode(UUID), UUID), Ok(root));
    }
});
