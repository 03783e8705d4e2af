//! Every verb is answered alike over the socket and in process: two stores that are made alike live
//! through the same requests, one behind a server, and answer the same.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

use admin::json::Json;
use admin::{
    Client, CloseBucket, Control, ControlError, CopyObject, CreateBucket, DataRemoved,
    DeleteBucket, DeleteObjects, Disconnect, GetIdentity, GetObject, GetStatus, Grown, GrowthWish,
    HeadObject, ListBuckets, ListCaches, ListObjects, ListTenants, Local, ObjectKey, ObjectShown,
    ObjectSink, ObjectSource, OpenData, PutObject, RemoveData, ReplicateBucket, ReplicationChange,
    Server, SetBucket, SharedStatus, ShowBucket, Spoken, Status, VERBS,
};
use disk::{Doorbell, MemoryDisk, SUPERBLOCK_BYTES};
use engine::control::{
    CloneVolume, DeleteRequest, Explain, GetCompression, GetStats, ListOpens, ListVolumes,
    NewVolume, RenameVolume, ResizeVolume, Rollback, SetCompression, SetDedup, SetQuota,
    SetReservation, SetVolumeCompression, SnapshotRequest, TakeCopied,
};
use engine::{
    Address, Codec, CollectRequest, Compression, CreateOptions, Dedup, DifferenceRequest,
    EvacuateZone, KeepZone, ListZones, Opener, Options, Origin, ScrubRequest, WeightRequest, Zone,
};
use serde_json::{Value, json};

const CAPACITY_BYTES: u64 = 256 << 20;

/// A store in memory, with an engine of its own that has written a little.
fn store() -> engine::Client {
    let compression = Compression { codec: Codec::Lz4, level: 0 };
    let geometry = engine::plan(&CreateOptions {
        capacity_bytes: vec![CAPACITY_BYTES],
        chunk_bytes: 4096,
        compression,
        detection: Default::default(),
        tables_bytes: None,
        journal_bytes: None,
        uuid: [1; 16],
        bucket_seed: [2; 16],
    })
    .unwrap();
    let zones = [
        (Zone::Superblock, SUPERBLOCK_BYTES),
        (Zone::Journal, geometry.journal_bytes),
        (Zone::Tables, geometry.tables_bytes),
        (Zone::Data(0), CAPACITY_BYTES),
    ];
    let disk = MemoryDisk::new(&zones, 3);
    engine::create(Box::new(disk.clone()), &geometry, compression).unwrap();
    let doorbell = Doorbell::new().unwrap();
    disk.set_doorbell(&doorbell);
    let options =
        Options { memory_bytes: 64 << 20, worker_threads: 0, sync: false, ..Default::default() };
    let (engine, client, _) = engine::open(Box::new(disk), doorbell, &options).unwrap();
    thread::spawn(move || engine.run());
    client.create_volume("v", 1 << 20, false).unwrap();
    let volume = client.open_volume("v", Opener::new("a test", 0)).unwrap();
    client.write_at(&volume, 0, &[7; 8192]).unwrap();
    client.flush_blocking().unwrap();
    client
}

fn local(client: engine::Client) -> Local {
    let status = SharedStatus::default();
    status.set(Status { pid: 7, version: "0".to_owned(), addresses: vec!["unix:/s".to_owned()] });
    let grow = |wish: GrowthWish| {
        let capacity_bytes = wish.capacity_bytes.unwrap_or_default();
        Ok(Grown { capacity_bytes, data_zones: wish.data.len(), ..Grown::default() })
    };
    let remove =
        |zone: u16| Ok(DataRemoved { capacity_bytes: zone.into(), ..DataRemoved::default() });
    Local::served(client, status, Box::new(grow)).with_remover(Box::new(remove))
}

/// What is asked, of both, and which verbs that were.
struct Both {
    here: Local,
    served: Client,
    asked: BTreeSet<&'static str>,
}

impl Both {
    fn ask<V: Spoken + Clone>(&mut self, verb: V) -> Value {
        let name = V::NAME;
        self.asked.insert(name);
        let (here, served) = (said(self.here.ask(verb.clone())), said(self.served.ask(verb)));
        assert_eq!(here, served, "{name}");
        here
    }
}

fn said<A: admin::json::ToJson>(outcome: Result<A, ControlError>) -> Value {
    match outcome {
        Ok(answer) => serde_json::to_value(Json(answer)).unwrap(),
        Err(error) => json!({ "refused": format!("{error:?}") }),
    }
}

#[test]
fn every_verb_is_answered_alike_over_the_socket_and_in_process() {
    let folder = std::env::temp_dir().join(format!("tamis-verbs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let server = Server::start(&folder, local(store())).unwrap();
    let served = Client::connect(&folder).unwrap().unwrap();
    let mut both = Both { here: local(store()), served, asked: BTreeSet::new() };
    let name = || "v".to_owned();
    let snapshot = || "v@a".to_owned();

    assert_eq!(both.ask(GetStatus {})["pid"], 7);
    assert_eq!(both.ask(GetIdentity {})["chunk_bytes"], 4096);
    let door = both.ask(OpenData { who: "a test".to_owned() });
    assert!(door["refused"].as_str().unwrap().contains("no bytes"), "none was given to either");
    let data = vec![PathBuf::from("/d")];
    assert_eq!(both.ask(GrowthWish { capacity_bytes: Some(9), data })["data_zones"], 1);
    let new = NewVolume { name: "w".to_owned(), size_bytes: 1 << 20, ..NewVolume::default() };
    assert_eq!(both.ask(new.clone())["name"], "w");
    assert!(both.ask(new)["refused"].as_str().unwrap().contains("VolumeExists"));
    let resize = |size_bytes, may_shrink| {
        let (name, even_if_open) = (name(), false);
        ResizeVolume { name, size_bytes, may_shrink, even_if_open }
    };
    both.ask(resize(2 << 20, false));
    let smaller = resize(512, false);
    assert!(both.ask(smaller)["refused"].as_str().unwrap().contains("WouldShrink"));
    assert_eq!(both.ask(ListOpens { name: name() }), json!([]));
    let nobody = Disconnect { name: "nope".to_owned() };
    assert!(both.ask(nobody)["refused"].as_str().unwrap().contains("NoSuchVolume"));
    assert_eq!(both.ask(Disconnect { name: name() }), json!([]));
    both.ask(RenameVolume { name: "w".to_owned(), new_name: "x".to_owned() });
    both.ask(SetQuota { name: name(), quota_bytes: Some(1 << 20) });
    both.ask(SetDedup { name: name(), dedup: Dedup::Auto });
    let compression = Some(Compression { codec: Codec::Zstd, level: -5 });
    let set = both.ask(SetVolumeCompression { name: name(), compression });
    assert_eq!(set["compression"], "zstd:-5");
    let set = both.ask(SetReservation { name: name(), reservation_bytes: Some(8192) });
    assert_eq!(set["reservation_bytes"], 8192);
    let more = both.ask(SetReservation { name: name(), reservation_bytes: Some(2 << 20) });
    assert!(more["refused"].as_str().unwrap().contains("BadReservation"));
    let volumes = vec![name()];
    assert!(both.ask(SnapshotRequest { volumes, name: "a".to_owned(), taken_unix_s: 5 }).is_null());
    let none = SnapshotRequest { volumes: Vec::new(), name: "a".to_owned(), taken_unix_s: 5 };
    assert!(both.ask(none)["refused"].as_str().unwrap().contains("NoVolumes"));
    let (volumes, name_b) = (vec![name()], "b".to_owned());
    let snapshots = SnapshotRequest { volumes, name: name_b, taken_unix_s: 5 };
    let origin = Origin { uuid: [0xfe; 16], number: 77 };
    assert!(both.ask(TakeCopied { snapshots, origin }).is_null());
    let listed = both.ask(ListVolumes { after: Some("v@a".to_owned()), most: 1 });
    assert_eq!(listed[0]["origin"], json!({ "store": "fe".repeat(16), "number": 77 }));
    both.ask(CloneVolume { snapshot: snapshot(), name: "c".to_owned() });
    both.ask(Rollback { snapshot: snapshot(), volume: None, id: None });
    let compression = Compression { codec: Codec::Zstd, level: 3 };
    both.ask(SetCompression { compression });
    assert_eq!(both.ask(GetCompression {}), json!("zstd:3"));
    let explained = both.ask(Explain { volume: name(), address: Address::OffsetBytes(4096) });
    assert_eq!(explained["lba"], 1);
    both.ask(DifferenceRequest { from: snapshot(), to: name(), lba: 0 });
    both.ask(WeightRequest { volume: name(), leaf: 0, pbns: 0..u64::MAX });
    both.ask(ScrubRequest::default());
    both.ask(CollectRequest { position: None, recompress: Some(compression) });
    assert_eq!(both.ask(ListZones {})[0]["state"], "in_use");
    let only = both.ask(EvacuateZone { zone: 0 });
    assert!(only["refused"].as_str().unwrap().contains("OnlyDataFile"));
    assert!(both.ask(KeepZone { zone: 0 }).is_null());
    assert_eq!(both.ask(RemoveData { zone: 5 })["capacity_bytes"], 5);
    assert_eq!(both.ask(GetStats {})["chunk_bytes"], 4096);
    both.ask(DeleteRequest { with_snapshots: false, ..DeleteRequest::of("c") });
    ask_of_buckets(&mut both);
    let left = both.ask(ListVolumes { after: Some("a".to_owned()), most: 9 });
    assert_eq!(left.as_array().unwrap().len(), 4);
    assert_eq!(both.asked, VERBS.iter().copied().collect());

    server.stop();
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Puts "hello" and gets it.
struct Hello(Vec<u8>, bool);

impl ObjectSource for Hello {
    type Error = ControlError;

    fn fill(&mut self, out: &mut [u8]) -> Result<usize, ControlError> {
        out[..5].copy_from_slice(b"hello");
        Ok(if std::mem::replace(&mut self.1, true) { 0 } else { 5 })
    }
}

impl ObjectSink for Hello {
    type Error = ControlError;

    fn begin(&mut self, object: &ObjectShown) -> Result<(), ControlError> {
        assert_eq!(object.size_bytes, 5);
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Both are asked all that is asked about buckets; at the end both have none.
fn ask_of_buckets(both: &mut Both) {
    let (bucket, key) = (|| "photos".to_owned(), || ObjectKey::from("a/b"));
    let made = both.ask(CreateBucket { name: bucket(), ..CreateBucket::default() });
    assert_eq!(made["objects"], 0);
    let again = both.ask(CreateBucket { name: bucket(), ..CreateBucket::default() });
    assert!(again["refused"].as_str().unwrap().contains("Exists"));
    let wish = || PutObject { bucket: bucket(), key: key(), ..PutObject::default() };
    let hello = || Hello(Vec::new(), false);
    both.asked.extend(["put_object", "get_object"]);
    let here = both.here.put_object(&wish(), &mut hello()).unwrap();
    assert_eq!(both.served.put_object(wish(), &mut hello()).unwrap(), here);
    let absent = || PutObject { if_absent: true, ..wish() };
    let refused = both.served.put_object(absent(), &mut hello()).unwrap_err().to_string();
    assert_eq!(both.here.put_object(&absent(), &mut hello()).unwrap_err().to_string(), refused);
    let get = |key| GetObject { bucket: bucket(), key };
    let (mut here, mut there) = (hello(), hello());
    both.here.get_object(&get(key()), &mut here).unwrap();
    both.served.get_object(get(key()), &mut there).unwrap();
    assert!(here.0 == b"hello" && there.0 == b"hello");
    let none = || get("none".into());
    let refused = both.served.get_object(none(), &mut there).unwrap_err().to_string();
    assert_eq!(both.here.get_object(&none(), &mut here).unwrap_err().to_string(), refused);

    both.ask(ListTenants { name: None });
    both.ask(ListCaches {});
    both.ask(SetBucket { name: bucket(), quota_bytes: Some(6) });
    let shown = both.ask(ShowBucket { name: bucket() });
    assert_eq!((shown["objects"].clone(), shown["quota_bytes"].clone()), (json!(1), json!(6)));
    assert_eq!(both.ask(ListBuckets { after: None, most: 9 })[0]["name"], "photos");
    let to = ObjectKey::from("c");
    let copy =
        CopyObject { from_bucket: bucket(), from: key(), to_bucket: bucket(), to, if_absent: true };
    assert!(both.ask(copy.clone())["refused"].as_str().unwrap().contains("NoSpace"));
    let page =
        ListObjects { bucket: bucket(), delimiter: "/".to_owned(), most: 9, ..Default::default() };
    let mut listed = both.here.ask(page.clone()).unwrap();
    assert_eq!(listed.prefixes, [ObjectKey::from("a/")]);
    listed = both.served.ask(page).unwrap();
    assert_eq!(listed.prefixes, [ObjectKey::from("a/")]);
    both.asked.extend(["list_objects", "head_object"]);
    let head = || HeadObject { bucket: bucket(), key: key() };
    let (here, there) = (both.here.ask(head()).unwrap(), both.served.ask(head()).unwrap());
    assert_eq!(here.etag, there.etag);
    let keys = vec![key(), "none".into()];
    assert_eq!(both.ask(DeleteObjects { bucket: bucket(), keys }), json!([true, false]));
    assert!(both.ask(copy)["refused"].as_str().unwrap().contains("NotFound"));
    let replicate = |change| ReplicateBucket { name: bucket(), change };
    let refused = both.ask(replicate(ReplicationChange::Promote));
    assert!(refused["refused"].as_str().unwrap().contains("no replica"));
    assert!(both.ask(CloseBucket { name: bucket() }).is_null());
    assert!(both.ask(DeleteBucket { name: bucket(), with_objects: false }).is_null());
}

/// The connection becomes the data door's, with who is at its other end, and nothing that the door
/// says first is lost.
#[test]
fn a_connection_of_data_is_handed_to_its_door() {
    let folder = std::env::temp_dir().join(format!("tamis-data-door-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let door = |mut stream: UnixStream, who: String| {
        stream.write_all(who.as_bytes()).unwrap();
        std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap();
    };
    let served = local(store()).with_data_door(Box::new(door));
    let server = Server::start(&folder, served).unwrap();
    let mut client = Client::connect(&folder).unwrap().unwrap();
    client.ask(GetStatus {}).unwrap();
    let mut data = client.open_data("a backup, pid 7".to_owned()).unwrap();
    let mut said = [0; 15];
    data.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"a backup, pid 7");
    data.get_mut().write_all(b"bytes").unwrap();
    let mut back = [0; 5];
    data.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"bytes");
    // It ends with the server, and the server's end waits for it.
    server.stop();
    assert_eq!(data.read(&mut back).unwrap(), 0);
    std::fs::remove_dir_all(&folder).unwrap();
}
