//! Memory that is touched before it is needed.
//!
//! What a process touches first the kernel has to find and to clear, in a virtual machine the host
//! as well: 2 MiB take milliseconds there. The core should not wait for that, since everybody waits
//! for the core; a worker can, because the others go on. So what the core's tables grow into is
//! prepared here.

use std::hint::black_box;

use format::page::Page;

/// What is to be prepared.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryWanted {
    /// Pages.
    pub pages: usize,
    /// Lists of slots.
    pub lists: usize,
    /// Length of each list.
    pub slots: usize,
}

/// What was prepared.
#[derive(Debug, Default)]
pub struct PreparedMemory {
    /// Pages whose bytes mean nothing.
    pub pages: Vec<Box<Page>>,
    /// Lists of zeros.
    pub lists: Vec<Vec<u64>>,
}

impl MemoryWanted {
    /// Whether it is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages == 0 && self.lists == 0
    }

    /// Takes the memory and writes to all of it.
    #[must_use]
    pub fn prepare(&self) -> PreparedMemory {
        let pages = std::iter::repeat_with(touched_page).take(self.pages).collect();
        let lists = std::iter::repeat_with(|| touched_list(self.slots)).take(self.lists).collect();
        PreparedMemory { pages, lists }
    }
}

// Zeros that are asked for come from memory that is known to hold some, untouched; so what is to be
// zero is written over.

fn touched_page() -> Box<Page> {
    let mut page = Box::new(Page::blank());
    black_box(&mut page).payload_mut().fill(0xff);
    page
}

fn touched_list(slots: usize) -> Vec<u64> {
    let mut list = vec![u64::MAX; slots];
    black_box(&mut list).fill(0);
    list
}

#[cfg(test)]
mod tests {
    use super::MemoryWanted;

    #[test]
    fn as_much_is_prepared_as_is_wanted() {
        let memory = MemoryWanted { pages: 3, lists: 2, slots: 700 }.prepare();
        assert_eq!(memory.pages.len(), 3);
        assert_eq!(memory.lists, [vec![0; 700], vec![0; 700]]);
        let none = MemoryWanted::default();
        assert!(none.is_empty() && none.prepare().pages.is_empty());
    }
}
