//! What a policy of segments stores of real files, one after another as objects of one bucket.
//!
//! `cargo run --release -p segments --example segments -- FOLDER...`
//!
//! A file is an object; folders are walked in the order of names. Each segment is padded to whole
//! chunks of 4 KiB. Stored are the unique chunks, each compressed by itself (as it is, if that does
//! not shorten it), 48 bytes for each, 6 for each that a value maps, and 24 for each entry of a
//! list of segments.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use segments::{CdcCutter, CdcLengths, Cutter, FixedCutter, SegmentPolicy};

const CHUNK_BYTES: usize = 4096;

#[derive(Default)]
struct Stored {
    known: HashSet<[u8; 16]>,
    plain: u64,
    mapped: u64,
    entries: u64,
    lz4: u64,
    zstd: u64,
}

impl Stored {
    fn chunk(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.mapped += 1;
        let mut name = [0; 16];
        name.copy_from_slice(&blake3::hash(chunk).as_bytes()[..16]);
        if !self.known.insert(name) {
            return Ok(());
        }
        let lz4 = lz4::block::compress(chunk, None, false)?;
        let zstd = zstd::bulk::compress(chunk, 3)?;
        self.lz4 += lz4.len().min(CHUNK_BYTES) as u64;
        self.zstd += zstd.len().min(CHUNK_BYTES) as u64;
        Ok(())
    }

    fn value(&mut self, value: &[u8], cutter: &mut dyn Cutter) -> io::Result<()> {
        self.plain += value.len() as u64;
        let (mut rest, mut was_padded) = (value, true);
        while !rest.is_empty()
            && let Some(length) = cutter.cut(rest, true)
        {
            let (segment, behind) = rest.split_at(length);
            for chunk in segment.chunks(CHUNK_BYTES) {
                let mut whole = [0; CHUNK_BYTES];
                whole[..chunk.len()].copy_from_slice(chunk);
                self.chunk(&whole)?;
            }
            self.entries += u64::from(was_padded);
            was_padded = !length.is_multiple_of(CHUNK_BYTES);
            rest = behind;
        }
        Ok(())
    }

    fn metadata(&self) -> u64 {
        48 * self.known.len() as u64 + 6 * self.mapped + 24 * self.entries
    }
}

fn files(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        found.push(path.to_owned());
    } else if path.is_dir() {
        let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
        let mut entries: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
        entries.sort();
        entries.iter().try_for_each(|entry| files(entry, found))?;
    }
    Ok(())
}

/// Makes a cutter for one value.
type NewCutter = Box<dyn Fn() -> Box<dyn Cutter>>;

fn policies() -> Vec<(String, NewCutter)> {
    let mut all: Vec<(String, NewCutter)> = vec![
        ("fixed".into(), Box::new(|| Box::new(FixedCutter::new(64 << 10)))),
        ("auto".into(), Box::new(|| SegmentPolicy::Auto.cutter())),
    ];
    for (min, mean, max) in
        [(2, 4, 16), (4, 8, 32), (2, 8, 64), (4, 16, 64), (8, 32, 128), (16, 64, 256)]
    {
        let lengths =
            CdcLengths { min_bytes: min << 10, mean_bytes: mean << 10, max_bytes: max << 10 };
        let new = move || Box::new(CdcCutter::new(lengths)) as Box<dyn Cutter>;
        all.push((format!("cdc {min}/{mean}/{max}"), Box::new(new)));
    }
    all
}

fn main() -> io::Result<()> {
    for folder in env::args().skip(1) {
        let mut paths = Vec::new();
        files(folder.as_ref(), &mut paths)?;
        println!("\n{folder}, {} objects\n", paths.len());
        print!("| segments | plain MB | mapped chunks | unique | lz4 MB | zstd MB ");
        println!("| metadata MB | lz4 in all | zstd in all |");
        println!("|---|---|---|---|---|---|---|---|---|");
        for (name, cutter) in policies() {
            let mut stored = Stored::default();
            for path in &paths {
                stored.value(&fs::read(path)?, cutter().as_mut())?;
            }
            let mb = |bytes: u64| bytes as f64 / 1e6;
            let metadata = stored.metadata();
            println!(
                "| {name} | {:.1} | {} | {} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} |",
                mb(stored.plain),
                stored.mapped,
                stored.known.len(),
                mb(stored.lz4),
                mb(stored.zstd),
                mb(metadata),
                mb(stored.lz4 + metadata),
                mb(stored.zstd + metadata),
            );
        }
    }
    Ok(())
}
