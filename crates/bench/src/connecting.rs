//! A volume of a server, chosen: what clients in this process begin with.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nbd::wire::option::{OPT_GO, OptionHeader, REP_ACK};
use nbd::wire::{Command, Fields, Request};

/// What a server says first, and what we say to it.
const GREETING_BYTES: usize = 18;
const CLIENT_FLAGS: u32 = 3;
/// The front of an answer to an option: two words, what it is, and how long.
const OPTION_REPLY_BYTES: usize = 20;

/// A connection to `export` of the server at `socket`, which answers with simple replies.
pub(crate) fn connect(socket: &Path, export: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.read_exact(&mut [0; GREETING_BYTES])?;
    let name = export.as_bytes();
    // A length, the name, and how many facts are asked for.
    let mut out = CLIENT_FLAGS.to_be_bytes().to_vec();
    OptionHeader { option: OPT_GO, length_bytes: name.len() as u32 + 6 }.encode(&mut out);
    out.extend((name.len() as u32).to_be_bytes());
    out.extend(name);
    out.extend([0, 0]);
    stream.write_all(&out)?;
    while option_reply(&mut stream)? != REP_ACK {}
    Ok(stream)
}

/// Says that no request follows.
pub(crate) fn disconnect(stream: &mut UnixStream) -> io::Result<()> {
    let (command, cookie, offset_bytes, length_bytes) = (Command::Disconnect, 0, 0, 0);
    let mut out = Vec::new();
    Request { flags: 0, command, cookie, offset_bytes, length_bytes }.encode(&mut out);
    stream.write_all(&out)
}

/// What the server makes of an option; an error is one as well.
fn option_reply(stream: &mut UnixStream) -> io::Result<u32> {
    let mut head = [0; OPTION_REPLY_BYTES];
    stream.read_exact(&mut head)?;
    let mut fields = Fields::new(&head);
    let (kind, length) = (fields.u64().and(fields.u32()).and(fields.u32()), fields.u32());
    let kind = kind.filter(|kind| *kind < 1 << 31);
    let kind = kind.ok_or_else(|| io::Error::other("the server refused the volume"))?;
    let mut rest = vec![0; length.unwrap_or_default() as usize];
    stream.read_exact(&mut rest)?;
    Ok(kind)
}
