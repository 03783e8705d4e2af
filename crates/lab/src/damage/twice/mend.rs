//! The repair of a store that two places are hit of, and what it may lose.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use disk::{MemoryDisk, ZoneName};
use engine::{Explanation, Problem, Structure, Zone};

use crate::damage::atlas::Atlas;
use crate::damage::driver::Driver;
use crate::damage::fate::{Fate, must_name_a_structure};
use crate::damage::hit::{Blow, Hit};
use crate::damage::named::Named;
use crate::damage::store::copy_of;
use crate::damage::truth::{Floor, Place, volume_name};
use crate::damage::twice::Trial;

const BLOCK_BYTES: u64 = 4096;

impl Trial<'_> {
    pub(crate) fn mend(
        &mut self,
        disk: &MemoryDisk,
        sound: &MemoryDisk,
        atlas: &Atlas,
        fate: &mut Fate,
    ) {
        let disk = &copy_of(disk);
        if self.hits.iter().any(|hit| hit.blow == Blow::Unreadable) {
            match engine::repair(self.view(disk), &mut |_| {}) {
                // What cannot be read is nobody's, or it has been written since.
                Ok(_) => {}
                Err(error) => self.failures.extend(must_name_a_structure(&error.to_string())),
            }
            disk.heal();
        }
        self.is_lengthened = true;
        let Some(named) = self.check(disk) else {
            fate.refused = true;
            return;
        };
        let report = match engine::repair(Box::new(disk.clone()), &mut |_| {}) {
            Ok(report) => report,
            Err(error) => {
                fate.refused = true;
                self.failures.extend(must_name_a_structure(&error.to_string()));
                self.refusal = Some(error.to_string());
                return;
            }
        };
        fate.repaired = true;
        fate.lost = report.lost_chunks > 0 || report.lost_records > 0;
        let loses = report.lost_records > 0;
        self.lower(if loses { Floor::Rooted } else { Floor::Flushed });
        let Some(after) = self.check(disk) else {
            return self.fail("a check is refused after the repair");
        };
        for problem in &after.problems {
            self.fail(format!("after the repair: {problem}"));
        }
        if after.lost.len() as u64 != report.lost_chunks || !after.hidden.is_empty() {
            let (lost, said) = (after.lost.len(), report.lost_chunks);
            self.fail(format!("the repair lost {said} chunks, {lost} are"));
        }
        if let Some(place) = after.lost.symmetric_difference(&named.lost).next() {
            let (before, now) = (named.lost.len(), after.lost.len());
            self.fail(format!("{before} chunks were called lost, {now} are; {place:?}"));
        }
        if report.lost_records == 0 {
            self.must_have_been_hit(&after.lost, sound, atlas);
        }
        self.mend_again(disk, &after);
        self.use_mended(disk, &after);
    }

    fn mend_again(&mut self, disk: &MemoryDisk, after: &Named) {
        let copy = copy_of(disk);
        match engine::repair(Box::new(copy), &mut |_| {}) {
            Err(error) => self.fail(format!("the second repair is refused: {error}")),
            Ok(report) => {
                let is_loss = |problem: &&Problem| matches!(problem, Problem::LostChunks { .. });
                if let Some(problem) = report.found.iter().find(|problem| !is_loss(problem)) {
                    self.fail(format!("the second repair finds: {problem}"));
                }
                if report.lost_chunks != after.lost.len() as u64 || report.lost_records > 0 {
                    self.fail("the second repair loses more");
                }
            }
        }
    }

    fn use_mended(&mut self, disk: &MemoryDisk, after: &Named) {
        let mut driver = match Driver::open(Box::new(disk.clone())) {
            Ok(driver) => driver,
            Err(sentence) => return self.fail(format!("mended, it does not open: {sentence}")),
        };
        (self.may_stop, self.has_stopped) = (false, false);
        let reading = self.read_opened(&mut driver, "mended");
        if reading.failed != after.lost {
            let (failed, lost) = (reading.failed.len(), after.lost.len());
            self.fail(format!("mended: {failed} reads fail, and the check names {lost}"));
        }
        let failed: Vec<Place> = reading.failed.iter().copied().collect();
        self.write_some(&mut driver, &failed, 20);
        if driver.close().is_err() {
            self.fail("mended, it cannot be closed");
        }
        let last = self.check(disk);
        for problem in last.iter().flat_map(|named| &named.problems) {
            self.fail(format!("written after the repair: {problem}"));
        }
        if last.is_none_or(|named| !named.lost.is_empty()) {
            self.fail("chunks are lost that were written again");
        }
    }

    /// A chunk may be lost only if its frames were hit, or what leads to it.
    fn must_have_been_hit(&mut self, lost: &BTreeSet<Place>, sound: &MemoryDisk, atlas: &Atlas) {
        if lost.is_empty() {
            return;
        }
        let sound = copy_of(sound);
        sound.heal();
        let Ok(mut driver) = Driver::open(Box::new(sound)) else { return };
        let mut needless: BTreeMap<String, Vec<Place>> = BTreeMap::new();
        for &place in lost {
            let explained = driver.explain(&volume_name(place.0), place.1);
            let Some(explained) = explained.filter(Explanation::is_sound) else { continue };
            if let Some(why) = self.is_needless(&explained, atlas) {
                needless.entry(why).or_default().push(place);
            }
        }
        for (why, places) in needless {
            self.fail(format!("{} chunks need not be lost ({:?}): {why}", places.len(), places[0]));
        }
    }

    fn is_hit(&self, zone: &str, range: Range<u64>) -> bool {
        self.touched.iter().any(|(of, touched)| {
            ZoneName(*of).to_string() == zone
                && touched.start < range.end
                && range.start < touched.end
        })
    }

    fn is_needless(&self, explained: &Explanation, atlas: &Atlas) -> Option<String> {
        let place = explained.chunk.as_ref()?.place.as_ref()?;
        let stood_there = |frame: &&Structure| {
            ZoneName(frame.zone).to_string() == place.zone
                && frame.offset_bytes == place.zone_offset_bytes
        };
        // Collection moves frames as soon as the store is open that explains.
        atlas.of_kind("frame").into_iter().find(stood_there)?;
        let frame = |at: u64, length: u32| at..at + u64::from(length);
        let is_frame_hit =
            self.is_hit(&place.zone, frame(place.zone_offset_bytes, place.length_bytes));
        let is_copy_hit = place
            .second_copy
            .as_ref()
            .map(|copy| self.is_hit(&copy.zone, frame(copy.zone_offset_bytes, copy.length_bytes)));
        if is_frame_hit && is_copy_hit != Some(false) {
            return None;
        }
        if is_frame_hit {
            return Some("its second copy is sound".to_owned());
        }
        let mut blocks = atlas.maps_of(explained.lba).filter(|block| {
            let range = block * BLOCK_BYTES..(block + 1) * BLOCK_BYTES;
            self.is_hit(&ZoneName(Zone::Tables).to_string(), range)
        });
        match blocks.next() {
            None => Some("neither its frame nor its map was hit".to_owned()),
            Some(block) if atlas.has_other(block) && !self.spoils_older_root() => {
                Some("the other root has its map".to_owned())
            }
            Some(_) => None,
        }
    }

    /// Whether a hit may be the reason for which the older root is of no use.
    fn spoils_older_root(&self) -> bool {
        let spoils = |hit: &Hit| matches!(hit.zone, Zone::Superblock | Zone::Journal);
        self.hits.iter().any(spoils)
            || self.hits.iter().filter(|hit| hit.zone == Zone::Tables).count() > 1
    }
}
