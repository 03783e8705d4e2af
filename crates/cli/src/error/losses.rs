//! What a repair could not bring back, in one sentence.

use std::fmt::{self, Display, Formatter};

use crate::size::counted;

/// What a repair of a store could not bring back.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Chunks of volumes that cannot be read.
    pub(crate) chunks: u64,
    /// Records of the journal that are not applied.
    pub(crate) records: u64,
    /// Whether the journal was another's, or blank.
    pub(crate) journal: bool,
    /// Whether the journal was cut short where more of it may have stood.
    pub(crate) short_journal: bool,
    /// Volumes that were abandoned.
    pub(crate) volumes: Vec<String>,
}

impl Losses {
    /// Whether it brought back all.
    pub(crate) fn is_none(&self) -> bool {
        self.sentences().is_empty()
    }

    fn sentences(&self) -> Vec<String> {
        let Self { chunks, records, journal, short_journal, volumes } = self;
        let mut sentences = Vec::new();
        if *chunks > 0 {
            let verb = if *chunks == 1 {
                "fails its reads until it is"
            } else {
                "fail their reads until they are"
            };
            sentences.push(format!("{} {verb} written again", counted(*chunks, "chunk")));
        }
        if *records > 0 {
            let groups = if *records == 1 { "group of writes is" } else { "groups of writes are" };
            sentences.push(format!("the last {records} {groups} gone as if never made"));
        }
        if *journal {
            let gone = "the journal was gone, and with it all that was flushed since the last \
                        checkpoint";
            sentences.push(gone.to_owned());
        }
        if *short_journal {
            let gone = "the journal was cut short, and what was flushed behind its last whole \
                        record may be gone";
            sentences.push(gone.to_owned());
        }
        if !volumes.is_empty() {
            sentences.push(format!("abandoned by --without-volume: {}", volumes.join(", ")));
        }
        sentences
    }
}

impl Display for Losses {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences().join("; "))
    }
}
