//! What an index of many keys costs: `index_spike DIRECTORY KEYS KEYS_PER_CALL [MEMORY_MIB]`.
//!
//! Puts random keys of 20 bytes with values of 100 bytes, half of them random, into a new store in
//! `DIRECTORY`, which must not exist; drops the store as a kill does; opens it again. Merges are
//! made by the same thread when they are due.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use objects::index::{Change, Index, IndexCreateOptions, IndexOptions, Table, VolumeIndex};
use store::{CreateOptions, Durability, Options, Store, Volume};

/// Keys and values from a number.
fn random(number: u64, bytes: &mut [u8]) {
    let mut state = number;
    for word in bytes.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        word.copy_from_slice(&mixed.to_le_bytes()[..word.len()]);
    }
}

fn key(number: u64) -> Vec<u8> {
    let mut key = vec![0; 20];
    random(number << 8, &mut key);
    key
}

fn put(number: u64) -> Change {
    let mut value = vec![0; 100];
    random(number << 8 | 1, &mut value[..50]);
    Change::Set { table: Table::Objects, key: key(number), value }
}

fn memory_mib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() >> 10
}

fn open(path: &Path) -> Result<(Store, Arc<Volume>), Box<dyn Error>> {
    let mut options = Options::default();
    options.engine.memory_bytes = 1 << 30;
    let store = Store::open(path, options)?;
    let volume = match store.volume("bucket") {
        Ok(volume) => volume,
        Err(_) => store.create_volume("bucket", 1 << 50)?,
    };
    Ok((store, Arc::new(volume)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, keys, per_call, rest @ ..] = arguments.as_slice() else {
        return Err("index_spike DIRECTORY KEYS KEYS_PER_CALL [MEMORY_MIB]".into());
    };
    let (path, keys, per_call) = (Path::new(path), keys.parse::<u64>()?, per_call.parse::<u64>()?);
    let memory_bytes = rest.first().map_or(Ok(256), |mib| mib.parse::<u64>())? << 20;
    let options = IndexOptions { memory_bytes, ..IndexOptions::default() };
    let capacity = CreateOptions { preallocate: false, ..CreateOptions::new(24 << 30) };
    store::create(path, &capacity)?;
    let (store, volume) = open(path)?;
    VolumeIndex::create(volume.clone(), &IndexCreateOptions::new([7; 16]))?;
    let index = VolumeIndex::open(volume.clone(), &options)?;
    put_all(&index, keys, per_call)?;
    report_written(&store, keys)?;

    let begun = Instant::now();
    let asked = keys.min(200_000);
    for number in 0..asked {
        let found = index.get(Table::Objects, &key(number * 7919 % keys))?;
        assert!(found.is_some(), "key {number} is there");
    }
    println!("gets/s, random: {:.0}", asked as f64 / begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let listed = index.scan(Table::Objects, b"", 100_000)?.len();
    println!("listed/s: {:.0}", listed as f64 / begun.elapsed().as_secs_f64());
    println!("memory now/most: {}/{} MiB", memory_mib("VmRSS"), memory_mib("VmHWM"));
    let waiting = index.memory_table_bytes();
    volume.flush_blocking()?;
    drop((index, volume));
    drop(store);

    let begun = Instant::now();
    let (store, volume) = open(path)?;
    println!("store opened after the kill: {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let index = VolumeIndex::open(volume, &options)?;
    println!(
        "index opened: {:.3} s ({} KiB in memory before, {} after)",
        begun.elapsed().as_secs_f64(),
        waiting >> 10,
        index.memory_table_bytes() >> 10
    );
    for number in 0..1000 {
        assert!(
            index.get(Table::Objects, &key(keys - 1 - number))?.is_some(),
            "the last are there"
        );
    }
    drop(index);
    store.close()?;
    std::fs::remove_dir_all(path)?;
    Ok(())
}

fn put_all(index: &VolumeIndex, keys: u64, per_call: u64) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let (mut merges, mut steps, mut chunks, mut merging_s) = (0_u64, 0, 0, 0.0);
    let mut next = 0;
    while next < keys {
        let end = (next + per_call).min(keys);
        index.apply((next..end).map(put).collect(), Durability::Acknowledged)?;
        next = end;
        if index.merge_is_due() {
            let merge_begun = Instant::now();
            let merged = index.merge()?;
            merging_s += merge_begun.elapsed().as_secs_f64();
            merges += 1;
            steps += merged.steps;
            chunks += merged.chunks_written;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{keys} keys, {per_call} a call: {:.0} puts/s", keys as f64 / seconds);
    println!(
        "{merges} merges, {steps} steps, {merging_s:.1} s of {seconds:.1} s; {:.0} bytes a put",
        chunks as f64 * 4096.0 / keys as f64
    );
    Ok(())
}

fn report_written(store: &Store, keys: u64) -> Result<(), Box<dyn Error>> {
    store.client().flush_blocking()?;
    let written = store.client().stats()?.written;
    let a_put = |bytes: u64| bytes as f64 / keys as f64;
    println!(
        "written a put: {:.0} by the index; {:.0} to the device: frames {:.0}, journal {:.0}, \
         tables {:.0}, moved {:.0}",
        a_put(written.client_bytes),
        a_put(written.device_bytes),
        a_put(written.new_frame_bytes),
        a_put(written.journal_bytes),
        a_put(written.table_bytes),
        a_put(written.moved_frame_bytes)
    );
    Ok(())
}
