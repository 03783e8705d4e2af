//! How many reads a cache with a bound answers, beside S3-FIFO and LRU of as many items: a client
//! reads keys by a Zipf distribution, and sets what it misses.
//!
//! ```text
//! cargo test --release -p items --test items -- --ignored --nocapture hit_rates
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use items::{Items, ItemsOptions};

use crate::rig::{Rig, client, noise};

const KEYS: usize = 20_000;
const READS: usize = 200_000;
const VALUE_BYTES: usize = 100;

/// Numbers below `KEYS`; the one of rank r is as likely as r to the power of -`exponent`.
struct Zipf {
    sums: Vec<f64>,
    state: u64,
}

impl Zipf {
    fn new(exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=KEYS).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self { sums: sums.collect(), state: 0x9e37_79b9_7f4a_7c15 }
    }

    fn next(&mut self) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let part = (self.state >> 11) as f64 / (1_u64 << 53) as f64;
        let wanted = part * self.sums.last().unwrap();
        let rank = self.sums.partition_point(|sum| *sum < wanted).min(KEYS - 1);
        // Keys of neighbouring ranks are no neighbours.
        rank * 7919 % KEYS
    }
}

/// S3-FIFO as its paper has it.
struct S3Fifo {
    capacity: usize,
    small: VecDeque<usize>,
    main: VecDeque<usize>,
    ghosts: VecDeque<usize>,
    wanted: HashMap<usize, u8>,
}

impl S3Fifo {
    fn read(&mut self, key: usize) -> bool {
        if let Some(wanted) = self.wanted.get_mut(&key) {
            *wanted = (*wanted + 1).min(3);
            return true;
        }
        while self.wanted.len() >= self.capacity {
            self.evict();
        }
        self.wanted.insert(key, 0);
        match self.ghosts.contains(&key) {
            true => self.main.push_back(key),
            false => self.small.push_back(key),
        }
        false
    }

    fn evict(&mut self) {
        if self.small.len() >= self.capacity / 10 || self.main.is_empty() {
            let Some(key) = self.small.pop_front() else { return };
            if self.wanted[&key] > 1 {
                self.wanted.insert(key, 0);
                return self.main.push_back(key);
            }
            self.wanted.remove(&key);
            self.ghosts.push_back(key);
            if self.ghosts.len() > self.capacity * 9 / 10 {
                self.ghosts.pop_front();
            }
        } else if let Some(key) = self.main.pop_front() {
            match self.wanted[&key] {
                0 => drop(self.wanted.remove(&key)),
                wanted => {
                    self.wanted.insert(key, wanted - 1);
                    self.main.push_back(key);
                }
            }
        }
    }
}

/// The one that was read longest ago goes.
#[derive(Default)]
struct Lru {
    order: VecDeque<usize>,
    held: HashSet<usize>,
}

impl Lru {
    fn read(&mut self, key: usize, capacity: usize) -> bool {
        let is_hit = self.held.contains(&key);
        if is_hit {
            let at = self.order.iter().rposition(|held| *held == key).unwrap();
            self.order.remove(at);
        } else if self.held.len() >= capacity {
            self.held.remove(&self.order.pop_front().unwrap());
        }
        self.held.insert(key);
        self.order.push_back(key);
        is_hit
    }
}

#[test]
#[ignore = "a measurement, which takes a minute"]
fn hit_rates() {
    for (exponent, capacity) in [(0.8, 2000), (1.0, 2000), (1.0, 400), (1.2, 400)] {
        let rig = Rig::new();
        let bytes_max = Some((capacity * (VALUE_BYTES + 64)) as u64);
        let options = ItemsOptions { bytes_max, has_upkeep: false, ..ItemsOptions::default() };
        let items = Items::open(rig.buckets.open("cache").unwrap(), options).unwrap();
        let mut client = client(&items);
        let value = String::from_utf8(noise(VALUE_BYTES, 1)).unwrap();
        let (small, main, ghosts) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let mut s3_fifo = S3Fifo { capacity, small, main, ghosts, wanted: HashMap::new() };
        let (mut lru, mut zipf) = (Lru::default(), Zipf::new(exponent));
        let mut hits = [0; 3];
        for _ in 0..READS {
            let key = zipf.next();
            hits[1] += u64::from(s3_fifo.read(key));
            hits[2] += u64::from(lru.read(key, capacity));
            match client.say(format!("get key{key}\r\n")).len() > VALUE_BYTES {
                true => hits[0] += 1,
                false => drop(client.say(format!("set key{key} 0 0 {VALUE_BYTES}\r\n{value}\r\n"))),
            }
        }
        let [ours, s3_fifo, lru] = hits.map(|hits| 100.0 * hits as f64 / READS as f64);
        let part = format!("zipf {exponent}, {capacity} of {KEYS} items");
        println!("{part}: {ours:.1}% here, {s3_fifo:.1}% S3-FIFO, {lru:.1}% LRU");
    }
}
