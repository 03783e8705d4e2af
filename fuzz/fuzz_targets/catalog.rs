//! Entries of volumes: any payload gives entries or errors, and an entry stored again is the same.
#![no_main]

use format::catalog::{self, VolumeName};
use format::page::Page;
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::block;

fuzz_target!(|input: &[u8]| {
    let Ok(page) = Page::from_bytes(&block(input)) else { return };
    for slot in 0..catalog::SLOTS {
        let Ok(Some(entry)) = catalog::get(&page, slot) else { continue };
        assert!(VolumeName::parse_stored(&entry.name).is_ok());
        let mut again = page.clone();
        catalog::set(&mut again, slot, None);
        assert_eq!(catalog::get(&again, slot), Ok(None));
        catalog::set(&mut again, slot, Some(&entry));
        assert_eq!(catalog::get(&again, slot), Ok(Some(entry)));
    }
    if let Ok(name) = std::str::from_utf8(input).map(VolumeName::parse) {
        let _ = name.map_err(|error| error.to_string());
    }
});
