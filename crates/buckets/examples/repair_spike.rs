//! What it costs to repair a bucket of many objects: `repair_spike DIRECTORY OBJECTS [MEMORY_MIB]`.
//!
//! Fills a bucket of a new store in `DIRECTORY`, which must not exist: keys of 20 bytes in their
//! order, values of 100 bytes, each hundredth of 2,000 (a chunk of the value space). Deletes each
//! thousandth object. Overwrites some leaves of the index in both copies, repairs the bucket, and
//! holds what is there to what was put: an object is whole, or it was deleted, or its key lies in a
//! range that the repair names.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use buckets::{
    BucketRepairOptions, Buckets, BucketsOptions, NewBucket, OpenBucket, now_unix_ms, repair_bucket,
};
use engine::Opener;
use format::BLOCK_BYTES;
use format::objects::header::INDEX_COPIES_AT_BYTES;
use objects::bucket::{BucketRepair, Condition, Description, ListOptions, LostPart};
use store::{CreateOptions, Durability, Options, Store, Volume};

const BUCKET: &str = "photos";
/// Objects of a transaction.
const TOGETHER: u64 = 5_000;
const DELETED_EACH: u64 = 1_000;
const LONG_EACH: u64 = 100;
/// Leaves that are overwritten.
const LEAVES: u64 = 20;
/// Objects whose bytes are compared.
const COMPARED_EACH: u64 = 97;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn key(number: u64) -> Vec<u8> {
    format!("objects/{number:012}").into_bytes()
}

/// Half of the bytes are noise.
fn value(number: u64) -> Vec<u8> {
    let length = if number.is_multiple_of(LONG_EACH) { 2_000 } else { 100 };
    let mut value = vec![0; length];
    let mut state = number;
    for word in value[..length / 2].chunks_mut(8) {
        state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ number;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    value
}

fn is_deleted(number: u64) -> bool {
    number % DELETED_EACH == 3
}

fn most_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() >> 10
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, objects, rest @ ..] = arguments.as_slice() else {
        return Err("repair_spike DIRECTORY OBJECTS [MEMORY_MIB]".into());
    };
    let (path, objects) = (Path::new(path), objects.parse::<u64>()?);
    let memory_bytes = rest.first().map_or(Ok(256), |mib| mib.parse::<u64>())? << 20;
    let capacity = CreateOptions { preallocate: false, ..CreateOptions::new(24 << 30) };
    store::create(path, &capacity)?;
    let open = || {
        let mut options = Options::default();
        options.engine.memory_bytes = 512 << 20;
        Store::open(path, options)
    };
    let store = open()?;
    let begun = Instant::now();
    fill(&store, objects, memory_bytes)?;
    println!("filled in {:.0} s", begun.elapsed().as_secs_f64());
    println!("{} leaves overwritten", damage(&store, objects)?);
    store.close()?;

    let store = open()?;
    // What the filling took at most is not the repair's.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let report = repair(&store, memory_bytes)?;
    println!("most memory: {} MiB, of which the engine has 512", most_memory_mib());
    println!("{} objects kept, {} ranges lost", report.figures.objects, report.lost_count);
    compare(&store, objects, memory_bytes, &report)?;
    store.close()?;
    std::fs::remove_dir_all(path)?;
    Ok(())
}

fn start(store: &Store, memory_bytes: u64) -> Outcome<Buckets> {
    let options = BucketsOptions { memory_bytes: memory_bytes * 4, ..BucketsOptions::default() };
    Ok(Buckets::start(store.client().clone(), options)?)
}

fn fill(store: &Store, objects: u64, memory_bytes: u64) -> Outcome<()> {
    let buckets = start(store, memory_bytes)?;
    buckets.create(BUCKET, &NewBucket::default())?;
    let bucket = buckets.open(BUCKET)?;
    let change = |from: u64, is_put: bool| -> Outcome<()> {
        let numbers = from..(from + TOGETHER).min(objects);
        let numbers: Vec<u64> = numbers.filter(|number| is_put || is_deleted(*number)).collect();
        let keys: Vec<Vec<u8>> = numbers.iter().copied().map(key).collect();
        let mut transaction = bucket.transaction(keys.iter().map(Vec::as_slice), now_unix_ms())?;
        for (number, key) in numbers.iter().zip(&keys) {
            if is_put {
                let version = transaction.new_version()?;
                transaction.put(key, value(*number), Description::default(), version, None)?;
            } else {
                transaction.remove(key)?;
            }
        }
        Ok(transaction.commit(Durability::Acknowledged)?)
    };
    for is_put in [true, false] {
        for from in (0..objects).step_by(TOGETHER as usize) {
            change(from, is_put)?;
        }
    }
    drop(bucket);
    Ok(buckets.close()?)
}

/// Overwrites leaves that hold keys of objects, some way apart; returns how many.
fn damage(store: &Store, objects: u64) -> Outcome<u64> {
    let opened = store.client().open_volume(BUCKET, Opener::new("repair_spike", 0))?;
    let volume = Volume::new(store.client().clone(), opened);
    // A leaf has some 20 objects, so the index has at least this number of pages.
    let apart_bytes = (objects / 20 / LEAVES).max(1) * BLOCK_BYTES as u64;
    let mut overwritten = 0;
    for leaf in 1..=LEAVES {
        let mut page = [0; BLOCK_BYTES];
        let places = (0..1000).map(|block| leaf * apart_bytes + block * BLOCK_BYTES as u64);
        for place in places {
            volume.read_at(INDEX_COPIES_AT_BYTES[0] + place, &mut page)?;
            if page[0] == 1 && page.windows(8).any(|bytes| bytes == b"objects/") {
                for copy in INDEX_COPIES_AT_BYTES {
                    volume.write_at(copy + place, &[9; BLOCK_BYTES])?;
                }
                overwritten += 1;
                break;
            }
        }
    }
    volume.flush_blocking()?;
    Ok(overwritten)
}

fn repair(store: &Store, memory_bytes: u64) -> Outcome<BucketRepair> {
    let options = BucketRepairOptions {
        memory_bytes,
        unreadable: Vec::new(),
        opened_by: "repair_spike".to_owned(),
    };
    let begun = Instant::now();
    let (mut at, mut stage_begun, mut steps) = ("", begun, 0_u64);
    let mut tell = |stage: &'static str| {
        if at != stage && !at.is_empty() {
            println!("{at}: {steps} steps, {:.1} s", stage_begun.elapsed().as_secs_f64());
            (stage_begun, steps) = (Instant::now(), 0);
        }
        (at, steps) = (stage, steps + 1);
    };
    let report = repair_bucket(store.client(), BUCKET, &options, |stage, _| {
        tell(stage);
        Ok(())
    })?;
    tell("");
    println!("repaired in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(report)
}

/// Walks over all objects that there are, and over those that there are not.
fn compare(store: &Store, objects: u64, memory_bytes: u64, report: &BucketRepair) -> Outcome<()> {
    let buckets = start(store, memory_bytes)?;
    let bucket = buckets.open(BUCKET)?;
    let (mut next, mut listed, mut missing, mut compared) = (0, 0_u64, 0_u64, 0_u64);
    let mut position = Some(Vec::new());
    while let Some(from) = position {
        let now_ms = now_unix_ms();
        let (prefix, delimiter) = (Vec::new(), Vec::new());
        let listing =
            bucket.list(&ListOptions { prefix, delimiter, from, limit: 10_000, now_ms })?;
        for found in &listing.objects {
            let number: u64 = std::str::from_utf8(&found.key[8..])?.parse()?;
            assert!(!is_deleted(number), "object {number} was deleted");
            missing += (next..number).filter(|gone| is_lost(*gone, report)).count() as u64;
            next = number + 1;
            listed += 1;
            if number.is_multiple_of(COMPARED_EACH) || number.is_multiple_of(LONG_EACH) {
                assert!(bytes_of(&bucket, &found.key)? == value(number), "object {number}");
                compared += 1;
            }
        }
        position = listing.next;
    }
    missing += (next..objects).filter(|gone| is_lost(*gone, report)).count() as u64;
    assert!(listed == report.figures.objects, "{listed} are listed");
    println!("{listed} listed, {compared} read as they were put, {missing} lost and named");
    drop(bucket);
    Ok(buckets.close()?)
}

/// Whether an object that is not there was lost rather than deleted.
///
/// # Panics
/// When it was lost, and the repair does not say so.
fn is_lost(number: u64, report: &BucketRepair) -> bool {
    let key = key(number);
    let is_named = report.lost.iter().any(|part| match part {
        LostPart::Keys { behind, last, .. } => {
            behind.as_ref().is_none_or(|behind| *behind < key)
                && last.as_ref().is_none_or(|last| key <= *last)
        }
        _ => false,
    });
    assert!(is_named || is_deleted(number), "object {number} is gone, and nothing says so");
    !is_deleted(number)
}

fn bytes_of(bucket: &OpenBucket, key: &[u8]) -> Outcome<Vec<u8>> {
    let found = bucket.get(key, &Condition::None, now_unix_ms())?;
    let mut reader = found.ok_or("a listed object is there")?;
    let mut bytes = vec![0; reader.info().size_bytes as usize];
    reader.read_at(0, &mut bytes)?;
    Ok(bytes)
}
