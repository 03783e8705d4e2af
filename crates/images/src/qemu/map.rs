//! Where a disk holds nothing, as `qemu-img map` says: stretches one after another, from its start.

use serde::Deserialize;

/// Stretches that are kept, 16 bytes each. What lies behind them is read, as if it were data.
const STRETCHES_MAX: usize = 4 << 20;

/// A line of what `qemu-img map` prints.
#[derive(Debug, Deserialize)]
struct Line {
    start: u64,
    length: u64,
    /// Files below the image, down to the one that holds the stretch.
    depth: u64,
    zero: bool,
    /// In that file.
    offset: Option<u64>,
}

/// The stretches of a disk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Map {
    /// Where each ends, ascending, and whether it is a hole.
    stretches: Vec<(u64, bool)>,
    /// Where the data of the image ends in its own file, as far as that is known.
    pub(crate) end_in_file_bytes: u64,
}

impl Map {
    /// The map that `qemu-img` has printed; none if that is none.
    pub(crate) fn parse(printed: &[u8]) -> Option<Self> {
        let mut map = Self::default();
        // An object a line, so that not all of a large map is in memory as JSON.
        for line in printed.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            let line = line.strip_prefix(b"[").unwrap_or(line);
            let line = line.strip_suffix(b"]").or(line.strip_suffix(b",")).unwrap_or(line);
            if !line.is_empty() {
                map.add(&serde_json::from_slice(line).ok()?)?;
            }
        }
        Some(map)
    }

    /// Adds the next stretch; none if it does not follow what is there.
    fn add(&mut self, line: &Line) -> Option<()> {
        let reached_bytes = self.stretches.last().map_or(0, |(end_bytes, _)| *end_bytes);
        let end_bytes = line.start.checked_add(line.length)?;
        if let (Some(offset_bytes), 0) = (line.offset, line.depth) {
            let end_in_file_bytes = offset_bytes.checked_add(line.length)?;
            self.end_in_file_bytes = self.end_in_file_bytes.max(end_in_file_bytes);
        }
        if self.stretches.len() == STRETCHES_MAX {
            return Some(());
        }
        if line.start != reached_bytes {
            return None;
        }
        match self.stretches.last_mut() {
            Some((end, is_hole)) if *is_hole == line.zero => *end = end_bytes,
            _ => self.stretches.push((end_bytes, line.zero)),
        }
        Some(())
    }

    /// Where the stretch around `at_bytes` ends, and whether it is a hole.
    pub(crate) fn at(&self, at_bytes: u64) -> (u64, bool) {
        let number = self.stretches.partition_point(|(end_bytes, _)| *end_bytes <= at_bytes);
        self.stretches.get(number).copied().unwrap_or((u64::MAX, false))
    }
}

#[cfg(test)]
mod tests {
    use super::Map;

    #[test]
    fn stretches_are_found_by_what_lies_in_them() {
        let printed = br#"[{ "start": 0, "length": 100, "depth": 0, "zero": false, "offset": 7},
{ "start": 100, "length": 50, "depth": 1, "zero": false, "offset": 900},
{ "start": 150, "length": 10, "depth": 0, "present": false, "zero": true, "data": false}]
"#;
        let map = Map::parse(printed).unwrap();
        assert_eq!(map.end_in_file_bytes, 107);
        let at = [0, 99, 149, 150, 159, 160].map(|at_bytes| map.at(at_bytes));
        let data = (150, false);
        assert_eq!(at, [data, data, data, (160, true), (160, true), (u64::MAX, false)]);
        assert_eq!(Map::parse(b"[]\n"), Some(Map::default()));
        for none in [
            b"{}".as_slice(),
            b"[{ \"start\": 5, \"length\": 1, \"depth\": 0, \"zero\": true}]",
            b"qemu",
        ] {
            assert_eq!(Map::parse(none), None);
        }
    }
}
