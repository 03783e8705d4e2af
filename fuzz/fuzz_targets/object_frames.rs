//! Objects over the control socket, the caller's end: whatever a server sends behind its answer,
//! our client ends with a result, and takes no more bytes than came.
//!
//! The first byte says in pieces of what size the bytes arrive.
#![no_main]

use std::io::{BufReader, sink};

use admin::frames::{FRAME_HEAD_BYTES, FrameHead};
use admin::{Client, ControlError, GetObject, ObjectShown, ObjectSink};
use libfuzzer_sys::fuzz_target;

const BEGINNING: &[u8] = b"{\"protocol\":6,\"tamis\":\"0\",\"busy\":false}
{\"answer\":{\"key\":\"k\",\"size_bytes\":1,\"etag\":\"\",\
    \"object_version\":1,\"created_unix_ms\":1}}
";

/// Counts what it takes.
#[derive(Default)]
struct Count(usize);

impl ObjectSink for Count {
    type Error = ControlError;

    fn begin(&mut self, _object: &ObjectShown) -> Result<(), ControlError> {
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        self.0 += bytes.len();
        Ok(())
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((piece, frames)) = input.split_first() else { return };
    if let Some(head) = frames.first_chunk::<FRAME_HEAD_BYTES>()
        && let Ok(read) = FrameHead::decode(*head)
    {
        assert_eq!(read.encode(), *head);
    }
    let sent = [BEGINNING, frames].concat();
    let reader = BufReader::with_capacity(1 + usize::from(*piece), sent.as_slice());
    let mut client = Client::over(reader, sink()).expect("the greeting is one");
    let mut count = Count::default();
    let got = client.get_object(GetObject::default(), &mut count);
    assert!(count.0 <= frames.len());
    drop(got.map_err(|error| error.to_string()));
});
