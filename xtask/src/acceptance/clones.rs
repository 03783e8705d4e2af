//! Volumes, their snapshots and clones of those, all in use: each reads what was written to it.
//!
//! Doors answer reads by themselves, from what they know of chunks that others read and of clones'
//! common maps; what they know must never be older than a write that was answered, a rollback or a
//! deletion. Two clients (`family.py`), each with a family of versions whose every byte it knows,
//! read and write over many connections, and take, clone, roll back and delete versions. Beside
//! them the store is collected, compressed anew and scrubbed, all the time. Every so many steps
//! they flush, and the server is killed or stopped and starts again with other options.
//! Each kind of store has its turn: with chunks as long as the clients' and longer, and where the
//! bytes are compared before a chunk counts as stored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::acceptance::Setting;
use crate::acceptance::ordered::Ordered;
use crate::acceptance::seed::Dice;
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;

const SCRIPT: &str = "family.py";
const FAMILIES: [&str; 2] = ["left", "right"];
/// So small that what is overwritten and deleted has to be collected.
const CAPACITY: &str = "256M";
const SIZE_BYTES: u64 = 16 << 20;
/// Kinds of stores, by the options of `tamis init`; the short form takes the first.
const KINDS: [&[&str]; 4] = [
    &[],
    &["--chunk-size", "16K", "--compression", "zstd:1"],
    &["--chunk-size", "64K"],
    &["--fingerprint", "xxh3", "--verify", "--compression", "none"],
];
/// How the server runs in turn: with memory for all that the families hold, or for little of it.
const SERVE: [&[&str]; 4] = [
    &["--memory", "512M"],
    &["--memory", "64M"],
    &["--memory", "512M", "--copies-above", "2", "--poll-us", "0"],
    &["--memory", "64M", "--sync", "--threads", "1"],
];
const ROUNDS: u64 = 25;
const ROUNDS_SHORT: u64 = 4;
const STEPS: u64 = 400;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let (kinds, rounds) = if setting.short { (1, ROUNDS_SHORT) } else { (KINDS.len(), ROUNDS) };
    println!("seed {}, {rounds} rounds each", setting.seed);
    let mut dice = Dice::new(setting.seed);
    for (number, kind) in KINDS[..kinds].iter().enumerate() {
        let store = Store::init_with(setting, &format!("store{number}"), CAPACITY, kind)?;
        let requests = use_store(setting, &store, &mut dice, rounds)?;
        println!("{requests} requests, what was read is what was written; {kind:?}");
    }
    Ok(())
}

/// All that happens to one store; the requests to it.
fn use_store(
    setting: &Setting,
    store: &Store,
    dice: &mut Dice,
    rounds: u64,
) -> Result<u64, Failure> {
    let mut server = store.serve(SERVE[0])?;
    let mut families = Vec::new();
    for name in FAMILIES {
        families.push(family(setting, store, name, dice.next() >> 32)?);
    }
    let mut requests = 0;
    for round in 1..=rounds {
        requests += beside_upkeep(store, || go_all(&mut families))?;
        end(server, store, dice)?;
        server = store.serve(SERVE[round as usize % SERVE.len()])?;
    }
    for family in families {
        family.end()?;
    }
    server.stop()?;
    store.check()?;
    Ok(requests)
}

/// One of the two ways, and sometimes a check of what that leaves.
fn end(server: Server, store: &Store, dice: &mut Dice) -> Result<(), Failure> {
    if dice.between(0, 2) == 0 {
        server.kill()?;
    } else {
        server.stop()?;
    }
    if dice.between(0, 3) == 0 { store.check() } else { Ok(()) }
}

/// All families go their steps at once; the requests that those were.
fn go_all(families: &mut [Ordered]) -> Result<u64, Failure> {
    for family in families.iter_mut() {
        family.order(&STEPS.to_string())?;
    }
    families.iter_mut().map(answer).sum()
}

/// Does `work` while the store is collected, compressed anew and scrubbed in turns.
fn beside_upkeep(
    store: &Store,
    work: impl FnOnce() -> Result<u64, Failure>,
) -> Result<u64, Failure> {
    let (is_over, upkept) = (AtomicBool::new(false), store.clone());
    thread::scope(|scope| {
        let is_over = &is_over;
        let upkeep = scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                upkept.collect(&["--rate", "unlimited"])?;
                upkept.scrub()?;
                upkept.collect(&["--rate", "unlimited", "--recompress", "zstd:1"])?;
            }
            Ok(())
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        let kept = upkeep.join().unwrap_or_else(|_| Err(Failure::unmet("upkeep", "a panic")));
        kept.and(done)
    })
}

/// Starts a client with a family of this name.
fn family(setting: &Setting, store: &Store, name: &str, seed: u64) -> Result<Ordered, Failure> {
    let script = setting.script(SCRIPT).path(setting.tamis()).path(store.folder());
    let script = script.path(store.socket()).arg(name).arg(SIZE_BYTES.to_string());
    Ordered::start(SCRIPT, script.arg(seed.to_string()))
}

/// The requests that the steps of an order were.
fn answer(family: &mut Ordered) -> Result<u64, Failure> {
    let line = family.line()?;
    line.parse().map_err(|_| Failure::unmet("a number of requests", line))
}
