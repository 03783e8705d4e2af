//! Parts of values against slices of a plain list.

use super::{Found, Missing};
use crate::answer::Fault;
use crate::layout::{Layout, Part, Place};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

/// A value as a client thinks of it.
#[derive(Clone, Debug)]
enum Plain {
    Bytes(Vec<u8>),
    Elements(usize, Vec<u8>),
    Values(Vec<Plain>),
}

impl Plain {
    fn encode(&self) -> (Vec<u8>, Layout) {
        match self {
            Plain::Bytes(bytes) => (bytes.clone(), Layout::Whole),
            Plain::Elements(element, bytes) => {
                (bytes.clone(), Layout::from_stored(*element as u32).unwrap())
            }
            Plain::Values(values) => {
                let (mut all, mut directory) = (Vec::new(), Vec::new());
                for value in values {
                    let (bytes, layout) = value.encode();
                    for number in [all.len() as u32, bytes.len() as u32, layout.to_stored()] {
                        directory.extend_from_slice(&number.to_le_bytes());
                    }
                    all.extend_from_slice(&bytes);
                }
                let count = (values.len() as u32).to_le_bytes();
                let parts = [&all, &directory, &b"TAMISARR\x01\0\0\0"[..], &count];
                (parts.concat(), Layout::Values)
            }
        }
    }

    fn count(&self) -> Option<u64> {
        match self {
            Plain::Bytes(_) => None,
            Plain::Elements(element, bytes) => Some((bytes.len() / element) as u64),
            Plain::Values(values) => Some(values.len() as u64),
        }
    }

    fn element(&self, index: usize) -> Result<Plain, Missing> {
        match self {
            Plain::Bytes(_) => Err(Missing::Array),
            Plain::Elements(element, bytes) => {
                let found = bytes.chunks_exact(*element).nth(index);
                found.map(|it| Plain::Bytes(it.to_vec())).ok_or(Missing::Range)
            }
            Plain::Values(values) => values.get(index).cloned().ok_or(Missing::Range),
        }
    }
}

fn plain() -> impl Strategy<Value = Plain> {
    let bytes = || vec(any::<u8>(), 0..40);
    let leaf = prop_oneof![
        bytes().prop_map(Plain::Bytes),
        (1_usize..9, bytes()).prop_map(|(element, bytes)| Plain::Elements(element, bytes)),
    ];
    leaf.prop_recursive(3, 60, 6, |inner| vec(inner, 0..6).prop_map(Plain::Values))
}

fn find(part: &Part, layout: Layout, value: &[u8]) -> Result<Found, Missing> {
    part.find(layout, value.len() as u64, |offset, out| {
        let offset = offset as usize;
        out.copy_from_slice(&value[offset..offset + out.len()]);
        Ok(())
    })
}

fn elements(path: &[u32], count: u32) -> Part {
    let words: Vec<String> = path.iter().map(u32::to_string).collect();
    Part::parse_elements(format!("{}:{count}", words.join(".")).as_bytes()).unwrap()
}

proptest! {
    #[test]
    fn a_range_is_a_slice(
        value in vec(any::<u8>(), 0..60),
        offset in 0_u64..70,
        bytes in prop_oneof![0_u64..70, any::<u64>()],
    ) {
        let found = find(&Part::Bytes { offset, bytes }, Layout::Whole, &value);
        let expected = value.get(offset as usize..).map(|rest| {
            Found { offset, bytes: bytes.min(rest.len() as u64), layout: Layout::Whole }
        });
        prop_assert_eq!(found, expected.ok_or(Missing::Range));
    }

    #[test]
    fn an_element_of_an_element_is_found(array in plain(), path in vec(0_u32..5, 1..4)) {
        let (value, layout) = array.encode();
        let mut expected = Ok(array);
        for index in &path {
            expected = expected.and_then(|array| array.element(*index as usize));
        }
        let found = find(&elements(&path, 1), layout, &value);
        let told = found.map(|found| {
            let bytes = &value[found.offset as usize..(found.offset + found.bytes) as usize];
            let count = found.count(|offset, out: &mut [u8]| {
                out.copy_from_slice(&value[offset as usize..][..out.len()]);
                Ok(())
            });
            (bytes.to_vec(), found.layout, count.unwrap())
        });
        let expected = expected.map(|array| {
            let (bytes, layout) = array.encode();
            (bytes, layout, array.count())
        });
        prop_assert_eq!(told, expected);
    }

    #[test]
    fn a_slice_of_elements_ends_with_the_array(
        element in 1_usize..9,
        value in vec(any::<u8>(), 0..60),
        first in 0_usize..10,
        count in 1_usize..10,
    ) {
        let layout = Layout::from_stored(element as u32).unwrap();
        let found = find(&elements(&[first as u32], count as u32), layout, &value);
        let there = (value.len() / element).saturating_sub(first).min(count);
        let expected = (there > 0).then(|| {
            let of_part = if count == 1 { Layout::Whole } else { layout };
            let (offset, bytes) = ((first * element) as u64, (there * element) as u64);
            Found { offset, bytes, layout: of_part }
        });
        prop_assert_eq!(found, expected.ok_or(Missing::Range));
    }

    #[test]
    fn no_directory_leads_out_of_the_values(
        front in vec(any::<u8>(), 0..40),
        numbers in vec(prop_oneof![0_u32..40, any::<u32>()], 0..9),
        count in prop_oneof![0_u32..4, any::<u32>()],
        path in vec(0_u32..3, 1..5),
    ) {
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let trailer = [&b"TAMISARR\x01\0\0\0"[..], &count.to_le_bytes()].concat();
        let value = [front, numbers, trailer].concat();
        if let Ok(found) = find(&elements(&path, 1), Layout::Values, &value) {
            let directory = value.len() as u64 - 16 - 12 * u64::from(count);
            assert!(found.offset + found.bytes <= directory, "a value ends before the directory");
        }
    }

    #[test]
    fn a_layout_is_a_number(stored in any::<u32>()) {
        if let Some(layout) = Layout::from_stored(stored) {
            prop_assert_eq!(layout.to_stored(), stored);
        } else {
            assert!(stored > 1 << 30);
        }
    }
}

#[test]
fn words_of_clients_are_read() {
    let bytes = |offset, bytes| Some(Part::Bytes { offset, bytes });
    assert_eq!(Part::parse_bytes(b"5"), bytes(5, u64::MAX));
    assert_eq!(Part::parse_bytes(b"5:6"), bytes(5, 6));
    for word in [&b""[..], b":", b"5:", b":6", b"-1", b"5:6:7", b"x"] {
        assert_eq!(Part::parse_bytes(word), None);
    }
    let Some(Part::Elements { path, count: 9 }) = Part::parse_elements(b"1.2.3.4:9") else {
        panic!("nine elements of an array in three others");
    };
    assert_eq!(path.indexes(), [1, 2, 3, 4]);
    for word in [&b""[..], b"1.", b".1", b"1.2.3.4.5", b"1:0", b"1:", b"4294967296", b"1:2.3"] {
        assert_eq!(Part::parse_elements(word), None);
    }
    let place = |word: &[u8]| Part::parse_elements(word).unwrap().to_place();
    assert_eq!(place(b"7"), Some(Place::Element(7)));
    assert_eq!((place(b"7:2"), place(b"7.1")), (None, None));
    assert_eq!(Layout::parse(b"*"), Some(Layout::Values));
    assert_eq!(Layout::parse(b"4096"), Layout::from_stored(4096));
    assert_eq!((Layout::parse(b"4294967295"), Layout::parse(b"1073741825")), (None, None));
}

#[test]
fn a_value_that_cannot_be_read_is_a_fault() {
    let fault = Fault::Other("broken".into());
    let found = elements(&[0], 1).find(Layout::Values, 100, |_, _| Err(fault.clone()));
    assert_eq!(found, Err(Missing::Fault(fault)));
}
