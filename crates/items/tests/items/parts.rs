//! Parts of items: read, written and kept over a restart, in memory and not.

use crate::rig::{Rig, client, noise};

/// A list of values, with the layout of each.
fn list(values: &[(&[u8], u32)]) -> Vec<u8> {
    let (mut all, mut directory) = (Vec::new(), Vec::new());
    for (value, layout) in values {
        for number in [all.len() as u32, value.len() as u32, *layout] {
            directory.extend_from_slice(&number.to_le_bytes());
        }
        all.extend_from_slice(value);
    }
    let count = (values.len() as u32).to_le_bytes();
    [&all, &directory, &b"TAMISARR\x01\0\0\0"[..], &count].concat()
}

fn store(key: &str, flags: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("ms {key} {} {flags}\r\n", value.len()).into_bytes();
    [&head, value, b"\r\n"].concat()
}

fn part(value: &[u8]) -> Vec<u8> {
    [format!("VA {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

#[test]
fn elements_are_read_and_written_where_the_array_is_long() {
    for hot_bytes in [0, 64 << 20] {
        for element_bytes in [10, 4096, 70_000] {
            let mut value = noise(element_bytes * 9, 7);
            let rig = Rig::new();
            let items = rig.items(hot_bytes);
            let mut client = client(&items);
            assert_eq!(client.text(store("a", &format!("a{element_bytes}"), &value)), "HD\r\n");
            let at = |index: usize| index * element_bytes..(index + 1) * element_bytes;
            for index in [3, 0, 8] {
                let element = noise(element_bytes, index as u64 + 50);
                assert_eq!(client.text(store("a", &format!("e{index}"), &element)), "HD\r\n");
                value[at(index)].copy_from_slice(&element);
            }
            assert!(client.say("mg a v e3\r\n") == part(&value[at(3)]));
            assert!(client.say("mg a v e7:5\r\n") == part(&value[at(7).start..]));
            assert!(client.say("mg a v r5:20\r\n") == part(&value[5..25]));
            assert!(client.say("mg a v\r\n") == part(&value));
            assert_eq!(client.text("mg a v e9\r\nmg a n\r\n"), "NR\r\nHD n9\r\n");
            let more = noise(element_bytes, 99);
            assert_eq!(client.text(store("a", "e9", &more)), "HD\r\n");
            assert!(client.say("mg a v e9\r\n") == part(&more));
        }
    }
}

#[test]
fn lists_are_lists_behind_a_restart() {
    let long = noise(200_000, 3);
    let inner = list(&[(b"deep", 0), (&long, 50_000)]);
    let outer = list(&[(b"first", 0), (&long, 0), (&inner, u32::MAX)]);
    let mut rig = Rig::new();
    for is_new in [true, false] {
        let items = rig.items(64 << 20);
        let mut client = client(&items);
        if is_new {
            assert_eq!(client.text(store("a", "a* F5", &outer)), "HD\r\n");
        }
        assert_eq!(client.text("mg a n a f\r\nmg a v e2.0\r\n"), "HD n3 a* f5\r\nVA 4\r\ndeep\r\n");
        assert!(client.say("mg a v e1\r\n") == part(&long));
        assert!(client.say("mg a v e2.1.2\r\n") == part(&long[100_000..150_000]));
        assert_eq!(client.text("mg a v e3\r\nmg a v e0.0\r\n"), "NR\r\nNA\r\n");
        drop((client, items));
        rig = rig.reopened();
    }
}
