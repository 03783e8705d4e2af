//! Volumes without deduplication.
//!
//! What is written to one is stored *aside*, as a collision is where bytes are compared: it is not
//! looked up, and the Hash-PBN table gets no entry of it (`group.rs`). In all else it is a chunk
//! like any other: it has a fingerprint, in its directory and in the journal, and its entry in the
//! PBN-PBA table says that it is aside. So a check knows which chunks may be without an entry, and
//! whoever forgets one takes nobody else's entry back.
//!
//! The switch changes what becomes of later writes. What is stored stays what it is, shared or not.
//! A store says in its geometry that chunks may be aside before the first can be
//! (`enlarge.rs`): programs that know of none refuse it.

use format::record::Change;

use crate::administer::Queued;
use crate::buffer::AdminAnswer;
use crate::done::Done;
use crate::engine::Engine;
use crate::enlarging::{Then, Wish};
use crate::error::RequestError;
use format::units::VolumeId;

impl Engine {
    /// Queues a volume's switch, or what has to come before.
    pub(crate) fn accept_dedup(&mut self, name: String, dedup: bool, done: Done) {
        if dedup || self.geometry.detection.asides {
            let queued = self.set_dedup(&name, dedup);
            return self.queue(queued, done);
        }
        match self.switchable(&name) {
            Ok(_) => {
                let then = Then::LeaveAside { name };
                self.enlarging.wishes.push_back(Wish::Detection { then, done });
            }
            Err(error) => done.fail(error),
        }
    }

    fn switchable(&self, name: &str) -> Result<VolumeId, RequestError> {
        let volume = self.volumes.get(name)?;
        if volume.is_snapshot() {
            return Err(RequestError::NotAVolume { name: name.to_owned() });
        }
        Ok(volume.id)
    }

    fn set_dedup(&mut self, name: &str, dedup: bool) -> Queued {
        let id = self.switchable(name)?;
        self.volumes.set_dedup(id, dedup);
        Ok((vec![Change::SetDedup { id, dedup }], AdminAnswer::VolumeInfo(id)))
    }
}
