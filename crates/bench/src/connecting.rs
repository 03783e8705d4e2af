//! A volume of a server, chosen by the fixed newstyle handshake: what clients in this process begin
//! with ([`nbd::client::negotiate`]).

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nbd::client::{Export, Wish, negotiate};
use nbd::wire::{Command, Request};

/// A server that says nothing for so long has failed.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A connection to `export` of the server at `socket`, which answers with simple replies.
pub(crate) fn connect(socket: &Path, export: &str) -> io::Result<(UnixStream, Export)> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIME_LIMIT))?;
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    let wish = Wish { export, ..Wish::default() };
    let facts = negotiate(&mut &stream, &mut &stream, wish).map_err(io::Error::other)?;
    Ok((stream, facts))
}

/// Says that no request follows.
pub(crate) fn disconnect(stream: &mut UnixStream) -> io::Result<()> {
    let (command, cookie, offset_bytes, length_bytes) = (Command::Disconnect, 0, 0, 0);
    let mut out = Vec::new();
    Request { flags: 0, command, cookie, offset_bytes, length_bytes }.encode(&mut out);
    stream.write_all(&out)
}

#[cfg(test)]
pub(crate) mod tests {
    use nbd::wire::option::{OPT_GO, REP_ACK, REP_INFO, reply};

    /// Size 8 MiB, flags 5.
    const EXPORT: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 5];

    /// What a server says first.
    pub(crate) fn greeting() -> Vec<u8> {
        let mut said = Vec::new();
        nbd::wire::option::greeting(&mut said);
        said
    }

    /// What a server says when the volume is chosen.
    pub(crate) fn chosen() -> Vec<u8> {
        let mut said = Vec::new();
        reply(&mut said, OPT_GO, REP_INFO, &[&[0, 3, 1, 2]]);
        reply(&mut said, OPT_GO, REP_INFO, &[&EXPORT]);
        reply(&mut said, OPT_GO, REP_ACK, &[]);
        said
    }
}
