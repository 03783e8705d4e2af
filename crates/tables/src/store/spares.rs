//! Spare pages: memory for pages to come, which has been touched already.
//!
//! Memory that a process has not touched yet is the kernel's to find and to clear; in a virtual
//! machine it is the host's as well, and 2 MiB take milliseconds. The thread that touches it first
//! waits. So the core takes a page from here; what it has no use for any more comes back, and when
//! few are left the store says how many it wants (`PageStore::spares_wanted`): a worker makes them.
//! Without any a page is made where it is needed, as if there were nothing here.

use format::page::Page;
use format::units::PageId;

use super::page_memory::PageMemory;

/// Spare pages at most.
const SPARES_MAX: usize = 512;
/// In a small cache as much less: this part of it.
const CACHE_PART: usize = 8;

/// Pages whose bytes mean nothing.
pub(super) struct Spares {
    pages: Vec<Box<Page>>,
    max: usize,
}

impl Spares {
    /// None yet, for a cache of so many pages.
    pub(super) fn new(cache_pages: usize) -> Self {
        Self { pages: Vec::new(), max: SPARES_MAX.min(cache_pages / CACHE_PART) }
    }

    /// A page to be filled.
    pub(super) fn take(&mut self) -> Box<Page> {
        self.pages.pop().unwrap_or_else(|| Box::new(Page::blank()))
    }

    /// A page with nothing in it.
    pub(super) fn empty(&mut self, id: PageId) -> Box<Page> {
        let mut page = self.take();
        page.clear(id);
        page
    }

    /// The same bytes in a page of their own.
    pub(super) fn copy(&mut self, bytes: &Page) -> Box<Page> {
        let mut page = self.take();
        page.as_mut().clone_from(bytes);
        page
    }

    /// Keeps a page that nobody needs, if there is room and nobody else has it.
    pub(super) fn put(&mut self, page: PageMemory) {
        if self.pages.len() < self.max
            && let PageMemory::Alone(page) = page.settle()
        {
            self.pages.push(page);
        }
    }

    /// Pages that should be brought; none while there are enough.
    pub(super) fn wanted(&self) -> usize {
        if self.pages.len() < self.max / 2 { self.max - self.pages.len() } else { 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_memory::SharedPage;
    use super::*;
    use format::units::TreeId;

    const ID: PageId = PageId { tree: TreeId::PBN_PBA, level: 0, index: 7 };

    #[test]
    fn what_a_page_was_before_is_not_seen() {
        let mut spares = Spares::new(1 << 10);
        let mut old = Page::empty(PageId { index: 1, ..ID });
        old.payload_mut().fill(0xee);
        spares.put(PageMemory::Alone(Box::new(old.clone())));
        assert_eq!(*spares.empty(ID), Page::empty(ID));
        spares.put(PageMemory::Alone(Box::new(Page::empty(ID))));
        assert_eq!(*spares.copy(&old), old);
        assert_eq!((spares.len(), &*spares.empty(ID)), (0, &Page::empty(ID)), "made where needed");
    }

    #[test]
    fn a_page_that_somebody_reads_is_not_taken() {
        let mut spares = Spares::new(1 << 10);
        let page = SharedPage::new(Box::new(Page::empty(ID)));
        spares.put(PageMemory::Shared(SharedPage::clone(&page)));
        assert_eq!(spares.len(), 0);
        spares.put(PageMemory::Shared(page));
        assert_eq!(spares.len(), 1);
    }

    #[test]
    fn few_are_asked_for_and_no_more_are_kept_than_fit() {
        let mut spares = Spares::new(1 << 20);
        assert_eq!(spares.wanted(), SPARES_MAX);
        let put = |spares: &mut Spares, count| {
            let page = || PageMemory::Alone(Box::new(Page::blank()));
            (0..count).for_each(|_| spares.put(page()));
        };
        put(&mut spares, SPARES_MAX / 2 - 1);
        assert_eq!(spares.wanted(), SPARES_MAX / 2 + 1);
        put(&mut spares, 1);
        assert_eq!(spares.wanted(), 0);
        put(&mut spares, SPARES_MAX);
        assert_eq!(spares.len(), SPARES_MAX);
        assert_eq!(Spares::new(80).wanted(), 10, "a small cache has few");
    }
}
