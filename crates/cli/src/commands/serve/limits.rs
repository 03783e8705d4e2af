//! How many connections are served: what was asked for, as far as there are file descriptors.

use std::fmt::Write;

use nbd::{Notice, ServerOptions};

use crate::error::CliError;

/// Connections that have not chosen a volume, at one time.
const HALF_OPEN_MAX: u64 = 64;
/// File descriptors for what comes later: connections of the control socket, files of a growth.
const OWN_DESCRIPTORS: u64 = 32;

/// How many connections there may be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) connections_max: usize,
    pub(super) half_open_max: usize,
}

impl Bounds {
    /// What was asked for, or by default as many as there are file descriptors for.
    ///
    /// # Errors
    /// [`CliError::TooFewDescriptors`].
    pub(super) fn within(
        asked: Option<u16>,
        descriptors_max: u64,
        descriptors_open: u64,
    ) -> Result<Self, CliError> {
        let wished = asked.map_or(ServerOptions::default().connections_max as u64, u64::from);
        let spare = descriptors_max.saturating_sub(descriptors_open + OWN_DESCRIPTORS);
        let half_open_max = HALF_OPEN_MAX.min(spare / 4).max(1);
        let most = spare.saturating_sub(half_open_max);
        if most == 0 || (wished > most && asked.is_some()) {
            return Err(CliError::TooFewDescriptors { wished, most, descriptors_max });
        }
        let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (connections_max, half_open_max) = (whole(wished.min(most)), whole(half_open_max));
        Ok(Self { connections_max, half_open_max })
    }

    /// What an operator is told when there are fewer than by default.
    pub(super) fn note(&self, asked: Option<u16>, descriptors_max: u64) -> Option<String> {
        let is_less = self.connections_max < ServerOptions::default().connections_max;
        (asked.is_none() && is_less).then(|| {
            format!(
                "note: this process may have {descriptors_max} file descriptors, so {} connections \
                 are served at one time: raise the limit (`ulimit -n`) for more",
                self.connections_max
            )
        })
    }
}

/// A notice of the doors, as it is said.
pub(super) fn sentence(notice: &Notice, kept_back: u64) -> String {
    let mut sentence = format!("warning: {notice}");
    if let Notice::Full { .. } = notice {
        sentence.push_str("; --max-connections allows more");
    }
    if kept_back > 0 {
        // Writing to a string does not fail.
        let _ = write!(sentence, " ({kept_back} more since this was said last)");
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::Bounds;
    use crate::error::CliError;

    #[test]
    fn connections_fit_into_the_descriptors() {
        let of = |connections_max, half_open_max| Bounds { connections_max, half_open_max };
        assert_eq!(Bounds::within(None, 1024, 20).unwrap(), of(128, 64));
        assert_eq!(Bounds::within(Some(900), 1024, 20).unwrap(), of(900, 64));
        let few = Bounds::within(None, 64, 20).unwrap();
        assert_eq!(few, of(9, 3));
        assert!(few.note(None, 64).unwrap().contains("9 connections"));
        assert_eq!(of(128, 64).note(None, 1024), None);
        let refused = Bounds::within(Some(10), 64, 20).unwrap_err();
        let expected = CliError::TooFewDescriptors { wished: 10, most: 9, descriptors_max: 64 };
        assert_eq!(refused.to_string(), expected.to_string());
        assert!(Bounds::within(None, 40, 20).is_err());
        assert!(Bounds::within(Some(u16::MAX), u64::MAX, 20).is_ok());
    }
}
