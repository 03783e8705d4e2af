//! Negotiation from the client's end. Nothing that a server says is believed before it is checked:
//! every length has a bound, and the number of answers to one option has one, too.

use std::io::{Read, Write};

use super::error::{ClientError, nonsense};
use crate::wire::Fields;
use crate::wire::option::{
    FIXED_NEWSTYLE, GREETING_MAGIC, INFO_BLOCK_SIZE, INFO_EXPORT, NO_ZEROES, OPT_GO,
    OPT_SET_META_CONTEXT, OPT_STRUCTURED_REPLY, OPTION_MAGIC, OPTION_REPLY_MAGIC, OptionHeader,
    REP_ACK, REP_INFO, REP_META_CONTEXT,
};

/// What a server says first.
const GREETING_BYTES: usize = 18;
/// The front of an answer to an option: two words, what it is, and how long.
const OPTION_REPLY_BYTES: usize = 20;
/// A longer answer to an option is nonsense: the longest holds a string of 4 KiB.
const OPTION_REPLY_BYTES_MAX: u32 = 64 << 10;
/// More answers to one option are nonsense.
const ANSWERS_MAX: usize = 64;
/// Bit of an answer that says no.
const REFUSED: u32 = 1 << 31;

/// What a client asks for.
#[derive(Copy, Clone, Debug, Default)]
pub struct Wish<'a> {
    /// Name of the export; empty: the default one.
    pub export: &'a str,
    /// Whether replies are to be structured, which is what metadata contexts need.
    pub structured: bool,
    /// Names of metadata contexts; those that the server does not have are not in [`Export`].
    pub contexts: &'a [&'a str],
}

/// What a server says of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Its size.
    pub size_bytes: u64,
    /// Transmission flags ([`crate::wire::option`]).
    pub flags: u16,
    /// The size of requests that the server serves best; 0: it does not say.
    pub preferred_bytes: u32,
    /// The metadata contexts that were chosen.
    pub contexts: Vec<Context>,
}

/// A metadata context that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// By which extents name it.
    pub id: u32,
    /// Its name.
    pub name: String,
}

/// Chooses an export of the server that writes what `from` reads; transmission follows.
///
/// # Errors
/// [`ClientError::NoExport`] when the server has no such export, or another [`ClientError`] when it
/// does not speak as a server does.
pub fn negotiate(
    from: &mut impl Read,
    to: &mut impl Write,
    wish: Wish<'_>,
) -> Result<Export, ClientError> {
    let mut greeting = [0; GREETING_BYTES];
    from.read_exact(&mut greeting)?;
    let mut fields = Fields::new(&greeting);
    let magics = (fields.u64(), fields.u64());
    let flags = fields.u16().filter(|flags| flags & FIXED_NEWSTYLE != 0);
    let Some(flags) = flags.filter(|_| magics == (Some(GREETING_MAGIC), Some(OPTION_MAGIC))) else {
        return Err(nonsense("its greeting is not that of NBD's fixed newstyle"));
    };
    to.write_all(&u32::from(flags & (FIXED_NEWSTYLE | NO_ZEROES)).to_be_bytes())?;
    if wish.structured {
        ask(to, OPT_STRUCTURED_REPLY, &[])?;
        answers(from, OPT_STRUCTURED_REPLY, |_, _| Ok(()))?;
    }
    let contexts = contexts(from, to, wish)?;
    go(from, to, wish.export, contexts)
}

fn contexts(
    from: &mut impl Read,
    to: &mut impl Write,
    wish: Wish<'_>,
) -> Result<Vec<Context>, ClientError> {
    let mut chosen: Vec<Context> = Vec::new();
    if wish.contexts.is_empty() {
        return Ok(chosen);
    }
    let mut data = string(wish.export);
    data.extend(length_of(wish.contexts.len()));
    wish.contexts.iter().for_each(|name| data.extend(string(name)));
    ask(to, OPT_SET_META_CONTEXT, &data)?;
    answers(from, OPT_SET_META_CONTEXT, |kind, told| {
        let mut fields = Fields::new(told);
        let id = fields.u32().filter(|_| kind == REP_META_CONTEXT);
        let name = fields.bytes(told.len().saturating_sub(4)).map(String::from_utf8_lossy);
        let (Some(id), Some(name)) = (id, name) else { return Ok(()) };
        let twice = chosen.iter().any(|one| one.id == id || one.name == name);
        if twice || !wish.contexts.contains(&&*name) {
            return Err(nonsense("it chose a metadata context that was not asked for"));
        }
        chosen.push(Context { id, name: name.into_owned() });
        Ok(())
    })?;
    Ok(chosen)
}

fn go(
    from: &mut impl Read,
    to: &mut impl Write,
    export: &str,
    contexts: Vec<Context>,
) -> Result<Export, ClientError> {
    let mut data = string(export);
    // One fact is asked for: sizes of requests.
    data.extend([0, 1]);
    data.extend(INFO_BLOCK_SIZE.to_be_bytes());
    ask(to, OPT_GO, &data)?;
    let (mut found, mut preferred_bytes) = (None, 0);
    answers(from, OPT_GO, |kind, told| {
        let mut fields = Fields::new(told);
        match fields.u16().filter(|_| kind == REP_INFO) {
            Some(INFO_EXPORT) => found = fields.u64().zip(fields.u16()).or(found),
            Some(INFO_BLOCK_SIZE) => {
                preferred_bytes = fields.u32().and(fields.u32()).unwrap_or(preferred_bytes);
            }
            _ => {}
        }
        Ok(())
    })?;
    let missing = || nonsense("it does not say how large the export is");
    let (size_bytes, flags) = found.ok_or_else(missing)?;
    Ok(Export { size_bytes, flags, preferred_bytes, contexts })
}

fn length_of(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}

fn string(text: &str) -> Vec<u8> {
    [&length_of(text.len()), text.as_bytes()].concat()
}

fn ask(to: &mut impl Write, option: u32, data: &[u8]) -> Result<(), ClientError> {
    let mut out = Vec::new();
    let length_bytes = u32::from_be_bytes(length_of(data.len()));
    OptionHeader { option, length_bytes }.encode(&mut out);
    out.extend_from_slice(data);
    Ok(to.write_all(&out)?)
}

/// Hands `take` every answer to `option` before the last, which acknowledges it.
fn answers(
    from: &mut impl Read,
    option: u32,
    mut take: impl FnMut(u32, &[u8]) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    for _ in 0..ANSWERS_MAX {
        match answer(from, option)? {
            (REP_ACK, _) => return Ok(()),
            (kind, told) if kind & REFUSED != 0 => {
                let sentence = String::from_utf8_lossy(&told).into_owned();
                return Err(ClientError::NoExport { sentence });
            }
            (kind, told) => take(kind, &told)?,
        }
    }
    Err(nonsense("it answers one option without end"))
}

fn answer(from: &mut impl Read, asked: u32) -> Result<(u32, Vec<u8>), ClientError> {
    let mut head = [0; OPTION_REPLY_BYTES];
    from.read_exact(&mut head)?;
    let mut fields = Fields::new(&head);
    let (magic, option, kind, length) = (fields.u64(), fields.u32(), fields.u32(), fields.u32());
    if (magic, option) != (Some(OPTION_REPLY_MAGIC), Some(asked)) {
        return Err(nonsense("it answers an option that was not asked"));
    }
    let length = length.filter(|length| *length <= OPTION_REPLY_BYTES_MAX);
    let length = length.ok_or_else(|| nonsense("its answer to an option is too long"))?;
    let mut told = vec![0; length as usize];
    from.read_exact(&mut told)?;
    Ok((kind.unwrap_or_default(), told))
}

#[cfg(test)]
mod tests {
    use std::io::sink;

    use proptest::prelude::{any, prop, proptest};

    use super::{Context, Export, Wish, negotiate};
    use crate::wire::option::{
        OPT_GO, OPT_SET_META_CONTEXT, OPT_STRUCTURED_REPLY, OPTION_REPLY_MAGIC, REP_ACK,
        REP_ERR_UNKNOWN, REP_INFO, REP_META_CONTEXT, greeting, reply,
    };

    const PLAIN: Wish<'_> = Wish { export: "vol", structured: false, contexts: &[] };
    /// Size 8 MiB, flags 5.
    const FACTS: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 5];

    fn greeted() -> Vec<u8> {
        let mut said = Vec::new();
        greeting(&mut said);
        said
    }

    fn go(said: &mut Vec<u8>, kind: u32, data: &[u8]) {
        reply(said, OPT_GO, kind, &[data]);
    }

    fn outcome(said: &[u8], wish: Wish<'_>) -> Result<Export, String> {
        negotiate(&mut &*said, &mut sink(), wish).map_err(|error| error.to_string())
    }

    #[test]
    fn an_export_is_chosen_with_what_the_server_says_of_it() {
        let mut said = greeted();
        go(&mut said, REP_INFO, &[0, 3, 0, 0, 2, 0, 0, 0, 16, 0, 0, 1, 0, 0]);
        go(&mut said, REP_INFO, &FACTS);
        go(&mut said, REP_ACK, &[]);
        let plain =
            Export { size_bytes: 8 << 20, flags: 5, preferred_bytes: 4096, contexts: vec![] };
        assert_eq!(outcome(&said, PLAIN), Ok(plain));
    }

    #[test]
    fn only_contexts_that_were_asked_for_are_chosen() {
        let wish = Wish { structured: true, contexts: &["base:allocation", "tamis:x"], ..PLAIN };
        let with = |contexts: &[(u32, &str)]| {
            let mut said = greeted();
            reply(&mut said, OPT_STRUCTURED_REPLY, REP_ACK, &[]);
            for (id, name) in contexts {
                let data: [&[u8]; 2] = [&id.to_be_bytes(), name.as_bytes()];
                reply(&mut said, OPT_SET_META_CONTEXT, REP_META_CONTEXT, &data);
            }
            reply(&mut said, OPT_SET_META_CONTEXT, REP_ACK, &[]);
            go(&mut said, REP_INFO, &FACTS);
            go(&mut said, REP_ACK, &[]);
            outcome(&said, wish).map(|export| export.contexts)
        };
        let context = |id, name: &str| Context { id, name: name.to_owned() };
        assert_eq!(with(&[]), Ok(vec![]));
        assert_eq!(with(&[(7, "tamis:x")]), Ok(vec![context(7, "tamis:x")]));
        assert!(with(&[(7, "tamis:y")]).unwrap_err().contains("not asked for"));
        assert!(with(&[(7, "tamis:x"), (7, "base:allocation")]).is_err(), "one number for two");
        assert!(with(&[(7, "tamis:x"), (8, "tamis:x")]).is_err(), "one context twice");
    }

    #[test]
    fn nonsense_is_refused_and_comes_to_an_end() {
        let fails = |said: Vec<u8>, why: &str| {
            let error = outcome(&said, PLAIN).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        fails(vec![0; 18], "fixed newstyle");
        let mut said = greeted();
        go(&mut said, REP_ACK, &[]);
        fails(said, "how large");
        let mut said = greeted();
        go(&mut said, REP_ERR_UNKNOWN, b"no such volume");
        fails(said, "no such volume");
        let mut said = greeted();
        (0..100).for_each(|_| go(&mut said, REP_INFO, &FACTS));
        fails(said, "without end");
        let mut said = greeted();
        said.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        said.extend([OPT_GO, REP_INFO, u32::MAX].iter().flat_map(|n| n.to_be_bytes()));
        fails(said, "too long");
        fails(greeted(), "closed the connection");
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let said = [greeted(), noise].concat();
            assert!(outcome(&said, PLAIN).is_err(), "noise acknowledges nothing");
        }
    }
}
