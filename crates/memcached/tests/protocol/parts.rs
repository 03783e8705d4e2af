//! Parts of values: bytes, elements of arrays, and arrays in arrays (decision 069).

use crate::talk::{self, Client, NOW_S, talk};
use memcached::Limits;
use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

/// As [`talk::check`]; `?` and `!` stand for two long lines.
fn check(table: &[(&str, &str)]) {
    for (said, answered) in table {
        let answered = answered
            .replace('?', "CLIENT_ERROR bad token in command line format")
            .replace('!', "CLIENT_ERROR invalid or duplicate flag");
        talk::check(&[(said, &answered)]);
    }
}

#[test]
fn bytes_of_a_value_are_read() {
    check(&[
        (
            "ms a 6|abcdef|mg a v r2:3 s k|mg a v r4|mg a v r4:9 c|",
            "HD|VA 3 s6 ka|cde|VA 2|ef|VA 2 c1|ef|",
        ),
        (
            "ms a 6|abcdef|mg a v r6|mg a v r6:2|mg a v r7 s Ox c|mg a r0:2 s|",
            "HD|VA 0||VA 0||NR s6 Ox c1|HD s6|",
        ),
        ("mg a v r0:1|mg a v q r0:1|mn|", "EN|MN|"),
        ("set a 0 0 3|abc|mg a v r1:1 t f|mg a v e0|", "STORED|VA 1 t-1 f0|b|NA|"),
        ("ms a 3|abc|mg a r1:2:3 v|mg a r v|mg a r0 e0|mg a e0.1.2.3.4|mn|", "HD|?|?|?|?|MN|"),
        ("mg a N30 v r0|mg a r5 v N30|", "VA 0 W||NR Z|"),
        ("md a r0|ma a e1|md a n|ma a a8|", "!|!|!|!|"),
    ]);
}

#[test]
fn bytes_of_a_value_are_written() {
    check(&[
        (
            "ms a 6 F3 T90|abcdef|ms a 2 r1 s c F5 T5|XY|mg a v f t|",
            "HD|HD s6 c2|VA 6 f3 t90|aXYdef|",
        ),
        ("ms a 3|abc|ms a 3 r2 s|XYZ|ms a 1 r5 MR|w|mg a v|", "HD|HD s5|HD|VA 6|abXYZw|"),
        ("ms a 3|abc|ms a 1 r4 c s|X|mg a v|", "HD|NR c0 s1|VA 3|abc|"),
        (
            "ms a 1 r0|X|ms a 1 r0 MR|X|ms a 1 r0 C5|X|ms a 1 r0 N0|X|ms b 1 r1 N0|X|mg a v|",
            "NS|NS|NS|HD|NR|VA 1|X|",
        ),
        ("ms a 1|x|ms a 1 r0 C9|y|ms a 1 r0 C9 I|y|ms a 1 r0 C1|z|mg a v|", "HD|EX|EX|HD|VA 1|z|"),
        (
            "ms a 1 r0 MA|x|ms a 1 r0 ME|x|ms a 1 r0:1|x|ms a 1 e0:2|x|ms a 1 e0.1|x|mn|",
            "CLIENT_ERROR invalid mode for ms M token|CLIENT_ERROR invalid mode for ms M token|\
          ?|?|?|MN|",
        ),
    ]);
}

#[test]
fn elements_of_one_size_are_read_and_written() {
    check(&[
        (
            "ms a 8 a2|aabbccdd|mg a v e1|mg a v e1:2 a n|mg a v e2:9 n|mg a a n s|mg a v e4 n a|",
            "HD|VA 2|bb|VA 4 a2 n2|bbcc|VA 4 n2|ccdd|HD a2 n4 s8|NR a2|",
        ),
        (
            "ms a 4 a2|aabb|ms a 2 e1|XX|ms a 4 e1|YYZZ|ms a 2 e9|ww|ms a 1 e0|w|mg a v n|",
            "HD|HD|HD|NR|NR|VA 6 n3|aaYYZZ|",
        ),
        (
            "ms a 4 a2|aabb|append a 0 0 3|ccd|mg a v n a|mg a v e2|",
            "HD|STORED|VA 7 n3 a2|aabbccd|VA 2|cc|",
        ),
        (
            "ms a 2 e0 a2 N0|aa|ms a 2 e1 a2 N0|bb|mg a v n|ms b 1 e0 N0|x|",
            "HD|HD|VA 4 n2|aabb|NA|",
        ),
        ("ms a 2 a2|aa|ms a 2|bb|mg a v e0 a n|", "HD|HD|NA|"),
        ("ms a 4|aabb|ms a 2 e0|xx|mg a v a n|ms a 1 a0|x|mg a a|", "HD|NA|VA 4|aabb|HD|HD|"),
        ("ms a 1 ax|x|ms a 1 a1073741825|x|mn|", "?|?|MN|"),
        ("ms a 4 a2|aabb|md a x|mg a a n v|", "HD|HD|VA 0||"),
        ("ms a 4 a2|1122|ma a|mg a v a|", "HD|HD|VA 4 a2|1123|"),
    ]);
}

/// An array of values, with the layout of each.
pub(crate) fn array(values: &[(&[u8], u32)]) -> Vec<u8> {
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

#[test]
fn values_of_any_length_are_read_by_their_directory() {
    let inner = array(&[(b"deep", 0), (b"", 0)]);
    let outer = array(&[(b"first", 0), (b"112233", 2), (&inner, u32::MAX)]);
    let asked = "mg a v e0\r\nmg a v e1 a n\r\nmg a v e1.2\r\nmg a v e1.1:5 n\r\nmg a v e2.0\r\n\
                 mg a v e2.1\r\nmg a e2 n a\r\nmg a n a\r\nmg a v e3\r\nmg a v e0.0\r\n\
                 mg a v e0:2\r\nmg a v r0:5 n a\r\n";
    let said = [store("a", "a*", &outer), asked.into()].concat();
    let expected = "HD\r\nVA 5\r\nfirst\r\nVA 6 a2 n3\r\n112233\r\nVA 2\r\n33\r\nVA 4 n2\r\n\
                    2233\r\nVA 4\r\ndeep\r\nVA 0\r\n\r\nHD n2 a*\r\nHD n3 a*\r\nNR\r\nNA\r\n\
                    NA\r\n";
    let answers = talk(&said);
    let rest = answers.strip_prefix(expected).unwrap_or_else(|| panic!("{answers}"));
    assert_eq!(rest, "VA 5 n3 a*\r\nfirst\r\n");
}

#[test]
fn what_is_no_array_is_told_and_never_a_panic() {
    let mut damaged = array(&[(b"first", 0)]);
    damaged[5] = 0xff;
    let said = [
        store("a", "a*", b"no directory at all here"),
        store("b", "a*", b""),
        store("c", "a*", &damaged),
        b"mg a v e0\r\nmg a n\r\nmg b v e0\r\nmg b n q\r\nmg c v e0\r\nmg c n\r\n".to_vec(),
        [store("d", "a*", &array(&[(b"x", 0)])), b"append d 0 0 1\r\nx\r\nmg d v e0 a\r\n".into()]
            .concat(),
    ];
    assert_eq!(
        talk(said.concat()),
        "HD\r\nHD\r\nHD\r\nNA\r\nNA\r\nNA\r\nNA\r\nNA\r\nHD n1\r\nHD\r\nSTORED\r\nNA\r\n"
    );
}

#[test]
fn long_parts_come_in_parts() {
    let limits = Limits { value_bytes_max: 4 << 20, ..Limits::default() };
    let mut client = Client::with(limits);
    let value: Vec<u8> = (0..3 << 20).map(|at| (at / 7) as u8).collect();
    assert_eq!(client.exchange(&store("a", "a1048576", &value), 5000), b"HD\r\n");
    let answer = client.exchange(b"mg a v e1\r\nmg a v r100:200000\r\nmg a v e9\r\n", usize::MAX);
    let expected = [
        &b"VA 1048576\r\n"[..],
        &value[1 << 20..2 << 20],
        b"\r\nVA 200000\r\n",
        &value[100..200_100],
        b"\r\nNR\r\n",
    ];
    assert!(answer == expected.concat());
    let part = vec![b'!'; 200_000];
    assert_eq!(client.exchange(&store("a", "r50 s", &part), 7000), b"HD s3145728\r\n");
    let answer = client.exchange(b"mg a v r49:200002\r\n", usize::MAX);
    let expected = [b"VA 200002\r\n", &value[49..50], &part, &value[200_050..200_051], b"\r\n"];
    assert!(answer == expected.concat());
    let end = store("a", "r3145728", &vec![b'!'; (1 << 20) + 1]);
    assert_eq!(
        client.exchange(&[end, b"mg a s\r\n".into()].concat(), 7000),
        b"NS\r\nHD s3145728\r\n"
    );
    let too_long = store("a", "r0", &vec![b'!'; (4 << 20) + 1]);
    let answer = client.exchange(&[too_long, b"mg a s\r\n".into()].concat(), 7000);
    assert_eq!(answer, b"SERVER_ERROR object too large for cache\r\nHD s3145728\r\n");
}

#[derive(Clone, Debug)]
enum Step {
    Write { offset: usize, bytes: Vec<u8> },
    Element { index: usize, elements: Vec<[u8; 3]> },
    Append { elements: Vec<[u8; 3]> },
    Read { offset: usize, bytes: usize },
    Slice { first: usize, count: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let elements = || proptest::collection::vec(any::<[u8; 3]>(), 0..4);
    prop_oneof![
        (0_usize..30, proptest::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(offset, bytes)| Step::Write { offset, bytes }),
        (0_usize..10, elements()).prop_map(|(index, elements)| Step::Element { index, elements }),
        elements().prop_map(|elements| Step::Append { elements }),
        (0_usize..40, 0_usize..40).prop_map(|(offset, bytes)| Step::Read { offset, bytes }),
        (0_usize..10, 1_usize..5).prop_map(|(first, count)| Step::Slice { first, count }),
    ]
}

/// What is sent for a step, and what is answered, where `value` is the whole.
fn converse(step: &Step, value: &mut Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let mut write = |offset: usize, bytes: &[u8], word: String| {
        let said = store("a", &word, bytes);
        if offset > value.len() {
            return (said, b"NR\r\n".to_vec());
        }
        let end = (offset + bytes.len()).max(value.len());
        value.resize(end, 0);
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        (said, b"HD\r\n".to_vec())
    };
    let (word, read) = match step {
        Step::Write { offset, bytes } => return write(*offset, bytes, format!("r{offset}")),
        Step::Element { index, elements } => {
            return write(index * 3, &elements.concat(), format!("e{index}"));
        }
        Step::Append { elements } => {
            let said = store("a", "MA", &elements.concat());
            value.extend(elements.concat());
            return (said, b"HD\r\n".to_vec());
        }
        Step::Read { offset, bytes } => {
            let rest = value.get(*offset..).map(|rest| &rest[..rest.len().min(*bytes)]);
            (format!("r{offset}:{bytes}"), rest)
        }
        Step::Slice { first, count } => {
            let mut elements = value.chunks_exact(3).skip(*first);
            let there = elements.len().min(*count);
            let part = elements.next().map(|_| &value[first * 3..(first + there) * 3]);
            (format!("e{first}:{count}"), part)
        }
    };
    let said = format!("mg a v {word}\r\n").into_bytes();
    let told = match read {
        None => b"NR\r\n".to_vec(),
        Some(part) => {
            let head = format!("VA {}\r\n", part.len()).into_bytes();
            [&head, part, b"\r\n"].concat()
        }
    };
    (said, told)
}

proptest! {
    #[test]
    fn parts_are_slices_of_a_plain_value(
        steps in proptest::collection::vec(step(), 1..40),
        whole_value_bytes_max in 0_usize..12,
    ) {
        let limits = Limits { whole_value_bytes_max, ..Limits::default() };
        let mut client = Client::with(limits);
        assert_eq!(client.now_s, NOW_S);
        let mut value = b"abcdefghij".to_vec();
        assert_eq!(client.say(store("a", "a3", &value)), "HD\r\n");
        for step in &steps {
            let (said, told) = converse(step, &mut value);
            prop_assert_eq!(client.exchange(&said, 5), told, "{:?}", step);
        }
    }
}
