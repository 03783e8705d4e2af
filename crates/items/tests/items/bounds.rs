//! Caches with a bound: never beyond it, what is read stays, and a restart keeps what is there.

use items::{Items, ItemsOptions};
use proptest::collection::vec;
use proptest::prelude::{any, proptest};
use proptest::test_runner::Config;

use crate::rig::{NOW_S, Rig, client, noise};

fn items(rig: &Rig, bytes_max: u64) -> Items {
    let (bytes_max, has_upkeep) = (Some(bytes_max), false);
    let options = ItemsOptions { bytes_max, has_upkeep, ..ItemsOptions::default() };
    Items::open(rig.buckets.open("cache").unwrap(), options).unwrap()
}

fn used_bytes(rig: &Rig) -> u64 {
    let figures = rig.buckets.open("cache").unwrap().figures();
    figures.object_bytes + 64 * figures.objects
}

fn set(key: usize, length: usize) -> Vec<u8> {
    let line = format!("set key{key} 0 0 {length}\r\n");
    [line.as_bytes(), &noise(length, key as u64), b"\r\n"].concat()
}

proptest! {
    #![proptest_config(Config { cases: 12, ..Config::default() })]

    #[test]
    fn the_bound_is_kept(
        steps in vec((0..60_usize, 0..5000_usize, any::<bool>()), 1..150),
        bytes_max in 0..100_000_u64,
    ) {
        let rig = Rig::new();
        let items = items(&rig, bytes_max);
        let mut client = client(&items);
        for (key, length, gets) in steps {
            let answer = client.text(set(key, length));
            assert_eq!(answer, "STORED\r\n");
            assert!(used_bytes(&rig) <= bytes_max);
            if gets {
                client.say(format!("get key{key}\r\n"));
            }
        }
    }
}

#[test]
fn what_is_read_stays_and_a_restart_keeps_what_is_there() {
    let rig = Rig::new();
    let bytes_max = 100 * 1064;
    let bounded = items(&rig, bytes_max);
    let mut one = client(&bounded);
    for key in 0..20 {
        one.say(set(key, 1000));
    }
    for key in 20..2000 {
        one.say(set(key, 1000));
        one.say((0..20).map(|key| format!("get key{key}\r\n")).collect::<String>());
    }
    let count = |bounded: &Items| {
        let mut client = client(bounded);
        (0..20).filter(|key| client.text(format!("get key{key}\r\n")).len() > 1000).count()
    };
    assert_eq!(count(&bounded), 20, "they were read all the time");
    let told = one.text("stats\r\n");
    assert!(told.contains("STAT limit_maxbytes 106400\r\n"), "{told}");
    assert!(told.contains("STAT evictions 1900\r\n"), "{told}");
    drop((one, bounded));
    let rig = rig.reopened();
    let bounded = items(&rig, bytes_max);
    assert_eq!(count(&bounded), 20);
    let mut one = client(&bounded);
    one.now_s = NOW_S + 1;
    for key in 3000..3500 {
        one.say(set(key, 1000));
        assert!(used_bytes(&rig) <= bytes_max);
    }
}
