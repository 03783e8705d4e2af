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
use crate::engine::Engine;
use crate::scrub::ScrubPosition;
use crate::scrub::stages::TablesScrub;
use crate::scrub::state::{Progress, Running, ScrubRead};
use crate::state::State;

/// Pages of one step, and of one read.
const PAGES_PER_STEP: usize = 512;
const PAGES_PER_READ: usize = 64;

impl Engine {
    pub(crate) fn scrub_tables(&mut self, running: &mut Running, at: &mut TablesScrub) -> Progress {
        if !at.gathered {
            if !self.gather_pages(running, at) {
                return Progress::Waits;
            }
            at.gathered = true;
            at.pages.sort_unstable_by_key(|page| page.pointer.block());
            ask_for_runs(running, at, PAGES_PER_READ);
            return Progress::Moved;
        }
        let mut moved = false;
        while let Some((read, buf)) = running.io.take_arrived() {
            self.judge_run(running, at, read.mark, buf.as_ref());
            moved = true;
        }
        if !running.io.is_over() {
            return if moved { Progress::Moved } else { Progress::Waits };
        }
        if !at.second && !at.again.is_empty() {
            at.second = true;
            at.pages = std::mem::take(&mut at.again);
            ask_for_runs(running, at, 1);
            return Progress::Moved;
        }
        Progress::Done(Some(if at.last {
            ScrubPosition::Containers { container: 0 }
        } else {
            ScrubPosition::Tables { tree: at.tree, level: at.level, index: at.index }
        }))
    }

    /// Gathers the pages of this step; false while a page above them has to be read.
    fn gather_pages(&mut self, running: &mut Running, at: &mut TablesScrub) -> bool {
        while at.pages.len() < PAGES_PER_STEP && !at.last {
            let tree = TreeId(at.tree);
            let level = at.level.unwrap_or_else(|| self.core.state.store.tree_root(tree).depth);
            at.level = Some(level);
            let mut reads = Vec::new();
            let store = &mut self.core.state.store;
            let next = store.next_page(&mut running.pins, tree, level, at.index, &mut reads);
            self.core.submit_page_reads(reads);
            match next {
                NextPage::Found(page) => {
                    at.pages.push(page);
                    at.index = page.id.index.saturating_add(1);
                }
                NextPage::Missing => return false,
                NextPage::End if level > 0 => (at.level, at.index) = (Some(level - 1), 0),
                NextPage::End => match self.tree_after(tree) {
                    Some(next) => (at.tree, at.level, at.index) = (next.0, None, 0),
                    None => at.last = true,
                },
            }
        }
        true
    }

    /// The tree that follows: first those of the store, then the maps of the volumes.
    fn tree_after(&self, tree: TreeId) -> Option<TreeId> {
        if tree.0 + 1 < TREES as u32 {
            return Some(TreeId(tree.0 + 1));
        }
        self.core.state.catalog.ids().into_iter().map(TreeId::volume).find(|&map| map > tree)
    }

    fn judge_run(
        &mut self,
        running: &mut Running,
        at: &mut TablesScrub,
        run: usize,
        buf: Option<&AlignedBuf>,
    ) {
        let Some(&(first, count)) = at.runs.get(run) else { return };
        running.step.bytes_read += (count * BLOCK_BYTES) as u64;
        for number in 0..count {
            let page = at.pages[first + number];
            let block = buf.and_then(|buf| buf.get(number * BLOCK_BYTES..)?.get(..BLOCK_BYTES));
            if !self.core.state.store.is_steady(&page) {
                continue;
            }
            if PageStore::verify_page(&page, block.ok_or(())).is_ok() {
                running.step.pages += 1;
                self.core.state.store.found_sound(&page);
            } else if at.second {
                self.page_is_damaged(running, &page);
            } else {
                at.again.push(page);
            }
        }
    }

    fn page_is_damaged(&mut self, running: &mut Running, page: &PageRead) {
        let State { store, hash, .. } = &mut self.core.state;
        let known = store.rewrite(page.id) || hash.rewrite_filter(page.id);
        let healed = self.core.stopped.is_none() && known;
        if healed {
            self.core.table_room.ask();
        }
        let PageId { tree, level, index } = page.id;
        let problem = match level {
            0 => Problem::DamagedPage { tree: tree.0, index },
            _ => Problem::DamagedInnerPage { table: tree.to_string(), level, index },
        };
        running.found(problem, healed);
    }
}

/// Asks for the pages, neighbouring blocks as one read of at most so many.
fn ask_for_runs(running: &mut Running, at: &mut TablesScrub, pages_max: usize) {
    at.runs.clear();
    let mut first = 0;
    while first < at.pages.len() {
        let block = at.pages[first].pointer.block();
        let behind = at.pages[first..].iter().zip(block..);
        let count =
            behind.take(pages_max).take_while(|(page, block)| page.pointer.block() == *block);
        let count = count.count();
        let (offset_bytes, length_bytes) = (block_offset_bytes(block), count * BLOCK_BYTES);
        let mark = at.runs.len();
        at.runs.push((first, count));
        running.io.read(ScrubRead { zone: Zone::Tables, offset_bytes, length_bytes, mark });
        first += count;
    }
}
