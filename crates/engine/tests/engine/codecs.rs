//! Volumes with a codec of their own: each new chunk is compressed as the volume that brings it
//! says, the codec stays through whatever a volume lives through, and a store's first one comes
//! without a moment in which an older program could open the store.

use disk::MemoryDisk;
use engine::{
    Address, Codec, Compression, OpenVolume, RequestError, SnapshotRequest, Zone, control, repair,
};
use format::FORMAT_VERSION;
use format::features::Features;
use format::superblock::{GEOMETRY_BLOCKS, Geometry};

use crate::stand::{CHUNK, Looker, MIB, Opens, Stand, Wish, check_clean, fresh};

const RAW: Compression = Compression { codec: Codec::Raw, level: 0 };
const LZ4: Compression = Compression { codec: Codec::Lz4, level: 0 };
const ZSTD: Compression = Compression { codec: Codec::Zstd, level: 9 };

/// Chunks of which half is text, so that every codec makes them shorter.
fn contents(seed: u64, chunks: u64) -> Vec<u8> {
    let mut bytes = fresh(seed, chunks * CHUNK);
    for chunk in bytes.chunks_exact_mut(CHUNK as usize) {
        let (_, text) = chunk.split_at_mut(2048);
        text.iter_mut().enumerate().for_each(|(at, byte)| *byte = b"codecs! "[at % 8]);
    }
    bytes
}

fn volume(stand: &Stand, name: &str, own: Option<Compression>) -> OpenVolume {
    let volume = stand.volume(name, 64 * MIB);
    assert_eq!(stand.client.set_volume_compression(name, own).unwrap().compression, own);
    volume
}

/// The codec of the frame that a volume maps at an LBA.
fn codec_at(stand: &Stand, volume: &str, lba: u64) -> String {
    let request = control::Explain { volume: volume.to_owned(), address: Address::Lba(lba) };
    let place = stand.client.ask(request).unwrap().chunk.unwrap().place.unwrap();
    place.frame.unwrap().codec
}

fn codecs(stand: &Stand) -> Vec<(String, Option<Compression>)> {
    let volumes = stand.client.volumes().unwrap();
    volumes.into_iter().map(|volume| (volume.name, volume.compression)).collect()
}

fn geometries(disk: &MemoryDisk) -> [Geometry; 2] {
    GEOMETRY_BLOCKS
        .map(|block| Geometry::decode(&disk.peek(Zone::Superblock, block * 4096, 4096)).unwrap())
}

/// Chunks of all volumes lie in the same groups, and so in the same jobs of workers.
#[test]
fn every_chunk_is_compressed_as_its_volume_says() {
    let stand = Wish { compression: LZ4, ..Wish::default() }.stand();
    let owns = [("v", None, "lz4"), ("r", Some(RAW), "none"), ("z", Some(ZSTD), "zstd")];
    let volumes = owns.map(|(name, own, _)| volume(&stand, name, own));
    for lba in 0..40 {
        for (seed, volume) in (1..).zip(&volumes) {
            let content = contents(seed, 40);
            let at = (lba * CHUNK) as usize;
            stand.write(volume, lba * CHUNK, &content[at..at + CHUNK as usize]);
        }
    }
    stand.flush();
    for ((name, _, codec), seed) in owns.into_iter().zip(1..) {
        (0..40).for_each(|lba| assert_eq!(codec_at(&stand, name, lba), codec, "{name} {lba}"));
        let volume = stand.client.volume(name).unwrap();
        assert!(stand.read(&volume, 0, 40 * CHUNK) == contents(seed, 40), "{name}");
    }
    // The store's codec is that of the volume without one.
    stand.client.ask(control::SetCompression { compression: RAW }).unwrap();
    let [v, _, z] = &volumes;
    stand.write(v, 0, &contents(11, 1));
    stand.write(z, 0, &contents(12, 1));
    stand.flush();
    assert_eq!(
        (codec_at(&stand, "v", 0), codec_at(&stand, "z", 0)),
        ("none".into(), "zstd".into())
    );
    // It may follow the store again.
    stand.client.set_volume_compression("z", None).unwrap();
    stand.write(z, 0, &contents(13, 1));
    stand.flush();
    assert_eq!(codec_at(&stand, "z", 0), "none");
    check_clean(&stand.close());
}

#[test]
fn chunks_are_shared_across_codecs_as_they_are_stored() {
    let stand = Wish { compression: LZ4, ..Wish::default() }.stand();
    let (v, z) = (volume(&stand, "v", None), volume(&stand, "z", Some(ZSTD)));
    stand.write(&v, 0, &contents(1, 30));
    stand.flush();
    let stored = stand.client.stats().unwrap().unique_bytes;
    stand.write(&z, 0, &contents(1, 30));
    stand.flush();
    assert_eq!(stand.client.stats().unwrap().unique_bytes, stored);
    (0..30).for_each(|lba| assert_eq!(codec_at(&stand, "z", lba), "lz4"));
    check_clean(&stand.close());
}

/// Through snapshots, clones, rollbacks, replay, a checkpoint and a repair.
#[test]
fn a_codec_stays_with_its_volume() {
    let wish = Wish::default();
    let stand = wish.stand();
    drop((volume(&stand, "plain", None), volume(&stand, "z", Some(ZSTD))));
    stand.write(&stand.client.volume("z").unwrap(), 0, &contents(7, 16));
    let (volumes, name) = (vec!["z".to_owned()], "s".to_owned());
    stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 1 }).unwrap();
    stand.client.clone_volume("z@s", "branch").unwrap();
    stand.client.clone_volume("z@s", "raw").unwrap();
    stand.client.set_volume_compression("raw", Some(RAW)).unwrap();
    // What it is rolled back to has another one.
    let rollback =
        control::Rollback { snapshot: "z@s".into(), volume: Some("raw".into()), id: None };
    assert_eq!(stand.client.ask(rollback).unwrap().compression, Some(RAW));
    let all = [("branch", Some(ZSTD)), ("plain", None), ("raw", Some(RAW)), ("z", Some(ZSTD))];
    let mut all = all.map(|(name, own)| (name.to_owned(), own)).to_vec();
    all.push(("z@s".to_owned(), Some(ZSTD)));
    assert_eq!(codecs(&stand), all);
    // By replay, then by the catalog, then by a repair of both.
    let stand = wish.open(stand.cut_power_flushed(1));
    assert_eq!(codecs(&stand), all);
    let stand = wish.open(stand.close());
    assert_eq!(codecs(&stand), all);
    let branch = stand.client.volume("branch").unwrap();
    stand.write(&branch, 0, &contents(8, 1));
    stand.flush();
    assert_eq!(codec_at(&stand, "branch", 0), "zstd");
    drop(branch);
    stand.client.set_volume_compression("plain", Some(LZ4)).unwrap();
    all[1].1 = Some(LZ4);
    let left = stand.cut_power_flushed(2);
    repair(Box::new(left.clone()), &mut |_| {}).unwrap();
    check_clean(&left);
    let stand = wish.open(left);
    assert_eq!(codecs(&stand), all);
}

#[test]
fn only_a_codec_of_a_volume_makes_a_store_another() {
    let stand = Wish::default().stand();
    let v = volume(&stand, "v", None);
    stand.write(&v, 0, &contents(1, 4));
    drop(v);
    let (volumes, name) = (vec!["v".to_owned()], "s".to_owned());
    stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 1 }).unwrap();
    for own in [None, Some(ZSTD)] {
        let refused = stand.client.set_volume_compression("v@s", own).unwrap_err();
        assert!(matches!(refused, RequestError::NotAVolume { .. }), "{refused}");
        let refused = stand.client.set_volume_compression("w", own).unwrap_err();
        assert!(matches!(refused, RequestError::NoSuchVolume { .. }), "{refused}");
    }
    let disk = stand.close();
    assert!(geometries(&disk).iter().all(|geometry| geometry.version == 2));
    let stand = Wish::default().open(disk);
    stand.client.set_volume_compression("v", Some(LZ4)).unwrap();
    stand.client.set_volume_compression("v", None).unwrap();
    for geometry in geometries(&stand.close()) {
        let incompatible = geometry.features.incompatible;
        assert_eq!((geometry.version, incompatible), (4, Features::VOLUME_CODECS));
    }
}

/// The power goes at every write of the first codec's setting: no volume has one before both copies
/// of the geometry say that volumes may, and so refuse older programs.
#[test]
fn a_first_codec_may_be_cut_off_at_every_write() {
    let wish = Wish::default();
    let stand = wish.stand();
    let v = stand.volume("v", 64 * MIB);
    stand.write(&v, 0, &fresh(7, 16 * CHUNK));
    drop((v, stand.volume("w", 64 * MIB)));
    let (mut hand, left) = Looker::open(&wish, stand.close());
    // Two at once: both get what they asked for.
    let tags = ["v", "w"].map(|name| {
        let (tag, done) = hand.done();
        let (name, compression) = (name.to_owned(), Some(ZSTD));
        hand.client.administer(control::SetVolumeCompression { name, compression }, done);
        tag
    });
    tags.into_iter().for_each(|tag| drop(hand.wait(tag).unwrap()));
    drop(hand);
    let mut seen = [0; 3];
    for disk in std::mem::take(&mut *left.lock().unwrap()) {
        let versions = geometries(&disk).map(|geometry| geometry.version);
        seen[versions.iter().filter(|&&version| version == FORMAT_VERSION).count()] += 1;
        assert!(versions[0] >= versions[1], "the second block was raised first");
        let stand = wish.open(wish.use_again(disk));
        let has_codec = codecs(&stand).iter().any(|(_, own)| own.is_some());
        assert!(!has_codec || versions == [FORMAT_VERSION; 2], "a codec without its feature");
        // And one can be set now.
        stand.client.set_volume_compression("v", Some(RAW)).unwrap();
        check_clean(&stand.close());
    }
    assert!(seen.iter().all(|&count| count > 0), "none, one, both: {seen:?}");
}
