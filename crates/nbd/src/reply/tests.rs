use engine::{Extent, RequestError, Segment};
use proptest::prelude::{any, proptest};

use super::{Pieces, ReadRange, Replies};
use crate::request::Tag;
use crate::wire::Fields;

/// Runs of data (filled with a number of their own) and holes, in sectors.
struct Runs(Vec<(bool, u32)>);

impl Runs {
    fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        for (at, (hole, sectors)) in self.0.iter().enumerate() {
            let fill = if *hole { 0 } else { u8::try_from(at % 255).unwrap() + 1 };
            plain.resize(plain.len() + *sectors as usize * 512, fill);
        }
        plain
    }
}

impl Pieces for Runs {
    fn length_bytes(&self) -> usize {
        self.plain().len()
    }

    fn segments(&self) -> Vec<Segment> {
        let mut offset_bytes = 0;
        let mut segments = Vec::new();
        for (hole, sectors) in &self.0 {
            let length_bytes = sectors * 512;
            segments.push(Segment { offset_bytes, length_bytes, hole: *hole });
            offset_bytes += length_bytes;
        }
        segments
    }

    fn assemble(&self, out: &mut [u8]) -> Result<(), RequestError> {
        out.copy_from_slice(&self.plain());
        Ok(())
    }
}

struct Broken;

impl Pieces for Broken {
    fn length_bytes(&self) -> usize {
        4096
    }

    fn segments(&self) -> Vec<Segment> {
        vec![Segment { offset_bytes: 0, length_bytes: 4096, hole: false }]
    }

    fn assemble(&self, out: &mut [u8]) -> Result<(), RequestError> {
        out.fill(0xee);
        Err(RequestError::Damaged { volume: "v".to_owned(), lba: 3 })
    }
}

const OFFSET_BYTES: u64 = 1 << 33;

fn read_range(length_bytes: usize, unfragmented: bool) -> ReadRange {
    let length_bytes = u32::try_from(length_bytes).unwrap();
    ReadRange { tag: Tag { cookie: 9, unfragmented }, offset_bytes: OFFSET_BYTES, length_bytes }
}

/// What a client makes of a structured reply to a read: the bytes, and how many chunks they took.
fn put_together(reply: &[u8], length_bytes: usize) -> (Vec<u8>, usize) {
    let mut bytes = vec![0xcc; length_bytes];
    let mut fields = Fields::new(reply);
    let (mut chunks, mut done) = (0, false);
    while !fields.is_empty() {
        assert!(!done, "a chunk behind the last");
        assert_eq!(fields.u32(), Some(0x668e_33ef));
        done = fields.u16().unwrap() == 1;
        let kind = fields.u16().unwrap();
        assert_eq!(fields.u64(), Some(9));
        let payload_bytes = fields.u32().unwrap() as usize;
        let start = usize::try_from(fields.u64().unwrap() - OFFSET_BYTES).unwrap();
        if kind == 1 {
            let data = fields.bytes(payload_bytes - 8).unwrap();
            bytes[start..start + data.len()].copy_from_slice(data);
        } else {
            assert_eq!((kind, payload_bytes), (2, 12));
            let length = fields.u32().unwrap() as usize;
            bytes[start..start + length].fill(0);
        }
        chunks += 1;
    }
    assert!(done);
    (bytes, chunks)
}

proptest! {
    #[test]
    fn a_structured_read_is_put_together_again(
        lengths in proptest::collection::vec(1_u32..20, 1..12),
        hole_first in any::<bool>(),
        unfragmented in any::<bool>(),
    ) {
        let hole = |at: usize| at.is_multiple_of(2) == hole_first;
        let runs = Runs(lengths.into_iter().enumerate().map(|(at, n)| (hole(at), n)).collect());
        let plain = runs.plain();
        let mut replies = Replies::new(Box::default(), true);
        // Twice, so that the second lies on what the first left behind.
        for _ in 0..2 {
            replies.clear();
            replies.read(&read_range(plain.len(), unfragmented), &runs);
            let (bytes, chunks) = put_together(replies.as_bytes(), plain.len());
            assert_eq!(bytes, plain);
            assert_eq!(chunks, if unfragmented { 1 } else { runs.0.len() });
        }
    }

    #[test]
    fn a_simple_read_is_a_header_and_the_bytes(
        lengths in proptest::collection::vec((any::<bool>(), 1_u32..20), 1..12),
    ) {
        let runs = Runs(lengths);
        let plain = runs.plain();
        let mut replies = Replies::new(Box::default(), false);
        replies.done(1);
        replies.read(&read_range(plain.len(), false), &runs);
        let (header, bytes) = replies.as_bytes()[16..].split_at(16);
        assert_eq!(header, b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x09");
        assert_eq!(bytes, plain);
    }
}

#[test]
fn a_read_that_fails_sends_no_byte_of_data() {
    let mut replies = Replies::new(Box::default(), false);
    replies.done(1);
    replies.read(&read_range(4096, false), &Broken);
    replies.done(2);
    assert_eq!(replies.as_bytes()[16..32], *b"\x67\x44\x66\x98\0\0\0\x05\0\0\0\0\0\0\0\x09");
    assert_eq!(replies.as_bytes().len(), 48);

    let mut replies = Replies::new(Box::default(), true);
    replies.read(&read_range(4096, true), &Broken);
    let sentence = "chunk 3 of volume v is damaged on disk";
    let (header, message) = replies.as_bytes().split_at(26);
    assert_eq!(
        header,
        b"\x66\x8e\x33\xef\0\x01\x80\x01\0\0\0\0\0\0\0\x09\0\0\0\x2c\0\0\0\x05\0\x26"
    );
    assert_eq!(message, sentence.as_bytes());
}

#[test]
fn a_read_of_another_length_is_an_error() {
    let mut replies = Replies::new(Box::default(), false);
    replies.read(&read_range(512, false), &Broken);
    assert_eq!(replies.as_bytes(), *b"\x67\x44\x66\x98\0\0\0\x05\0\0\0\0\0\0\0\x09");
}

#[test]
fn segments_that_leave_a_gap_are_not_sent_as_such() {
    struct Gap(Runs);
    impl Pieces for Gap {
        fn length_bytes(&self) -> usize {
            self.0.length_bytes()
        }
        fn segments(&self) -> Vec<Segment> {
            self.0.segments().split_off(1)
        }
        fn assemble(&self, out: &mut [u8]) -> Result<(), RequestError> {
            self.0.assemble(out)
        }
    }
    let gap = Gap(Runs(vec![(true, 8), (false, 8), (true, 8)]));
    let mut replies = Replies::new(Box::default(), true);
    replies.read(&read_range(gap.length_bytes(), false), &gap);
    assert_eq!(put_together(replies.as_bytes(), gap.length_bytes()), (gap.0.plain(), 1));
}

#[test]
fn extents_are_these_bytes() {
    let mut replies = Replies::new(Box::default(), true);
    let extents = [
        Extent { length_bytes: 0x1000, hole: false },
        Extent { length_bytes: 0, hole: true },
        Extent { length_bytes: 1 << 40, hole: true },
        Extent { length_bytes: 0x1000, hole: false },
    ];
    replies.extents(7, &extents);
    let expected = b"\x66\x8e\x33\xef\0\x01\0\x05\0\0\0\0\0\0\0\x07\0\0\0\x14\0\0\0\x01\
        \0\0\x10\0\0\0\0\0\xff\xff\xfe\0\0\0\0\x03";
    assert_eq!(replies.as_bytes(), expected);
    replies.clear();
    replies.extents(7, &extents[1..2]);
    assert_eq!(replies.as_bytes()[6..8], *b"\x80\x01");
}

#[test]
fn a_long_reply_does_not_keep_its_memory() {
    let mut replies = Replies::new(Box::default(), false);
    replies.append(&vec![1; 9 << 20]);
    assert!(!replies.is_empty());
    replies.clear();
    assert!(replies.is_empty() && replies.long.is_none());
    replies.done(1);
    assert_eq!(replies.as_bytes().len(), 16);
}
