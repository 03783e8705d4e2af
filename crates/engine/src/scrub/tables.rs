//! Scrub of the tables: every page on disk, tree by tree, from the top level to the leaves.
//!
//! A step gathers pages that stand still, reads those of neighbouring blocks as one, and judges
//! what came. A page that fails is read once more by itself before it counts as damaged. If it is
//! in the cache, that copy is sound (it was verified when it was read, and has changed in memory
//! only), and so is a filter that is in memory: the next checkpoint writes it elsewhere. If not,
//! what it held is lost; `tamis check --repair` can make some tables again. A page that is sound
//! but could not be had, because the device failed it once, may be wanted again.

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::root::TREES;
use format::units::{PageId, TreeId, Zone, block_offset_bytes};
use tables::{NextPage, PageRead, PageStore};

use crate::check::problem::Problem;
use crate::core::Core;
use crate::scrub::ScrubPosition;
use crate::scrub::stages::TablesScrub;
use crate::scrub::state::{Progress, Running, ScrubRead};
use crate::state::State;

/// Pages of one step, and of one read.
const PAGES_PER_STEP: usize = 512;
const PAGES_PER_READ: usize = 64;

impl TablesScrub {
    pub(crate) fn scrub_tables(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        if !self.gathered {
            if !self.gather_pages(core, running) {
                return Progress::Waits;
            }
            self.gathered = true;
            self.pages.sort_unstable_by_key(|page| page.pointer.block());
            self.ask_for_runs(running, PAGES_PER_READ);
            return Progress::Moved;
        }
        let mut moved = false;
        while let Some((read, buf)) = running.io.take_arrived() {
            self.judge_run(core, running, read.mark, buf.as_ref());
            moved = true;
        }
        if !running.io.is_over() {
            return if moved { Progress::Moved } else { Progress::Waits };
        }
        if !self.second && !self.again.is_empty() {
            self.second = true;
            self.pages = std::mem::take(&mut self.again);
            self.ask_for_runs(running, 1);
            return Progress::Moved;
        }
        Progress::Done(Some(if self.last {
            ScrubPosition::Containers { container: 0 }
        } else {
            ScrubPosition::Tables { tree: self.tree, level: self.level, index: self.index }
        }))
    }

    /// Gathers the pages of this step; false while a page above them has to be read.
    fn gather_pages(&mut self, core: &mut Core, running: &mut Running) -> bool {
        while self.pages.len() < PAGES_PER_STEP && !self.last {
            let tree = TreeId(self.tree);
            let level = self.level.unwrap_or_else(|| core.state.store.tree_root(tree).depth);
            self.level = Some(level);
            let mut reads = Vec::new();
            let store = &mut core.state.store;
            let next = store.next_page(&mut running.pins, tree, level, self.index, &mut reads);
            core.submit_page_reads(reads);
            match next {
                NextPage::Found(page) => {
                    self.pages.push(page);
                    self.index = page.id.index.saturating_add(1);
                }
                NextPage::Missing => return false,
                NextPage::End if level > 0 => (self.level, self.index) = (Some(level - 1), 0),
                NextPage::End => match tree_after(core, tree) {
                    Some(next) => (self.tree, self.level, self.index) = (next.0, None, 0),
                    None => self.last = true,
                },
            }
        }
        true
    }

    fn judge_run(
        &mut self,
        core: &mut Core,
        running: &mut Running,
        run: usize,
        buf: Option<&AlignedBuf>,
    ) {
        let (first, count) = self.runs[run];
        running.step.bytes_read += (count * BLOCK_BYTES) as u64;
        for number in 0..count {
            let page = self.pages[first + number];
            let block = buf.and_then(|buf| buf.get(number * BLOCK_BYTES..)?.get(..BLOCK_BYTES));
            if !core.state.store.is_steady(&page) {
                continue;
            }
            if PageStore::verify_page(&page, block.ok_or(())).is_ok() {
                running.step.pages += 1;
                core.state.store.found_sound(&page);
            } else if self.second {
                page_is_damaged(core, running, &page);
            } else {
                self.again.push(page);
            }
        }
    }

    /// Asks for the pages, neighbouring blocks as one read of `pages_max` pages at most.
    fn ask_for_runs(&mut self, running: &mut Running, pages_max: usize) {
        self.runs.clear();
        let mut first = 0;
        while first < self.pages.len() {
            let block = self.pages[first].pointer.block();
            let behind = self.pages[first..].iter().zip(block..);
            let count =
                behind.take(pages_max).take_while(|(page, block)| page.pointer.block() == *block);
            let count = count.count();
            let (offset_bytes, length_bytes) = (block_offset_bytes(block), count * BLOCK_BYTES);
            let mark = self.runs.len();
            self.runs.push((first, count));
            running.io.read(ScrubRead { zone: Zone::Tables, offset_bytes, length_bytes, mark });
            first += count;
        }
    }
}

/// The tree that follows: first those of the store, then the maps of the volumes.
fn tree_after(core: &Core, tree: TreeId) -> Option<TreeId> {
    if tree.0 + 1 < TREES as u32 {
        return Some(TreeId(tree.0 + 1));
    }
    core.state.catalog.ids().into_iter().map(TreeId::volume).find(|&map| map > tree)
}

fn page_is_damaged(core: &mut Core, running: &mut Running, page: &PageRead) {
    let State { store, hash, .. } = &mut core.state;
    let known = store.rewrite(page.id) || hash.rewrite_filter(page.id);
    let healed = core.stopped.is_none() && known;
    if healed {
        core.table_room.ask();
    }
    let PageId { tree, level, index } = page.id;
    let problem = match level {
        0 => Problem::DamagedPage { tree: tree.0, index },
        _ => Problem::DamagedInnerPage { table: tree.to_string(), level, index },
    };
    running.found(problem, healed);
}
