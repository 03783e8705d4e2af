//! The block interface against a plain map of addresses: what is read is what was written last.

#![cfg(verilator)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ops::Range;

use cosim::StubbedDedup;
use cosim::dedup::{Dice, Driver, PAGE_BYTES, Settings, Verdict, page_of, spread};

const ADDRESSES: u64 = 48;

/// Addresses with their pages, as a disk has them.
#[derive(Default)]
struct PlainDisk(BTreeMap<u32, Vec<u8>>);

impl PlainDisk {
    fn write(&mut self, lba: u32, page: &[u8]) {
        if page.iter().all(|byte| *byte == 0) {
            self.0.remove(&lba);
        } else {
            self.0.insert(lba, page.to_vec());
        }
    }

    fn read(&self, lbas: Range<u32>) -> Vec<u8> {
        let zeros = vec![0; PAGE_BYTES];
        lbas.flat_map(|lba| self.0.get(&lba).unwrap_or(&zeros).clone()).collect()
    }
}

/// Up to four pages, of few contents; content 0 is zeros.
fn some_pages(dice: &mut Dice, contents: u64) -> Vec<u8> {
    let page = |content| match content {
        0 => vec![0; PAGE_BYTES],
        content => page_of(&spread(content)),
    };
    (0..1 + dice.below(4)).flat_map(|_| page(dice.below(contents))).collect()
}

/// Writes, trims and reads at random, many of them under way at once, and says how many pages were
/// refused: none where there is room for all contents. One that is leaves its address as it was.
fn check(settings: Settings, contents: u64, operations: u64) -> usize {
    let mut dice = Dice::new(settings.seed);
    let mut driver: Driver<StubbedDedup> = Driver::new(settings);
    let mut plain = PlainDisk::default();
    let mut refused = 0;
    for _ in 0..operations {
        let lba = dice.below(ADDRESSES) as u32;
        match dice.below(8) {
            0 => {
                let lbas = lba..lba + dice.below(6) as u32;
                driver.trim(lbas.clone());
                lbas.for_each(|lba| drop(plain.0.remove(&lba)));
            }
            1 => {
                let lbas = lba..lba + dice.below(9) as u32;
                assert_eq!(driver.read(lbas.clone()), plain.read(lbas));
            }
            _ => {
                let bytes = some_pages(&mut dice, contents);
                driver.write(lba, &bytes);
                let may_be_full = u64::from(settings.capacity) < contents;
                let full = if may_be_full { refused_of(&mut driver) } else { Vec::new() };
                refused += full.len();
                let pages = (lba..).zip(bytes.chunks_exact(PAGE_BYTES));
                for (lba, page) in pages.filter(|(lba, _)| !full.contains(lba)) {
                    plain.write(lba, page);
                }
            }
        }
    }
    driver.settle();
    let all = 0..ADDRESSES as u32 + 16;
    assert_eq!(driver.read(all.clone()), plain.read(all.clone()));
    driver.check_counts();
    driver.trim(all);
    driver.settle();
    assert!(driver.check_counts().is_empty(), "nothing refers to a page");
    assert_eq!(driver.rig().free_count(), settings.capacity);
    assert_eq!(driver.rig().device_pages().count(), 0, "the device has nothing");
    refused
}

fn refused_of(driver: &mut Driver<StubbedDedup>) -> Vec<u32> {
    let full = driver.settle().into_iter().filter(|written| written.verdict == Verdict::Full);
    full.map(|written| written.lba).collect()
}

fn settings(seed: u64) -> Settings {
    Settings { seed, bucket_mask: 3, capacity: 256, jitter: true, ..Settings::default() }
}

#[test]
fn addresses_read_as_they_were_written_last() {
    check(settings(31), 24, 250);
    check(Settings { jitter: false, fsms: 8, ..settings(32) }, 80, 250);
}

#[test]
fn a_write_that_finds_no_room_leaves_its_address_as_it_was() {
    let refused = check(Settings { capacity: 12, ..settings(33) }, 40, 120);
    assert!(refused > 0, "the table was full");
}
