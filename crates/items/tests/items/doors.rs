//! Items and objects are the same: what another door does is seen at once, and what is stored
//! stays.

use objects::bucket::{Condition, DeleteOptions, PutOptions};
use store::Durability;

use crate::rig::{NOW_S, Rig, client, noise};

const NOW_MS: u64 = NOW_S * 1000;

#[test]
fn objects_of_s3_are_items_and_items_are_objects() {
    let rig = Rig::new();
    let bucket = rig.buckets.open("cache").unwrap();
    let items = rig.items(64 << 20);
    let mut client = client(&items);
    let put = |key: &[u8], bytes: &[u8]| {
        let mut writer = bucket.put_hashed(key, PutOptions::new(NOW_MS)).unwrap();
        writer.write(bytes).unwrap();
        writer.finish().unwrap()
    };
    put(b"from-s3", b"one");
    assert_eq!(client.text("get from-s3\r\n"), "VALUE from-s3 0 3\r\none\r\nEND\r\n");
    // It is in memory now; S3 changes it all the same.
    put(b"from-s3", b"two!");
    assert_eq!(client.text("get from-s3\r\n"), "VALUE from-s3 0 4\r\ntwo!\r\nEND\r\n");
    let options = DeleteOptions { durability: Durability::Acknowledged, now_ms: NOW_MS };
    bucket.delete(b"from-s3", &Condition::None, options).unwrap();
    assert_eq!(client.text("get from-s3\r\n"), "END\r\n");
    for length in [0, 3, 600, 5000, 70_000] {
        let value = noise(length, 3);
        let line = format!("set item 77 100 {length}\r\n");
        client.say([line.as_bytes(), &value, b"\r\n"].concat());
        let mut reader = bucket.get(b"item", &Condition::None, NOW_MS).unwrap().unwrap();
        let mut bytes = vec![0; length + 1];
        assert_eq!(reader.read_at(0, &mut bytes).unwrap(), length);
        assert!(bytes[..length] == value[..]);
        assert_eq!(reader.info().expires_unix_ms, Some(NOW_MS + 100_000));
        let pairs = reader.info().metadata.user_metadata.pairs().to_vec();
        assert_eq!(pairs, [("memcached".to_owned(), "flags=77".to_owned())]);
    }
}

#[test]
fn what_is_stored_stays_and_what_is_flushed_goes() {
    let rig = Rig::new();
    let items = rig.items(64 << 20);
    let mut before = client(&items);
    before.say("set old 1 0 1\r\no\r\nflush_all\r\nset a 9 0 2\r\nhi\r\nms b 2 E77 F4\r\nho\r\n");
    before.say("md b I T60 E80\r\nset gone 0 0 1\r\nx\r\ndelete gone\r\nflush_all 5\r\n");
    drop((before, items));
    let rig = rig.reopened();
    let items = rig.items(64 << 20);
    let mut after = client(&items);
    assert_eq!(after.text("get old a gone\r\n"), "VALUE a 9 2\r\nhi\r\nEND\r\n");
    assert_eq!(after.text("mg b f c t s\r\n"), "HD f4 c80 t60 s2 X W\r\n");
    after.now_s += 5;
    assert_eq!(after.text("get a b\r\n"), "END\r\n");
    assert_eq!(after.text("set new 0 0 1\r\nn\r\n"), "STORED\r\n");
    let bucket = rig.buckets.open("cache").unwrap();
    assert_eq!(bucket.figures().objects, 4, "what a flush has ended is there until it is cleaned");
    while items.clean_some(2, after.now_s).unwrap() {}
    assert_eq!(bucket.figures().objects, 1);
    assert_eq!(after.text("get new\r\n"), "VALUE new 0 1\r\nn\r\nEND\r\n");
}
