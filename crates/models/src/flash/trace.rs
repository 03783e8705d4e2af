//! What the device is asked for: pages read and written, with contents known by number.

use std::collections::HashMap;
use std::io::{self, BufRead};

use traces::{BLOCK_SECTORS, Digest, Direction, Grain, Request as Line, TraceReader};

/// One page.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it comes.
    pub time_ns: u64,
    /// Which way.
    pub direction: Direction,
    /// Which page.
    pub lba: u64,
    /// What is written. Contents are numbered as they first come; of a read it says nothing.
    pub content: u32,
}

/// Requests in their order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// As tables name it.
    pub name: String,
    /// In the order of time.
    pub requests: Vec<Request>,
    /// Contents whose code is that of another.
    pub same_codes: HashMap<u32, u32>,
    /// Of a Bloom filter that is to this trace what the paper's is to its data.
    pub bloom_bits: u64,
}

impl Trace {
    /// The requests of a trace in the format of FIU's, so many pages at most, at its own times.
    ///
    /// # Errors
    /// What reading it fails with.
    pub fn of_fiu(input: impl BufRead, name: &str, pages_max: u64) -> io::Result<Self> {
        let mut reader = TraceReader::new(input);
        let mut line = Line::default();
        let mut numbers: HashMap<Vec<Digest>, u32> = HashMap::new();
        let mut requests: Vec<Request> = Vec::new();
        while (requests.len() as u64) < pages_max && reader.read(&mut line)? {
            let digests = match line.grain {
                Grain::Block => 1,
                Grain::Sector => BLOCK_SECTORS as usize,
            };
            let first = line.first_sector / BLOCK_SECTORS;
            for (lba, digests) in (first..).zip(line.digests.chunks(digests)) {
                let next = numbers.len() as u32;
                let content = match line.direction {
                    Direction::Read => 0,
                    Direction::Write => *numbers.entry(digests.to_vec()).or_insert(next),
                };
                let (time_ns, direction) = (line.time_ns, line.direction);
                requests.push(Request { time_ns, direction, lba, content });
            }
        }
        requests.sort_by_key(|request| request.time_ns);
        let first_ns = requests.first().map_or(0, |request| request.time_ns);
        requests.iter_mut().for_each(|request| request.time_ns -= first_ns);
        let name = name.to_owned();
        let bloom_bits = requests.len() as u64 * 16;
        Ok(Self { name, requests, same_codes: HashMap::new(), bloom_bits })
    }

    /// What the controller's code of a content is, by number.
    pub(super) fn code(&self, content: u32) -> u32 {
        self.same_codes.get(&content).copied().unwrap_or(content)
    }

    /// Writes, and those whose content was written before.
    #[must_use]
    pub fn writes(&self) -> (u64, u64) {
        let mut known = std::collections::HashSet::new();
        let writes = self.requests.iter().filter(|request| request.direction == Direction::Write);
        writes.fold((0, 0), |(all, duplicates), request| {
            (all + 1, duplicates + u64::from(!known.insert(request.content)))
        })
    }

    /// Of the writes, those whose content was written before, in percent.
    #[must_use]
    pub fn duplicate_percent(&self) -> f64 {
        let (all, duplicates) = self.writes();
        100.0 * duplicates as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Trace;

    #[test]
    fn both_forms_of_traces_are_read() {
        let block = "7 2 nfsd 8 8 W 6 0 620f0b67a91f7f74151bc5be745b7110\n";
        let read = "9 2 nfsd 8 8 R 6 0 620f0b67a91f7f74151bc5be745b7110\n";
        let digests = "bf619eac0cdf3f68d496ea9344137e8b".repeat(8);
        let sectors = format!("8 2 nfsd 16 8 W 6 0 {digests}\n");
        let text = [block, read, &sectors, block].concat();
        let trace = Trace::of_fiu(text.as_bytes(), "a", 10).unwrap();
        assert_eq!(trace.writes(), (3, 1));
        let times: Vec<u64> = trace.requests.iter().map(|request| request.time_ns).collect();
        assert_eq!(times, [0, 0, 1, 2]);
        assert_eq!(Trace::of_fiu(text.as_bytes(), "a", 1).unwrap().requests.len(), 1);
    }
}
