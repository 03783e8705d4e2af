//! What people read.

use crate::catalog::{NameError, VolumeName};
use crate::units::{ContainerId, Fingerprint, PageId, Pba, TreeId, VolumeId};
use crate::{FeatureClass, FormatError, Structure};

#[test]
fn errors_are_sentences_with_facts() {
    let structure = Structure::Root;
    let page = PageId { tree: TreeId::volume(VolumeId(4)), level: 0, index: 17 };
    let other = PageId { tree: TreeId::CATALOG, level: 1, index: 0 };
    for (error, message) in [
        (
            FormatError::Length { structure, expected_bytes: 4096, found_bytes: 7 },
            "root should be 4096 bytes long but is 7",
        ),
        (
            FormatError::Magic { structure, expected: 0x1234, found: 0 },
            "this is no root: it starts with 0x0000000000000000 instead of 0x0000000000001234",
        ),
        (
            FormatError::NewerVersion { structure, supported: 1, found: 9 },
            "root has format version 9, and this program reads versions up to 1; use a newer \
             release of Tamis",
        ),
        (
            FormatError::UnknownFeatures { class: FeatureClass::Incompatible, bits: 0x12 },
            "the store has incompatible features that this program does not know (0x12); it may \
             not use the store: use a newer release of Tamis",
        ),
        (
            FormatError::UnknownFeatures { class: FeatureClass::ReadOnlyCompatible, bits: 1 },
            "the store has read-only compatible features that this program does not know (0x1); \
             it may check the store but not write to it: use a newer release of Tamis",
        ),
        (
            FormatError::Checksum { structure, expected: 1, found: 0xabcd },
            "checksum of root is 0x0000abcd instead of 0x00000001",
        ),
        (
            FormatError::PageTag { id: page, expected: 1, found: 2 },
            "page 17 of level 0 of the map of volume 4 has tag 0x000002, but the pointer to it \
             says 0x000001",
        ),
        (
            FormatError::WrongPage { expected: page, found: other },
            "expected page 17 of level 0 of the map of volume 4 but found page 0 of level 1 of \
             the volume catalog",
        ),
        (FormatError::OtherStore { structure }, "root belongs to another store"),
        (
            FormatError::Field { structure, field: "merged bucket", found: 99 },
            "root has the impossible merged bucket 99",
        ),
    ] {
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn addresses_read_well() {
    let container = ContainerId(3);
    let pba = Pba { container, offset_bytes: 16, length_bytes: 812, ..Pba::default() };
    assert_eq!(pba.to_string(), "812 bytes at offset 16 of container 3");
    assert_eq!(Fingerprint([0x0f; 32]).to_string(), "0f".repeat(32));
    assert_eq!(TreeId(77).to_string(), "the unknown table 77");
}

#[test]
fn names_are_refused_with_a_reason() {
    let long = "n".repeat(256);
    for (text, error) in [
        ("", NameError::Length { found_bytes: 0 }),
        (long.as_str(), NameError::Length { found_bytes: 256 }),
        ("-rf", NameError::Start { found: '-' }),
        (".hidden", NameError::Start { found: '.' }),
        ("a/b", NameError::Character { found: '/' }),
        ("a@b", NameError::Character { found: '@' }),
        ("a\u{7f}b", NameError::Character { found: '\u{7f}' }),
        ("a\u{202e}b", NameError::Character { found: '\u{202e}' }),
        ("a\u{200b}", NameError::Character { found: '\u{200b}' }),
        ("\u{feff}a", NameError::Character { found: '\u{feff}' }),
        ("a\u{2028}b", NameError::Character { found: '\u{2028}' }),
        ("a\u{a0}b", NameError::Character { found: '\u{a0}' }),
        ("  ", NameError::Blank),
        (" a", NameError::Blank),
        ("a ", NameError::Blank),
    ] {
        assert_eq!(VolumeName::parse(text), Err(error));
    }
    for text in ["v", "Archive 2024", "größe", "a.b-c", &long[..255]] {
        assert_eq!(VolumeName::parse(text).unwrap().as_str(), text);
    }
    // What earlier releases took is a name still.
    for text in ["a\u{202e}b", " ", "\u{200b}"] {
        assert_eq!(VolumeName::parse_stored(text).unwrap().as_str(), text);
    }
    let newline = NameError::Character { found: '\n' };
    assert_eq!(VolumeName::parse_stored("a\nb"), Err(newline));
    assert_eq!(newline.to_string(), "a name cannot contain '\\n'");
}
