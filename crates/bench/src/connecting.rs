//! A volume of a server, chosen by the fixed newstyle handshake: what clients in this process begin
//! with. Nothing that a server says is believed before it is looked at.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nbd::wire::option::{
    FIXED_NEWSTYLE, GREETING_MAGIC, INFO_EXPORT, NO_ZEROES, OPT_GO, OPTION_MAGIC,
    OPTION_REPLY_MAGIC, OptionHeader, REP_ACK, REP_INFO,
};
use nbd::wire::{Command, Fields, Request};

/// What a server says first.
const GREETING_BYTES: usize = 18;
/// The front of an answer to an option: two words, what it is, and how long.
const OPTION_REPLY_BYTES: usize = 20;
/// A longer answer to an option is nonsense: the longest holds a string of 4 KiB.
const OPTION_REPLY_BYTES_MAX: u32 = 64 << 10;
/// More facts about one volume are nonsense.
const FACTS_MAX: usize = 64;
/// A server that says nothing for so long is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a server says of a volume.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExportFacts {
    pub(crate) size_bytes: u64,
    /// Transmission flags (`nbd::wire::option`).
    pub(crate) flags: u16,
}

/// A connection to `export` of the server at `socket`, which answers with simple replies.
pub(crate) fn connect(socket: &Path, export: &str) -> io::Result<(UnixStream, ExportFacts)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let facts = negotiate(&mut stream, export)?;
    Ok((stream, facts))
}

/// Says that no request follows.
pub(crate) fn disconnect(stream: &mut UnixStream) -> io::Result<()> {
    let (command, cookie, offset_bytes, length_bytes) = (Command::Disconnect, 0, 0, 0);
    let mut out = Vec::new();
    Request { flags: 0, command, cookie, offset_bytes, length_bytes }.encode(&mut out);
    stream.write_all(&out)
}

fn negotiate(stream: &mut (impl Read + Write), export: &str) -> io::Result<ExportFacts> {
    let mut greeting = [0; GREETING_BYTES];
    stream.read_exact(&mut greeting)?;
    let mut fields = Fields::new(&greeting);
    let magics = (fields.u64(), fields.u64());
    let flags = fields.u16().filter(|flags| flags & FIXED_NEWSTYLE != 0);
    let Some(flags) = flags.filter(|_| magics == (Some(GREETING_MAGIC), Some(OPTION_MAGIC))) else {
        return Err(io::Error::other("the server does not speak NBD's fixed newstyle"));
    };
    let name = export.as_bytes();
    // A length, the name, and how many facts are asked for.
    let mut out = u32::from(flags & (FIXED_NEWSTYLE | NO_ZEROES)).to_be_bytes().to_vec();
    OptionHeader { option: OPT_GO, length_bytes: name.len() as u32 + 6 }.encode(&mut out);
    out.extend((name.len() as u32).to_be_bytes());
    out.extend(name);
    out.extend([0, 0]);
    stream.write_all(&out)?;
    let mut facts = None;
    for _ in 0..FACTS_MAX {
        let (kind, told) = option_reply(stream)?;
        match kind {
            REP_ACK => {
                let missing = "the server does not say how large the volume is";
                return facts.ok_or_else(|| io::Error::other(missing));
            }
            REP_INFO => facts = export_facts(&told).or(facts),
            _ => {}
        }
    }
    Err(io::Error::other("the server tells facts about the volume without end"))
}

fn export_facts(told: &[u8]) -> Option<ExportFacts> {
    let mut fields = Fields::new(told);
    fields.u16().filter(|kind| *kind == INFO_EXPORT)?;
    Some(ExportFacts { size_bytes: fields.u64()?, flags: fields.u16()? })
}

/// What the server makes of an option, with the payload; an error is one as well.
fn option_reply(stream: &mut impl Read) -> io::Result<(u32, Vec<u8>)> {
    let mut head = [0; OPTION_REPLY_BYTES];
    stream.read_exact(&mut head)?;
    let mut fields = Fields::new(&head);
    let (magic, option, kind, length) = (fields.u64(), fields.u32(), fields.u32(), fields.u32());
    if (magic, option) != (Some(OPTION_REPLY_MAGIC), Some(OPT_GO)) {
        return Err(io::Error::other("the server answers no option of ours"));
    }
    let kind = kind.filter(|kind| *kind < 1 << 31);
    let kind = kind.ok_or_else(|| io::Error::other("the server refused the volume"))?;
    let length = length.filter(|length| *length <= OPTION_REPLY_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::other("the server's answer is too long"))?;
    let mut rest = vec![0; length as usize];
    stream.read_exact(&mut rest)?;
    Ok((kind, rest))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{self, Cursor, Read, Write};

    use nbd::wire::option::{
        GREETING_MAGIC, OPT_GO, OPTION_MAGIC, OPTION_REPLY_MAGIC, REP_ACK, REP_ERR_UNKNOWN,
        REP_INFO,
    };
    use proptest::prelude::{any, prop, proptest};

    use super::{ExportFacts, negotiate};

    /// A server that says what it says, whatever it is asked.
    struct Said(Cursor<Vec<u8>>);

    impl Read for Said {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.0.read(out)
        }
    }

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a server says first.
    pub(crate) fn greeting() -> Vec<u8> {
        let mut said = GREETING_MAGIC.to_be_bytes().to_vec();
        said.extend(OPTION_MAGIC.to_be_bytes());
        said.extend(3_u16.to_be_bytes());
        said
    }

    fn reply(said: &mut Vec<u8>, kind: u32, payload: &[u8]) {
        said.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        said.extend([OPT_GO, kind, payload.len() as u32].iter().flat_map(|n| n.to_be_bytes()));
        said.extend(payload);
    }

    fn outcome(said: Vec<u8>) -> Result<ExportFacts, String> {
        negotiate(&mut Said(Cursor::new(said)), "vol").map_err(|error| error.to_string())
    }

    /// Size 8 MiB, flags 5.
    const EXPORT: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 5];

    /// What a server says when the volume is chosen.
    pub(crate) fn chosen() -> Vec<u8> {
        let mut said = Vec::new();
        reply(&mut said, REP_INFO, &[0, 3, 1, 2]);
        reply(&mut said, REP_INFO, &EXPORT);
        reply(&mut said, REP_ACK, &[]);
        said
    }

    #[test]
    fn a_volume_is_chosen_with_what_the_server_says_of_it() {
        let said = [greeting(), chosen()].concat();
        assert_eq!(outcome(said), Ok(ExportFacts { size_bytes: 8 << 20, flags: 5 }));
    }

    #[test]
    fn nonsense_is_refused_and_comes_to_an_end() {
        let fails = |said: Vec<u8>, why: &str| {
            let error = outcome(said).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        fails(vec![0; 18], "fixed newstyle");
        let mut said = greeting();
        reply(&mut said, REP_ACK, &[]);
        fails(said, "how large");
        let mut said = greeting();
        reply(&mut said, REP_ERR_UNKNOWN, b"no such volume");
        fails(said, "refused");
        let mut said = greeting();
        (0..100).for_each(|_| reply(&mut said, REP_INFO, &EXPORT));
        fails(said, "without end");
        let mut said = greeting();
        said.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        said.extend([OPT_GO, REP_INFO, u32::MAX].iter().flat_map(|n| n.to_be_bytes()));
        fails(said, "too long");
        fails(greeting(), "fill whole buffer");
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut said = greeting();
            said.extend(noise);
            assert!(outcome(said).is_err(), "noise acknowledges nothing");
        }
    }
}
