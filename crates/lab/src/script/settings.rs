//! What scripts set: `dedup VOLUME HOW`, `codec VOLUME [CODEC LEVEL]`, `promise VOLUME CHUNKS`, and
//! `compress CODEC LEVEL` of the store.

use std::fmt;

use engine::{Codec, Compression, Dedup};

use crate::script::Verb;

/// A verb that sets the store or a volume; no codec behind the volume: as the store's.
pub(super) fn write(f: &mut fmt::Formatter<'_>, verb: &Verb) -> fmt::Result {
    match verb {
        Verb::Dedup { volume, dedup } => write!(f, "dedup {volume} {}", *dedup as u8),
        Verb::Compress(Compression { codec, level }) => {
            write!(f, "compress {} {level}", *codec as u8)
        }
        Verb::Promise { volume, chunks } => write!(f, "promise {volume} {chunks}"),
        Verb::Codec { volume, compression: None } => write!(f, "codec {volume}"),
        Verb::Codec { volume, compression: Some(Compression { codec, level }) } => {
            write!(f, "codec {volume} {} {level}", *codec as u8)
        }
        other => unreachable!("{other:?} sets nothing"),
    }
}

/// The same read back, from the numbers behind the volume.
pub(super) fn parse(verb: &str, volume: u32, numbers: &[u64]) -> Option<Verb> {
    match (verb, numbers) {
        ("promise", &[chunks]) => Some(Verb::Promise { volume, chunks }),
        ("codec", &[]) => Some(Verb::Codec { volume, compression: None }),
        ("codec", numbers) => {
            let compression = Some(parse_codec(numbers)?);
            Some(Verb::Codec { volume, compression })
        }
        ("dedup", &[dedup]) => {
            let dedup = Dedup::from_number(u8::try_from(dedup).ok()?)?;
            Some(Verb::Dedup { volume, dedup })
        }
        _ => None,
    }
}

/// A codec and its level.
pub(super) fn parse_codec(numbers: &[u64]) -> Option<Compression> {
    let &[codec, level] = numbers else { return None };
    let codec = Codec::from_number(u8::try_from(codec).ok()?)?;
    Some(Compression { codec, level: i8::try_from(level).ok()? })
}
