//! A qcow2 image that somebody gave us: any bytes are a disk or are refused, and what is a disk can
//! be walked to its end.
//!
//! Each run of data begins behind the one before, lies within the disk and can be read, whatever
//! the tables say, sector by sector as well as in one piece; what lies between is zeros. The bytes
//! are the whole file, and then its beginning before some MiB of nothing, for the tables of large
//! clusters lie far behind the header.
//!
//! Opened as an image, files that it names are opened as well; the fuzzer changes none.
#![no_main]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use images::{DiskImage, ImageFormat};
use libfuzzer_sys::fuzz_target;

const NOTHING_BYTES: u64 = 4 << 20;
const RUNS_MAX: usize = 1000;
const LOOK_BYTES: u64 = 4096;
const SECTOR_BYTES: usize = 512;

/// A file without a name, which ends with this process, and a path to it.
fn file() -> &'static (File, PathBuf) {
    static FILE: OnceLock<(File, PathBuf)> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = PathBuf::from(format!("/tmp/tamis-fuzz-{}.qcow2", std::process::id()));
        let made = File::options().read(true).write(true).create_new(true).open(&path);
        let file = made.expect("there is a folder for such files");
        fs::remove_file(&path).expect("it is ours");
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        (file, path)
    })
}

/// The bytes of the disk there, if they can be read.
fn look(image: &DiskImage, at_bytes: u64, length_bytes: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0xa5; length_bytes.min(LOOK_BYTES) as usize];
    image.read_at(at_bytes, &mut bytes).ok().map(|()| bytes)
}

/// Every run of data; `alone` is an image that names no other file.
fn walk(image: &DiskImage, alone: bool) {
    let mut end_bytes = 0;
    for _ in 0..RUNS_MAX {
        let run = match image.next_data(end_bytes) {
            Ok(Some(run)) => run,
            Ok(None) => return,
            Err(error) => return drop(error.to_string()),
        };
        assert!(end_bytes <= run.start && run.start < run.end, "{run:?} behind {end_bytes}");
        assert!(run.end <= image.size_bytes(), "{run:?} of {}", image.size_bytes());
        let read = look(image, run.start, run.end - run.start);
        assert!(read.is_some() || !alone, "{run:?} cannot be read");
        for (number, sector) in read.iter().flat_map(|read| read.chunks(SECTOR_BYTES)).enumerate() {
            let at_bytes = run.start + (number * SECTOR_BYTES) as u64;
            let again = look(image, at_bytes, sector.len() as u64);
            assert!(again.as_deref() == Some(sector) || !alone, "{at_bytes} reads otherwise");
        }
        let between_bytes = (run.start - end_bytes).min(LOOK_BYTES);
        let between = look(image, run.start - between_bytes, between_bytes);
        assert!(between.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)) || !alone);
        end_bytes = run.end;
    }
}

fuzz_target!(|input: &[u8]| {
    let (file, path) = file();
    for nothing_bytes in [0, NOTHING_BYTES] {
        let length_bytes = input.len() as u64 + nothing_bytes;
        let written = file.set_len(0).and_then(|()| file.write_all_at(input, 0));
        written.and_then(|()| file.set_len(length_bytes)).expect("there is room for it");
        match DiskImage::open_as(path, None) {
            Ok(image) => walk(&image, true),
            Err(error) => drop(error.to_string()),
        }
        if let Ok(image) = DiskImage::open_as(path, Some(ImageFormat::Qcow2)) {
            walk(&image, false);
        }
    }
});
