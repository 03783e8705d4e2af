//! The settings of an emulated device, as an administrator writes them:
//! `emulated:batch=64,queue=8,hash=4,compress=4`, in any order, each with its default.

use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;
use std::str::FromStr;

use thiserror::Error;

use crate::device::Capacity;

const NAME: &str = "emulated";

/// Chunks of a submission: from a job of the engine's on, to all of a group.
const BATCH: RangeInclusive<usize> = 64..=512;
const QUEUE: RangeInclusive<usize> = 1..=1024;
const UNITS: RangeInclusive<usize> = 1..=256;

/// An emulated device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EmulatedSettings {
    /// What it has room and units for.
    pub capacity: Capacity,
}

impl Default for EmulatedSettings {
    fn default() -> Self {
        let capacity = Capacity { batch_chunks: 64, queue: 8, hash_units: 4, compress_units: 4 };
        Self { capacity }
    }
}

/// Why words are no settings of a device.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SettingsError {
    /// It is no device.
    #[error("use emulated, or emulated:batch=64,queue=8,hash=4,compress=4")]
    Device,
    /// It has no such setting.
    #[error("an emulated accelerator has batch, queue, hash and compress; not {0:?}")]
    Name(String),
    /// A setting has no such value.
    #[error("{name}: use a number from {least} to {most}")]
    Value {
        /// The setting.
        name: String,
        /// Its least value.
        least: usize,
        /// Its greatest value.
        most: usize,
    },
}

impl FromStr for EmulatedSettings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        let words = match text.strip_prefix(NAME).ok_or(SettingsError::Device)? {
            "" => return Ok(settings),
            rest => rest.strip_prefix(':').ok_or(SettingsError::Device)?,
        };
        for word in words.split(',') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let (setting, range) = match name {
                "batch" => (&mut settings.capacity.batch_chunks, BATCH),
                "queue" => (&mut settings.capacity.queue, QUEUE),
                "hash" => (&mut settings.capacity.hash_units, UNITS),
                "compress" => (&mut settings.capacity.compress_units, UNITS),
                _ => return Err(SettingsError::Name(name.to_owned())),
            };
            *setting =
                value.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
                    let (least, most) = (*range.start(), *range.end());
                    SettingsError::Value { name: name.to_owned(), least, most }
                })?;
        }
        Ok(settings)
    }
}

impl Display for EmulatedSettings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Capacity { batch_chunks, queue, hash_units, compress_units } = self.capacity;
        write!(f, "{NAME}:batch={batch_chunks},queue={queue}")?;
        write!(f, ",hash={hash_units},compress={compress_units}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Capacity, EmulatedSettings, SettingsError};

    fn parse(text: &str) -> Result<EmulatedSettings, SettingsError> {
        text.parse()
    }

    #[test]
    fn settings_are_what_they_are_written_as() {
        assert_eq!(parse("emulated"), Ok(EmulatedSettings::default()));
        let capacity = Capacity { batch_chunks: 128, queue: 1, hash_units: 4, compress_units: 256 };
        let settings = EmulatedSettings { capacity };
        assert_eq!(parse("emulated:compress=256,batch=128,queue=1"), Ok(settings));
        for settings in [settings, EmulatedSettings::default()] {
            assert_eq!(parse(&settings.to_string()), Ok(settings));
        }
    }

    #[test]
    fn what_is_no_setting_is_refused_with_the_way_out() {
        for text in ["", "fpga", "emulated-", "emulated64"] {
            assert_eq!(parse(text), Err(SettingsError::Device), "{text}");
        }
        assert_eq!(parse("emulated:"), Err(SettingsError::Name(String::new())));
        assert_eq!(parse("emulated:engines=4"), Err(SettingsError::Name("engines".to_owned())));
        for (text, said) in [
            ("emulated:batch=63", "batch: use a number from 64 to 512"),
            ("emulated:queue=8,hash=x", "hash: use a number from 1 to 256"),
            ("emulated:queue", "queue: use a number from 1 to 1024"),
            ("emulated:compress=99999999999999999999", "compress: use a number from 1 to 256"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), said, "{text}");
        }
    }
}
