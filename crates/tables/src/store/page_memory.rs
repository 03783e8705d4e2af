//! The memory of a page: its frame's alone, or shared with holders of these bytes.
//!
//! A page is shared while it is written, and with versions of a volume that have not changed it
//! yet. It could be in an `Arc` all along, if that were not 64 bytes more: an allocator has room
//! for 4,096 bytes and next for 5,120, so of five pages of memory one would be empty. Hence a box,
//! which an `Arc` is put around as long as it takes.

use std::ops::Deref;
use std::sync::Arc;

use format::page::Page;

/// Bytes of a page that do not change any more.
pub(super) type SharedPage = Arc<Box<Page>>;

/// A page that a frame holds.
pub(super) enum PageMemory {
    Alone(Box<Page>),
    /// Others have it, or had it.
    Shared(SharedPage),
}

impl PageMemory {
    /// The same, to be held by somebody else as well.
    pub(super) fn share(self) -> SharedPage {
        match self {
            Self::Alone(page) => Arc::new(page),
            Self::Shared(page) => page,
        }
    }

    /// Alone, if nobody else holds it any more.
    pub(super) fn settle(self) -> Self {
        match self {
            Self::Shared(page) => Arc::try_unwrap(page).map_or_else(Self::Shared, Self::Alone),
            alone @ Self::Alone(_) => alone,
        }
    }

    /// The bytes, to be changed, if nobody else holds them.
    pub(super) fn get_mut(&mut self) -> Option<&mut Page> {
        match self {
            Self::Alone(page) => Some(page),
            Self::Shared(page) => Arc::get_mut(page).map(Box::as_mut),
        }
    }
}

impl Deref for PageMemory {
    type Target = Page;

    fn deref(&self) -> &Page {
        match self {
            Self::Alone(page) => page,
            Self::Shared(page) => page,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_not_changed_and_is_alone_again_afterwards() {
        let mut page = PageMemory::Alone(Box::new(Page::blank()));
        assert!(page.get_mut().is_some());
        let reader = page.share();
        page = PageMemory::Shared(Arc::clone(&reader)).settle();
        assert!(matches!(page, PageMemory::Shared(_)) && page.get_mut().is_none());
        drop(reader);
        assert!(page.get_mut().is_some());
        assert!(matches!(page.settle(), PageMemory::Alone(_)));
    }
}
