//! NBD negotiation: whatever a client sends, and in whatever pieces it arrives, the answer is the
//! same, and each message that is taken adds a bounded answer.
//!
//! The first byte chooses the size of the pieces and whether the server is closing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nbd::handshake::{Export, Exports, Handshake, NotServed, Step};

/// An answer to one message: every export and every fact there is, and room to spare.
const ANSWER_BYTES_MAX: usize = 1024;
const NAMES: [&str; 2] = ["a", "disk0"];

struct Shelf;

#[derive(Debug, PartialEq, Eq)]
struct Disk(&'static str);

impl Export for Disk {
    fn name(&self) -> String {
        self.0.to_owned()
    }

    fn size_bytes(&self) -> u64 {
        1 << 30
    }

    fn read_only(&self) -> bool {
        self.0 == "a"
    }

    fn preferred_bytes(&self) -> u32 {
        4096
    }
}

impl Exports for Shelf {
    type Export = Disk;

    fn list(&self) -> Result<Vec<String>, NotServed> {
        Ok(NAMES.map(str::to_owned).to_vec())
    }

    fn open(&self, name: &str) -> Result<Disk, NotServed> {
        let found = NAMES.into_iter().find(|one| *one == name);
        found.map(Disk).ok_or(if name.is_empty() { NotServed::Several } else { NotServed::Unknown })
    }
}

/// What is sent back, how it ends, and how many bytes were not taken.
fn converse(sent: &[u8], piece: usize, closing: bool) -> (Vec<u8>, Step<Disk>, usize) {
    let mut out = Vec::new();
    let mut handshake = Handshake::begin(&mut out);
    let (mut start, mut end) = (0, 0);
    loop {
        let before = out.len();
        let (taken, step) = handshake.advance(&sent[start..end], &Shelf, closing, &mut out);
        assert!(out.len() - before <= ANSWER_BYTES_MAX);
        start += taken;
        assert!(start <= end);
        if step != Step::Negotiate || (taken == 0 && end == sent.len()) {
            return (out, step, sent.len() - start);
        }
        if taken == 0 {
            end = sent.len().min(end + piece);
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((shape, sent)) = input.split_first() else { return };
    let (piece, closing) = (1 + usize::from(shape & 0x7f), shape & 0x80 != 0);
    let whole = converse(sent, sent.len().max(1), closing);
    assert_eq!(converse(sent, piece, closing), whole);
});
