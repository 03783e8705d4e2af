//! Queues of pages, linked through two arrays: a page is in one queue at most, and leaves it from
//! anywhere in no time. All policies are made of them.

const NONE: u32 = u32::MAX;

/// The neighbours of every page, whichever queue it is in.
pub(super) struct Links {
    newer: Vec<u32>,
    older: Vec<u32>,
}

impl Links {
    pub(super) fn new(pages: usize) -> Self {
        Self { newer: vec![NONE; pages], older: vec![NONE; pages] }
    }
}

/// Pages from the newest to the oldest.
pub(super) struct Queue {
    newest: u32,
    oldest: u32,
    len: usize,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { newest: NONE, oldest: NONE, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The page, which is in no queue, is the newest.
    pub(super) fn push(&mut self, links: &mut Links, page: u32) {
        links.older[page as usize] = self.newest;
        links.newer[page as usize] = NONE;
        match self.newest {
            NONE => self.oldest = page,
            newest => links.newer[newest as usize] = page,
        }
        self.newest = page;
        self.len += 1;
    }

    /// The page, which is in this queue, leaves it.
    pub(super) fn remove(&mut self, links: &mut Links, page: u32) {
        let (newer, older) = (links.newer[page as usize], links.older[page as usize]);
        match newer {
            NONE => self.newest = older,
            newer => links.older[newer as usize] = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => links.newer[older as usize] = newer,
        }
        self.len -= 1;
    }

    pub(super) fn pop_oldest(&mut self, links: &mut Links) -> Option<u32> {
        let page = self.oldest()?;
        self.remove(links, page);
        Some(page)
    }

    /// The page, which is in this queue, is the newest from now on.
    pub(super) fn renew(&mut self, links: &mut Links, page: u32) {
        self.remove(links, page);
        self.push(links, page);
    }
}
