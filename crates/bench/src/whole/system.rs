//! What a turn needs of each system.

use crate::failure::Failure;
use crate::fio::{Job, Target};

/// A system that is there for one turn.
pub(super) trait System {
    /// Whether it can do this job at all.
    fn takes(&self, _job: &Job) -> bool {
        true
    }
    /// Where fio finds it.
    fn target(&self) -> Target;
    /// So many volumes that hold what it holds now, or itself so often.
    fn clones(&mut self, count: u32) -> Result<Vec<Target>, Failure> {
        Ok(vec![self.target(); count as usize])
    }
    /// Nothing that it knew is in its memory any more.
    fn restart(&mut self) -> Result<(), Failure>;
    /// What the disk holds of it: data and what finds them, without what is reserved for either.
    fn stored_bytes(&self) -> Result<u64, Failure>;
    /// Ends it and removes all of it.
    fn remove(self: Box<Self>) -> Result<(), Failure>;
}
