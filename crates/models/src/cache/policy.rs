//! What a replacement policy is: it knows which pages are in memory and says which leave.

/// Pages that left, or were written, because of what was wanted.
#[derive(Default)]
pub(super) struct Moved {
    /// They are not in memory any more.
    pub(super) left: Vec<u32>,
    /// They are, and the disk has them as they are.
    pub(super) cleaned: Vec<u32>,
}

/// A replacement policy over pages that are numbered from 0.
pub(super) trait Policy: Send {
    /// Whether the page is in memory.
    fn holds(&self, page: u32) -> bool;

    /// The page is wanted, and in memory from now on. True when it was before.
    fn touch(&mut self, page: u32, moved: &mut Moved) -> bool;

    /// The page exists no more. It may be one that is not in memory.
    fn remove(&mut self, page: u32);

    /// The page, which is in memory, has changed.
    fn changed(&mut self, _page: u32, _moved: &mut Moved) {}
}
