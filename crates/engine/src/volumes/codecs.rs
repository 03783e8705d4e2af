//! Volumes with a codec of their own.
//!
//! A volume's entry in the catalog may name what its new frames are compressed with; without a
//! name they are as those of the store. The codec belongs to the volume that brings a chunk first:
//! a chunk that is stored already stays as it is stored, so chunks are shared across codecs.
//!
//! The codec of a chunk is chosen when its group is sent to the workers (`group.rs`). A switch that
//! is not recorded then is not followed yet; what waits for it in the write buffer may be
//! compressed either way.
//!
//! A store says in its geometry that volumes may have codecs before the first has one
//! (`enlarge.rs`): programs that do not know the record of it refuse the store.

use format::record::Change;
use format::superblock::Geometry;
use format::units::{Compression, VolumeId};
use mutants::mutant;

use crate::control::SetVolumeCompression;
use crate::core::Core;
use crate::door::done::Done;
use crate::door::outcome::VolumeInfo;
use crate::grow::enlarging::{Then, Wish};
use crate::grow::wanted_geometry::knows_codecs;
use crate::state::State;
use crate::volumes::queued::{QueuedOf, queue_of};

/// Queues a volume's codec, or what has to come before.
pub(crate) fn accept_codec(core: &mut Core, verb: SetVolumeCompression, done: Done<VolumeInfo>) {
    if knows_codecs(&core.geometry) || mutant!(RecordsCodecAtOnce) {
        let queued = set_codec(core, &verb);
        return queue_of(core, queued, done);
    }
    match core.volumes.volume(&verb.name) {
        // It follows the store as all do here. The empty record is answered as every change of
        // a volume is, when all that came before is durable.
        Ok(volume) if verb.compression.is_none() => {
            let queued = Ok((Vec::new(), volume.id));
            queue_of(core, queued, done);
        }
        Ok(_) => {
            let then = Then::HaveCodec(verb, done);
            core.superblock.wishes.push_back(Wish::Geometry(then));
        }
        Err(error) => done.fail(error),
    }
}

fn set_codec(core: &Core, verb: &SetVolumeCompression) -> QueuedOf {
    let SetVolumeCompression { ref name, compression } = *verb;
    let id = core.volumes.volume(name)?.id;
    Ok((vec![Change::SetVolumeCompression { id, compression }], id))
}

/// What chunks are compressed with, most of which are of the volume of the chunk before.
pub(crate) struct ChunkCodecs<'a> {
    state: &'a State,
    any: bool,
    last: Option<(VolumeId, Compression)>,
}

impl<'a> ChunkCodecs<'a> {
    pub(crate) fn new(state: &'a State, geometry: &Geometry) -> Self {
        Self { state, any: knows_codecs(geometry), last: None }
    }

    /// Appends what a chunk of this volume is compressed with; nothing in a store without codecs of
    /// volumes.
    pub(crate) fn push(&mut self, volume: VolumeId, to: &mut Vec<Compression>) {
        if self.any {
            to.push(self.of_chunk(volume));
        }
    }

    /// What a chunk of this volume is compressed with.
    pub(crate) fn of_chunk(&mut self, volume: VolumeId) -> Compression {
        if !self.any {
            return self.state.compression;
        }
        let compression = match self.last {
            Some((last, compression)) if last == volume => compression,
            _ => self.of(volume),
        };
        self.last = Some((volume, compression));
        compression
    }

    fn of(&self, volume: VolumeId) -> Compression {
        let entry = self.state.catalog.get(volume);
        entry.and_then(|entry| entry.compression).unwrap_or(self.state.compression)
    }
}
