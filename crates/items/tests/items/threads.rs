//! Many connections and another door at once: nobody reads what was there before.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use objects::bucket::PutOptions;

use crate::rig::{NOW_S, Rig, client};

const ROUNDS: u64 = 2_000;

/// One writer raises a number in each key, by sets and by S3 in turn, and says which number all
/// readers must see from then on.
#[test]
fn no_reader_goes_back() {
    let rig = Rig::new();
    let bucket = rig.buckets.open("cache").unwrap();
    let items = rig.items(4 << 20);
    let keys: Vec<String> = (0..4).map(|number| format!("key{number}")).collect();
    let told: Vec<AtomicU64> = keys.iter().map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    let mut writer = client(&items);
    for key in &keys {
        writer.say(format!("set {key} 0 0 1\r\n0\r\n"));
    }
    thread::scope(|scope| {
        for _ in 0..2 {
            let mut reader = client(&items);
            let (keys, told, is_over) = (&keys, &told, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    for (key, told) in keys.iter().zip(told) {
                        let least = told.load(Ordering::SeqCst);
                        let answer = reader.text(format!("get {key}\r\n"));
                        let found: u64 = answer.split("\r\n").nth(1).unwrap().parse().unwrap();
                        assert!(found >= least, "{key} was {least} and is {found}");
                    }
                }
            });
        }
        // They set other keys, so that entries come and go beside.
        let mut noisy = client(&items);
        let is_over = &is_over;
        scope.spawn(move || {
            let mut number = 0;
            while !is_over.load(Ordering::SeqCst) {
                number += 1;
                noisy.say(format!("set noise{} 0 0 5\r\nnoise\r\n", number % 5_000));
            }
        });
        for round in 1..=ROUNDS {
            for (key, told) in keys.iter().zip(&told) {
                if round % 3 == 0 {
                    let options = PutOptions::new(NOW_S * 1000);
                    let mut put = bucket.put_hashed(key.as_bytes(), options).unwrap();
                    put.write(round.to_string().as_bytes()).unwrap();
                    put.finish().unwrap();
                } else if round % 3 == 1 {
                    let answer = writer.text(format!("incr {key} 1\r\n"));
                    assert_eq!(answer, format!("{round}\r\n"));
                } else {
                    let length = round.to_string().len();
                    writer.say(format!("set {key} 0 0 {length}\r\n{round}\r\n"));
                }
                told.store(round, Ordering::SeqCst);
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

/// Counting on many connections loses nothing.
#[test]
fn counts_add_up() {
    let rig = Rig::new();
    let items = rig.items(4 << 20);
    client(&items).say("set sum 0 0 1\r\n0\r\n");
    thread::scope(|scope| {
        for _ in 0..4 {
            let mut client = client(&items);
            scope.spawn(move || {
                for _ in 0..100 {
                    client.say("incr sum 1\r\nincr sum 2\r\n");
                }
            });
        }
    });
    assert_eq!(client(&items).text("get sum\r\n"), "VALUE sum 0 4\r\n1200\r\nEND\r\n");
}
