//! Files of real writers (`data/make.py`): a segment begins where each of their parts does.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use segments::{CDC, CdcCutter, Cutter, FormatName, SegmentPolicy};

const FILES: [(&str, FormatName); 13] = [
    ("default.parquet", FormatName::Parquet),
    ("pages.parquet", FormatName::Parquet),
    ("v2.parquet", FormatName::Parquet),
    ("checksums.parquet", FormatName::Parquet),
    ("dedup.parquet", FormatName::Parquet),
    ("empty.parquet", FormatName::Parquet),
    ("file.arrow", FormatName::Arrow),
    ("stream.arrow", FormatName::Arrow),
    ("array.npy", FormatName::Npy),
    ("tensors.safetensors", FormatName::Safetensors),
    ("gnu.tar", FormatName::Tar),
    ("pax.tar", FormatName::Tar),
    ("members.zip", FormatName::Zip),
];

fn read(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

/// Where segments begin when the file comes in pieces.
fn starts(cutter: &mut dyn Cutter, file: &[u8], piece: usize) -> Vec<usize> {
    let (mut start, mut end, mut found) = (0, 0, Vec::new());
    while start < file.len() {
        let is_end = end == file.len();
        if start < end
            && let Some(length) = cutter.cut(&file[start..end], is_end)
        {
            assert!((1..=cutter.segment_bytes_max()).contains(&length) && start + length <= end);
            found.push(start);
            start += length;
        } else {
            assert!(!is_end, "at the end there is an answer");
            assert!(end - start < cutter.segment_bytes_max(), "with so many bytes there is");
            end = (end + piece).min(file.len());
        }
    }
    found
}

fn auto(file: &[u8], piece: usize) -> Vec<usize> {
    starts(SegmentPolicy::Auto.cutter().as_mut(), file, piece)
}

#[test]
fn each_part_begins_a_segment_however_the_file_comes() {
    for (name, format) in FILES {
        let file = read(name);
        assert_eq!(FormatName::of(&file[..file.len().min(4096)]), Some(format), "{name}");
        let whole = auto(&file, file.len());
        let parts = String::from_utf8(read(&format!("{name}.starts"))).unwrap();
        // A file that is shorter than a chunk is one segment.
        for part in parts.split_whitespace().filter(|_| file.len() >= 4096) {
            let part: usize = part.parse().unwrap();
            assert!(whole.contains(&part), "{name}: no segment begins at {part} of {whole:?}");
        }
        for piece in [1, 511, 4096, 70_000] {
            assert_eq!(auto(&file, piece), whole, "{name} in pieces of {piece}");
        }
    }
}

#[test]
fn a_small_page_is_one_segment() {
    let file = read("dedup.parquet");
    let starts = auto(&file, file.len());
    let cdc = starts_by_content(&file);
    assert_ne!(starts, cdc);
    // 16,000 bytes of numbers come in pages of 4 to 16 KiB.
    assert!(starts.windows(2).any(|pair| (4096..=17_000).contains(&(pair[1] - pair[0]))));
}

fn starts_by_content(file: &[u8]) -> Vec<usize> {
    starts(&mut CdcCutter::new(CDC), file, file.len())
}

/// A file that is cut off, or that lies from some byte on, is cut all the same.
#[test]
fn damaged_files_are_cut_to_their_end() {
    for (name, _) in FILES {
        let file = read(name);
        let mut state = 7_u64;
        for _ in 0..60 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % file.len();
            auto(&file[..at], 5000);
            let mut damaged = file.clone();
            damaged[at] ^= (state >> 8) as u8 | 1;
            auto(&damaged, 5000);
        }
    }
}
