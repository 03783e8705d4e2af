//! `codec VOLUME [CODEC LEVEL]` and `promise VOLUME CHUNKS`, as scripts say them.

use std::fmt;

use engine::{Codec, Compression};

use crate::script::Verb;

/// A verb that sets a volume; no codec behind the volume: as the store's.
pub(super) fn write(f: &mut fmt::Formatter<'_>, verb: &Verb) -> fmt::Result {
    match verb {
        Verb::Promise { volume, chunks } => write!(f, "promise {volume} {chunks}"),
        Verb::Codec { volume, compression: None } => write!(f, "codec {volume}"),
        Verb::Codec { volume, compression: Some(Compression { codec, level }) } => {
            write!(f, "codec {volume} {} {level}", *codec as u8)
        }
        other => unreachable!("{other:?} sets no volume"),
    }
}

/// The same read back, from the numbers behind the volume.
pub(super) fn parse(verb: &str, volume: u32, numbers: &[u64]) -> Option<Verb> {
    match (verb, numbers) {
        ("promise", &[chunks]) => Some(Verb::Promise { volume, chunks }),
        ("codec", &[]) => Some(Verb::Codec { volume, compression: None }),
        ("codec", &[codec, level]) => {
            let codec = Codec::from_number(u8::try_from(codec).ok()?)?;
            let compression = Some(Compression { codec, level: i8::try_from(level).ok()? });
            Some(Verb::Codec { volume, compression })
        }
        _ => None,
    }
}
