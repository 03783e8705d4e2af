//! What a store that two places are hit of goes through while it is open.

use std::collections::BTreeSet;

use disk::MemoryDisk;
use engine::{Problem, ScrubRequest, Zone};
use format::BLOCK_BYTES;
use format::superblock::Geometry;
use format::units::ContainerId;

use crate::damage::driver::{ChunkRead, Driver, Ended};
use crate::damage::fate::{Fate, must_name_a_structure};
use crate::damage::named::{Named, may_come_of};
use crate::damage::store::FAVOURITES;
use crate::damage::truth::{Floor, Place, VOLUME_CHUNKS, VOLUMES, content, volume_name};
use crate::damage::twice::{Between, Trial};

impl Trial<'_> {
    /// The store is opened, read and written to, and closed or cut off; gives the disk after that.
    pub(crate) fn live_between(&mut self, disk: &MemoryDisk) -> MemoryDisk {
        let named = self.check(disk);
        let seed = self.roll();
        let opened = Driver::open(self.view(disk));
        let Ok(mut driver) = opened else { return disk.restart(seed) };
        self.expect_cut(named.as_ref());
        self.expect_stop(named.as_ref());
        let reading = self.read_opened(&mut driver, "between");
        self.must_be_named(&mut driver, "between", &reading, named.as_ref());
        self.write_some(&mut driver, &[], 60);
        self.go_on(&mut driver);
        if self.between == Between::Closed {
            if self.closes(driver) {
                self.truth.flush();
            }
            disk.restart(seed)
        } else {
            disk.crash(seed)
        }
    }

    /// The damaged store is opened and works.
    pub(crate) fn work(
        &mut self,
        disk: &MemoryDisk,
        named: Option<&Named>,
        is_detected: bool,
        fate: &mut Fate,
    ) {
        let mut driver = match Driver::open(self.view(disk)) {
            Ok(driver) => driver,
            Err(sentence) if is_detected => {
                return self.failures.extend(must_name_a_structure(&sentence));
            }
            Err(sentence) => return self.fail(format!("clean, but it does not open: {sentence}")),
        };
        self.expect_stop(named);
        let reading = self.read_opened(&mut driver, "opened");
        fate.like_a_crash = reading.is_older;
        self.must_be_named(&mut driver, "opened", &reading, named);
        let failed: Vec<Place> = reading.failed.iter().copied().collect();
        let mut written = self.write_some(&mut driver, &failed, 20);
        self.go_on(&mut driver);
        written.retain(|place| !self.truth.may_be_hole(*place, Floor::Flushed));
        let is_closed = self.closes(driver);
        if is_closed {
            self.truth.flush();
        }
        let seed = self.roll();
        let disk = if is_closed { disk.restart(seed) } else { disk.crash(seed) };
        let after = self.check(&disk);
        if let (Some(named), Some(after)) = (named, &after) {
            self.compare(named, after, &written);
        } else if named.is_some() {
            self.fail("a check is refused after the store was open");
        }
        match Driver::open(self.view(&disk)) {
            Ok(mut driver) => {
                let reading = self.read_all(&mut driver, "opened again");
                self.must_be_named(&mut driver, "opened again", &reading, after.as_ref());
            }
            Err(sentence) => self.fail(format!("it does not open again: {sentence}")),
        }
    }

    /// What a check says of a store that was open since another check.
    fn compare(&mut self, before: &Named, after: &Named, written: &BTreeSet<Place>) {
        let was_named =
            |place: &&Place| before.lost.contains(place) || before.hidden.contains(place);
        let of_after = || after.lost.iter().chain(&after.hidden);
        let is_new = |place: &&Place| !was_named(place) && !self.copied.contains(place);
        if let Some(place) = of_after().find(is_new) {
            self.fail(format!("open for a while, it has lost {place:?}"));
        }
        if let Some(place) = of_after().find(|place| written.contains(place)) {
            self.fail(format!("{place:?} is lost, though it was written and flushed"));
        }
        // A directory that was made again from frames has none that nobody maps up to the next
        // block, where what stood before them does not say where it ends.
        let hit = self.containers_hit();
        let is_behind_a_hit = |problem: &Problem| match problem {
            Problem::DirectoryLacks { container, .. } => hit.contains(&ContainerId(*container)),
            _ => false,
        };
        for problem in after.problems.iter().filter(|problem| !is_behind_a_hit(problem)) {
            if !before.problems.iter().any(|known| may_come_of(problem, known)) {
                self.fail(format!("open for a while: {problem}"));
            }
        }
    }

    /// Containers of which bytes were changed, or cannot be read.
    fn containers_hit(&self) -> BTreeSet<ContainerId> {
        let superblock = self.sample.disk.peek(Zone::Superblock, 0, BLOCK_BYTES);
        let Ok(geometry) = Geometry::decode(&superblock) else { return BTreeSet::new() };
        let ends = self.touched.iter().flat_map(|(zone, range)| {
            [range.start, range.end.saturating_sub(1)].map(|at_bytes| (*zone, at_bytes))
        });
        ends.filter_map(|(zone, at_bytes)| geometry.container_at(zone, at_bytes)).collect()
    }

    /// Writes these chunks and some more, and flushes. Gives the new
    /// contents that are there for good.
    pub(crate) fn write_some(
        &mut self,
        driver: &mut Driver,
        wanted: &[Place],
        more: u64,
    ) -> BTreeSet<Place> {
        let others = (0..more)
            .map(|_| (self.dice.below(VOLUMES as u64) as usize, self.dice.below(VOLUME_CHUNKS)));
        let places: Vec<Place> = wanted.iter().copied().chain(others).collect();
        let mut kept = BTreeSet::new();
        for part in places.chunks(30) {
            let mut written = BTreeSet::new();
            for &place in part {
                let Some(volume) = driver.volume(&volume_name(place.0)) else { continue };
                self.next_content += 1;
                // What many chunks hold already is stored by no frame of its own.
                let is_new = !self.dice.once_in(4);
                let number =
                    if is_new { self.next_content } else { 1 + self.dice.below(FAVOURITES) };
                let ended = driver.write(&volume, place.1, &content(number));
                let is_written = self.ends(driver, &ended, "a write");
                match is_written {
                    true => self.truth.write(place, number),
                    false => self.truth.doubt(place, number),
                }
                kept.remove(&place);
                self.copied.remove(&place);
                if !is_new {
                    self.copied.insert(place);
                }
                written.remove(&place);
                if is_written {
                    written.insert(place);
                    let read = driver.read(&volume, place.1);
                    if read != ChunkRead::Bytes(content(number)) && is_new {
                        self.fail(format!("{place:?} does not read as it was written"));
                    }
                }
            }
            let flushed = driver.flush();
            if self.ends(driver, &flushed, "a flush") {
                self.truth.flush();
                kept.extend(written.into_iter().filter(|place| !self.copied.contains(place)));
            }
        }
        kept
    }

    /// Whether a request ended well. It must end; and fails only once writing has stopped, which is
    /// told, and from then on always.
    fn ends(&mut self, driver: &mut Driver, ended: &Ended, what: &str) -> bool {
        match ended {
            Ended::Well if self.has_stopped => {
                self.fail(format!("{what} is answered well, though writing has stopped"));
            }
            Ended::Well => {}
            Ended::Hangs => self.fail(format!("{what} is never answered")),
            Ended::Failed(error) if !self.may_stop => {
                self.fail(format!("{what} fails, and no check names a page: {error}"));
            }
            Ended::Failed(_) if self.has_stopped => {}
            Ended::Failed(error) => {
                self.has_stopped = true;
                let stats = driver.call(|client| client.stats());
                if stats.is_ok_and(|stats| stats.writing_stopped.is_none()) {
                    self.fail(format!("{what} fails, and writing has not stopped: {error}"));
                }
            }
        }
        ended.is_well()
    }

    /// Ends the store; false if that fails, as it does where writing has stopped.
    fn closes(&mut self, driver: Driver) -> bool {
        match driver.close() {
            Ok(()) if self.has_stopped => {
                self.fail("a close is answered well, though writing has stopped");
            }
            Ok(()) => return true,
            Err(_) if self.may_stop => {}
            Err(error) => self.fail(format!("a close fails, and no check names a page: {error}")),
        }
        false
    }

    /// What else goes on in a store: trims, background work, a scrub.
    fn go_on(&mut self, driver: &mut Driver) {
        if self.dice.once_in(2) {
            self.trim(driver);
        }
        if self.dice.once_in(2) {
            driver.idle(12);
        }
        if self.dice.once_in(3) {
            let mut request =
                ScrubRequest { fingerprints: self.dice.once_in(2), ..Default::default() };
            while let Ok(step) = driver.call(move |client| client.ask(request)) {
                let Some(next) = step.next else { break };
                request.position = next;
            }
        }
    }

    fn trim(&mut self, driver: &mut Driver) {
        let number = self.dice.below(VOLUMES as u64) as usize;
        let first = self.dice.below(VOLUME_CHUNKS);
        let count = 1 + self.dice.below(VOLUME_CHUNKS - first);
        let Some(volume) = driver.volume(&volume_name(number)) else { return };
        let trimmed = driver.trim(&volume, first, count);
        match self.ends(driver, &trimmed, "a trim") {
            true => self.truth.trim(number, first..first + count),
            false => (first..first + count).for_each(|lba| self.truth.doubt((number, lba), 0)),
        }
        let flushed = driver.flush();
        if self.ends(driver, &flushed, "a flush") {
            self.truth.flush();
        }
    }
}
