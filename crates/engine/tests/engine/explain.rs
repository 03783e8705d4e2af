//! An explanation says what the tables hold of one address, whatever state the store is in.

use disk::MemoryDisk;
use engine::{Address, Explanation, RequestError, Zone};
use format::detection::FingerprintKind;

use crate::stand::{CHUNK, MIB, Stand, Wish, check, fresh, packed};

/// The store closed and opened again, so that nothing of it is in memory.
fn reopened(stand: Stand) -> Stand {
    let disk = stand.close();
    Wish::default().open(disk)
}

fn explain(stand: &Stand, lba: u64) -> Explanation {
    stand.client.explain("v", Address::Lba(lba)).unwrap()
}

fn fingerprint(chunk: &[u8]) -> String {
    reduce::Fingerprinter::new(FingerprintKind::Blake3).one(chunk).unwrap().to_string()
}

fn data_byte(disk: &MemoryDisk, offset_bytes: u64) -> u8 {
    disk.peek(Zone::Data(0), offset_bytes, 1)[0]
}

#[test]
fn every_step_of_the_way_is_told() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 1 << 40);
    let (once, thrice) = (fresh(1, CHUNK), packed(2));
    stand.write(&volume, 0, &once);
    for lba in [5, 700, 1 << 27] {
        stand.write(&volume, lba * CHUNK, &thrice);
    }
    stand.flush();
    let stand = reopened(stand);
    for (lba, references, plain) in [(0, 1, &once), (5, 3, &thrice), (1 << 27, 3, &thrice)] {
        let told = explain(&stand, lba);
        assert_eq!((told.lba, told.offset_bytes, told.buffered), (lba, lba * CHUNK, false));
        let levels: Vec<u8> = told.map.iter().map(|page| page.level).collect();
        assert!(levels.is_sorted_by(|above, below| *above == below + 1), "{levels:?}");
        assert!(told.map.iter().all(|page| page.block.is_some() && !page.dirty), "{told:?}");
        assert_eq!(told.map.last().unwrap().index, lba / 677);
        assert!(told.is_sound(), "{told:?}");
        let chunk = told.chunk.unwrap();
        let place = chunk.place.unwrap();
        let frame = place.frame.unwrap();
        assert_eq!((place.references, place.in_memory), (references, false));
        assert_eq!(frame.fingerprint, fingerprint(plain));
        assert_eq!((frame.named_pbn, frame.pages.is_empty()), (Some(chunk.pbn), false));
        let codec = if references == 1 { "none" } else { "lz4" };
        assert_eq!((frame.codec.as_str(), place.zone.as_str()), (codec, "data.0"));
        assert_eq!(u64::from(place.length_bytes), u64::from(frame.stored_bytes) + 16);
    }
    let by_offset = stand.client.explain("v", Address::OffsetBytes(700 * CHUNK + 7)).unwrap();
    assert_eq!(by_offset, explain(&stand, 700));
    let nothing = explain(&stand, 6);
    assert!(nothing.chunk.is_none() && nothing.is_sound());
    let beyond = stand.client.explain("v", Address::OffsetBytes(1 << 40));
    assert!(matches!(beyond, Err(RequestError::OutOfRange { .. })), "{beyond:?}");
    let nobody = stand.client.explain("w", Address::Lba(0));
    assert!(matches!(nobody, Err(RequestError::NoSuchVolume { .. })), "{nobody:?}");
    stand.close();
}

#[test]
fn what_is_in_memory_only_is_told_as_well() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    stand.write(&volume, 0, &fresh(1, CHUNK));
    let told = explain(&stand, 0);
    assert!(told.buffered || told.chunk.is_some(), "{told:?}");
    stand.flush();
    let place = explain(&stand, 0).chunk.unwrap().place.unwrap();
    assert!(place.in_memory && place.frame.is_some(), "{place:?}");
    stand.close();
}

#[test]
fn a_damaged_frame_is_told_and_harms_nobody() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    // More than a container, so that the first is sealed and is read from disk.
    stand.write(&volume, 0, &fresh(1, 8 * MIB));
    stand.flush();
    let stand = reopened(stand);
    let at = explain(&stand, 3).chunk.unwrap().place.unwrap().zone_offset_bytes + 100;
    let before = data_byte(&stand.disk, at);
    stand.disk.corrupt(Zone::Data(0), at, |byte| *byte ^= 1);
    assert_ne!(data_byte(&stand.disk, at), before);
    let told = explain(&stand, 3);
    assert!(!told.is_sound() && told.chunk.unwrap().place.unwrap().frame.is_none());
    assert!(explain(&stand, 4).is_sound());
    stand.disk.corrupt(Zone::Data(0), at, |byte| *byte ^= 1);
    assert!(explain(&stand, 3).is_sound());
    assert!(check(&stand.close()).problems.is_empty());
}
