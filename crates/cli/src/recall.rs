//! Damage that is remembered: an opening or a scrub of a store has the containers read again
//! that it is in, so that the engine knows it too.
//!
//! The engine is told of none, because reading says what is true now. What may lie beneath a
//! checksum that fits is read with fingerprints.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use engine::{Client, DamagedChunk, ScrubPosition, ScrubRequest, ScrubStep};

use crate::scrub_record::ScrubRecord;

/// Containers that are read again before anything else is done with a store that is opened.
const CONTAINERS_AT_ONCE: usize = 64;

/// Chunks that were damaged when somebody last looked, by container.
pub(crate) struct Remembered(BTreeMap<u32, Vec<DamagedChunk>>);

impl Remembered {
    pub(crate) fn new(chunks: impl IntoIterator<Item = DamagedChunk>) -> Self {
        let mut containers: BTreeMap<u32, Vec<DamagedChunk>> = BTreeMap::new();
        for chunk in chunks {
            containers.entry(chunk.container).or_default().push(chunk);
        }
        Self(containers)
    }

    /// Has the engine read those containers of which it does not know all, by `step`. Once this is
    /// through, what it does not list is damaged no longer.
    pub(crate) fn recall<E>(
        &self,
        mut step: impl FnMut(ScrubRequest) -> Result<ScrubStep, E>,
    ) -> Result<(), E> {
        let mut known: Vec<DamagedChunk> = Vec::new();
        for (&container, chunks) in &self.0 {
            let is_known =
                |chunk: &DamagedChunk| known.iter().any(|listed| listed.pbn == chunk.pbn);
            if !chunks.iter().all(is_known) {
                let position = ScrubPosition::Containers { container };
                let fingerprints = chunks.iter().any(|chunk| chunk.checksum_fits);
                known = step(ScrubRequest { position, fingerprints })?.damaged;
            }
        }
        Ok(())
    }
}

/// The engine learns what scrubs of the store at `path` have found damaged, so that it is shown and
/// heals; of much in the background.
pub(crate) fn at_opening(path: &Path, client: &Client) {
    let remembered = Remembered::new(ScrubRecord::load(path).damaged);
    let is_little = remembered.0.len() <= CONTAINERS_AT_ONCE;
    let client = client.clone();
    let recall = move || {
        // If the store is being closed, what is not recalled stays in the file.
        let _ = remembered.recall(|request| client.ask(request));
    };
    if is_little {
        return recall();
    }
    // Without the thread it is known to the next scrub only, which is no harm.
    let _ = thread::Builder::new().name("recall".to_owned()).spawn(recall);
}

#[cfg(test)]
mod tests {
    use engine::{DamagedChunk, ScrubPosition, ScrubRequest, ScrubStep};

    use super::Remembered;

    fn chunk(pbn: u64, container: u32, checksum_fits: bool) -> DamagedChunk {
        DamagedChunk { pbn, container, checksum_fits }
    }

    #[test]
    fn each_container_that_is_not_known_whole_is_read_once_as_its_chunks_need() {
        let chunks = [
            chunk(9, 3, false),
            chunk(1, 2, false),
            chunk(2, 2, true),
            chunk(3, 4, true),
            chunk(4, 5, true),
            chunk(5, 5, false),
        ];
        let mut read = Vec::new();
        let remembered = Remembered::new(chunks);
        let recalled = remembered.recall(|ScrubRequest { position, fingerprints }| {
            let ScrubPosition::Containers { container } = position else {
                return Err(position);
            };
            read.push((container, fingerprints));
            // Somebody else has had containers 4 and 5 read meanwhile; chunk 5 is sound.
            let damaged = vec![chunk(3, 4, true), chunk(4, 5, true)];
            Ok(ScrubStep { damaged, ..ScrubStep::default() })
        });
        assert_eq!(recalled, Ok(()));
        assert_eq!(read, [(2, true), (3, false), (5, true)]);
        assert_eq!(Remembered::new(chunks).recall(|_| Err("closing")), Err("closing"));
    }
}
