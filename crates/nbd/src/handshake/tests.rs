use proptest::prelude::{any, prop_oneof, proptest};
use proptest::strategy::{Just, Strategy};

use super::{Export, Exports, Handshake, NotServed, Step};
use crate::wire::option::{
    OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST, OPT_LIST_META_CONTEXT,
    OPT_SET_META_CONTEXT, OPT_STARTTLS, OPT_STRUCTURED_REPLY, OptionHeader,
};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Disk(&'static str);

impl Export for Disk {
    fn name(&self) -> String {
        self.0.to_owned()
    }

    fn size_bytes(&self) -> u64 {
        0x10_0000
    }

    fn read_only(&self) -> bool {
        self.0 == "ro"
    }

    fn preferred_bytes(&self) -> u32 {
        4096
    }
}

/// Exports of these names.
struct Named<'a>(&'a [&'static str]);

impl Exports for Named<'_> {
    type Export = Disk;

    fn list(&self) -> Result<Vec<String>, NotServed> {
        Ok(self.0.iter().map(|&name| name.to_owned()).collect())
    }

    fn open(&self, name: &str) -> Result<Disk, NotServed> {
        match (name, self.0) {
            ("", [only]) => Ok(Disk(only)),
            ("", [_, _, ..]) => Err(NotServed::Several),
            (name, all) => {
                all.iter().find(|&&one| one == name).map(|one| Disk(one)).ok_or(NotServed::Unknown)
            }
        }
    }
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let length_bytes = u32::try_from(data.len()).unwrap();
    OptionHeader { option, length_bytes }.encode(&mut bytes);
    bytes.extend_from_slice(data);
    bytes
}

/// The client's half of a conversation and what came of it: the bytes sent, the last step, and the
/// bytes that were not consumed.
fn converse(exports: &[&'static str], sent: &[u8]) -> (Vec<u8>, Step<Disk>, usize) {
    let mut out = Vec::new();
    let mut handshake = Handshake::begin(&mut out);
    let mut rest = sent;
    loop {
        let (taken, step) = handshake.advance(rest, &Named(exports), false, &mut out);
        rest = &rest[taken..];
        if taken == 0 || step != Step::Negotiate {
            return (out, step, rest.len());
        }
    }
}

/// The same with the greeting and flags of a modern client, the greeting taken off.
fn negotiate(exports: &[&'static str], options: &[&[u8]]) -> (Vec<u8>, Step<Disk>) {
    let sent = [&[0, 0, 0, 3], options.concat().as_slice()].concat();
    let (out, step, _) = converse(exports, &sent);
    (out[18..].to_vec(), step)
}

const ACK_GO: &[u8] = b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x07\0\0\0\x01\0\0\0\0";

fn kinds(replies: &[u8]) -> Vec<u32> {
    let mut kinds = Vec::new();
    let mut rest = replies;
    while let Some((header, behind)) = rest.split_first_chunk::<20>() {
        assert!(header.starts_with(b"\0\x03\xe8\x89\x04\x55\x65\xa9"));
        kinds.push(u32::from_be_bytes(header[12..16].try_into().unwrap()));
        let length = u32::from_be_bytes(header[16..].try_into().unwrap());
        rest = &behind[length as usize..];
    }
    assert!(rest.is_empty());
    kinds
}

#[test]
fn export_name_is_answered_with_size_flags_and_padding_for_old_clients() {
    let disk0 = option(OPT_EXPORT_NAME, b"disk0");
    for (client_flags, padding) in [(0_u8, 124), (1, 124), (2, 0), (3, 0)] {
        let sent = [&[0, 0, 0, client_flags], disk0.as_slice(), b"next"].concat();
        let (out, step, left) = converse(&["disk0"], &sent);
        let mut expected = b"NBDMAGICIHAVEOPT\0\x03\0\0\0\0\0\x10\0\0\x0d\x6d".to_vec();
        expected.resize(expected.len() + padding, 0);
        assert_eq!(out, expected);
        assert!(matches!(step, Step::Transmit(agreed) if !agreed.structured && !agreed.allocation));
        assert_eq!(left, 4);
    }
}

#[test]
fn go_gives_every_fact_byte_for_byte() {
    let data = b"\0\0\0\0\0\x03\0\x01\0\x02\0\x03";
    let (out, step) = negotiate(&["disk0"], &[&option(OPT_GO, data)]);
    let info = |length: u8| {
        [b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x07\0\0\0\x03\0\0\0", [length].as_slice()].concat()
    };
    let expected = [
        &info(12),
        b"\0\0\0\0\0\0\0\x10\0\0\x0d\x6d".as_slice(),
        &info(14),
        b"\0\x03\0\0\0\x01\0\0\x10\0\x02\0\0\0",
        &info(7),
        b"\0\x01disk0",
        &info(52),
        b"\0\x02Tamis volume, deduplicated in chunks of 4096 bytes",
        ACK_GO,
    ]
    .concat();
    assert_eq!(out, expected);
    assert!(matches!(step, Step::Transmit(agreed) if agreed.export == Disk("disk0")));
}

#[test]
fn a_read_only_export_offers_nothing_that_changes_it() {
    let (out, _) = negotiate(&["ro"], &[&option(OPT_INFO, b"\0\0\0\x02ro\0\0")]);
    assert_eq!(out[20..32], *b"\0\0\0\0\0\0\0\x10\0\0\x05\x0f");
}

#[test]
fn do_not_fragment_is_offered_with_structured_replies_only() {
    let structured = option(OPT_STRUCTURED_REPLY, b"");
    let (out, step) = negotiate(&["disk0"], &[&structured, &option(OPT_EXPORT_NAME, b"disk0")]);
    assert_eq!(out[20..], *b"\0\0\0\0\0\x10\0\0\x0d\xed");
    assert!(matches!(step, Step::Transmit(agreed) if agreed.structured));
}

#[test]
fn list_names_every_export() {
    let (out, step) = negotiate(&["a", "bc"], &[&option(OPT_LIST, b"")]);
    let reply = b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x03\0\0\0".as_slice();
    let expected = [
        reply,
        b"\x02\0\0\0\x05\0\0\0\x01a",
        reply,
        b"\x02\0\0\0\x06\0\0\0\x02bc",
        reply,
        b"\x01\0\0\0\0",
    ];
    assert_eq!(out, expected.concat());
    assert_eq!(step, Step::Negotiate);
}

const ALLOCATION_OF_A: &[u8] = b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation";

#[test]
fn the_allocation_context_counts_for_its_export_only() {
    let structured = option(OPT_STRUCTURED_REPLY, b"");
    let set = option(OPT_SET_META_CONTEXT, ALLOCATION_OF_A);
    let bad_set = option(OPT_SET_META_CONTEXT, b"?");
    let other = option(OPT_SET_META_CONTEXT, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x05x-y:z");
    let (go_a, go_b) = (option(OPT_GO, b"\0\0\0\x01a\0\0"), option(OPT_EXPORT_NAME, b"b"));
    let cases: [(&[&[u8]], bool); 5] = [
        (&[&structured, &set, &go_a], true),
        (&[&structured, &set, &go_b], false),
        (&[&structured, &set, &bad_set, &go_a], false),
        (&[&structured, &set, &other, &go_a], false),
        (&[&set, &structured, &go_a], false),
    ];
    for (options, expected) in cases {
        let (_, step) = negotiate(&["a", "b"], options);
        let Step::Transmit(agreed) = step else { panic!("no transmission: {step:?}") };
        assert_eq!(agreed.allocation, expected);
    }
}

#[test]
fn meta_contexts_are_found_by_name_and_listed_by_wildcard() {
    let found: &[u32] = &[1, 4, 1];
    let none: &[u32] = &[1, 1];
    let cases: [(u32, &[u8], &[u32]); 8] = [
        (OPT_SET_META_CONTEXT, ALLOCATION_OF_A, found),
        (OPT_SET_META_CONTEXT, b"\0\0\0\x01a\0\0\0\0", none),
        (OPT_SET_META_CONTEXT, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x05base:", none),
        (OPT_LIST_META_CONTEXT, ALLOCATION_OF_A, found),
        (OPT_LIST_META_CONTEXT, b"\0\0\0\x01a\0\0\0\0", found),
        (OPT_LIST_META_CONTEXT, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x05base:", found),
        (OPT_LIST_META_CONTEXT, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x04qemu", none),
        (OPT_LIST_META_CONTEXT, b"\0\0\0\x01z\0\0\0\0", &[1, 0x8000_0006]),
    ];
    for (number, data, expected) in cases {
        let options = [option(OPT_STRUCTURED_REPLY, b""), option(number, data)];
        let (out, step) = negotiate(&["a"], &[&options[0], &options[1]]);
        assert_eq!(kinds(&out), expected, "{number} {data:?}");
        assert_eq!(step, Step::Negotiate);
    }
}

#[test]
fn what_is_refused_is_refused_as_prescribed_and_negotiation_goes_on() {
    const UNSUP: u32 = 0x8000_0001;
    const INVALID: u32 = 0x8000_0003;
    const UNKNOWN: u32 = 0x8000_0006;
    const TOO_BIG: u32 = 0x8000_0009;
    let long_name = [b"\0\0\x10\x01".as_slice(), &[b'n'; 4097], b"\0\0"].concat();
    let cases: [(u32, &[u8], u32); 17] = [
        (OPT_STARTTLS, b"", UNSUP),
        (4, b"", UNSUP),
        (11, b"", UNSUP),
        (u32::MAX, b"data", UNSUP),
        (OPT_LIST, b"x", INVALID),
        (OPT_STRUCTURED_REPLY, b"x", INVALID),
        (OPT_INFO, b"", INVALID),
        (OPT_INFO, b"\0\0\0\x01", INVALID),
        (OPT_INFO, b"\0\0\0\x01a\0\x01", INVALID),
        (OPT_INFO, b"\0\0\0\x01a\0\0!", INVALID),
        (OPT_GO, b"\0\0\0\x01\xff\0\0", INVALID),
        (OPT_GO, &long_name, INVALID),
        (OPT_GO, b"\0\0\0\x01z\0\0", UNKNOWN),
        (OPT_GO, b"\0\0\0\0\0\0", UNKNOWN),
        (OPT_LIST_META_CONTEXT, ALLOCATION_OF_A, INVALID),
        (OPT_SET_META_CONTEXT, ALLOCATION_OF_A, INVALID),
        (OPT_LIST, &[0; 16385], TOO_BIG),
    ];
    for (number, data, expected) in cases {
        let (out, step) =
            negotiate(&["a", "b"], &[&option(number, data), &option(OPT_ABORT, b"bye")]);
        assert_eq!(kinds(&out), [expected, 1], "option {number}");
        assert_eq!(step, Step::Close);
    }
}

#[test]
fn what_has_no_answer_ends_the_connection() {
    let named = option(OPT_EXPORT_NAME, b"nobody");
    let long = option(OPT_EXPORT_NAME, &[b'a'; 20_000]);
    let not_utf8 = option(OPT_EXPORT_NAME, b"\xff");
    let list = option(OPT_LIST, b"");
    let mut endless = list.clone();
    endless[12..].fill(0xff);
    let scripts: [&[&[u8]]; 7] = [
        &[b"\0\0\0\x04"],
        &[b"\xff\xff\xff\xff"],
        &[b"\0\0\0\0", &list],
        &[b"\0\0\0\x03", &named],
        &[b"\0\0\0\x03", &long],
        &[b"\0\0\0\x03", &not_utf8],
        &[b"\0\0\0\x03", &endless],
    ];
    for script in scripts {
        let (out, step, _) = converse(&["a"], &script.concat());
        assert_eq!(out.len(), 18);
        assert_eq!(step, Step::Close);
    }
    let (_, step, _) = converse(&["a"], b"\0\0\0\x03IHAVEOPS\0\0\0\x03\0\0\0\0");
    assert_eq!(step, Step::Close);
}

#[test]
fn a_server_that_closes_says_so() {
    let mut out = Vec::new();
    let mut handshake = Handshake::begin(&mut out);
    let exports = Named(&["a"]);
    assert_eq!(handshake.advance(b"\0\0\0\x03", &exports, true, &mut out).0, 4);
    out.clear();
    for number in [OPT_LIST, OPT_GO, OPT_ABORT] {
        let _ = handshake.advance(&option(number, b""), &exports, true, &mut out);
    }
    assert_eq!(kinds(&out), [0x8000_0007, 0x8000_0007, 1]);
}

fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let data = proptest::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..40);
    prop_oneof![
        Just(b"\0\0\0\x03".to_vec()),
        (0_u32..12, data.clone()).prop_map(|(number, data)| option(number, &data)),
        Just(option(OPT_SET_META_CONTEXT, ALLOCATION_OF_A)),
        Just(option(OPT_STRUCTURED_REPLY, b"")),
        data,
    ]
}

proptest! {
    /// However the bytes are cut into arrivals, the answer is the same, and nothing panics.
    #[test]
    fn the_answer_does_not_depend_on_how_bytes_arrive(
        messages in proptest::collection::vec(any_message(), 0..8),
        cut in 1_usize..9,
    ) {
        let sent = [&[0, 0, 0, 3], messages.concat().as_slice()].concat();
        let (expected, step, left) = converse(&["a", "b"], &sent);

        let exports = Named(&["a", "b"]);
        let mut out = Vec::new();
        let mut handshake = Handshake::begin(&mut out);
        let (mut start, mut end) = (0, 0);
        let last = loop {
            let (taken, step) = handshake.advance(&sent[start..end], &exports, false, &mut out);
            start += taken;
            if step != Step::Negotiate || (taken == 0 && end == sent.len()) {
                break step;
            }
            if taken == 0 {
                end = sent.len().min(end + cut);
            }
        };
        assert_eq!((out, last, sent.len() - start), (expected, step, left));
    }
}
