//! The tags of worker jobs: which group, and which job of it.

/// A worker job's tag: its group and its number in it.
pub(crate) fn tag(group: u64, job: usize) -> u64 {
    group << 16 | job as u64
}

/// The group and the number of the job that has this tag.
pub(crate) fn untag(tag: u64) -> (u64, usize) {
    (tag >> 16, (tag & 0xffff) as usize)
}
