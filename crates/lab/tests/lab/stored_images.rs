//! Every store that an earlier release left in `tests/images` is still what it was.
//!
//! The images of all format versions stay here for good. Today's version is made by
//! `cargo run -p lab -- image crates/lab/tests/images`, when a version is new, and made again for
//! as long as no release has written that version and it still changes. Then it is frozen.
//!
//! Versions 2, 3 and 4 are not released yet.

use std::fs;
use std::path::{Path, PathBuf};

use disk::MemoryDisk;
use engine::{NewVolume, VolumeKind, Zone};
use format::superblock::{GEOMETRY_BLOCKS, Geometry};
use lab::image::{self, Recipe};

fn images() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "image"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn every_image_is_sound_and_holds_what_was_recorded() {
    for path in images() {
        let name = path.display();
        let packed = fs::read(&path).unwrap();
        let recorded = fs::read_to_string(path.with_extension("txt")).unwrap();
        let disk = image::unpack(&packed).unwrap();
        let report = engine::check(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{name}: {:?}", report.problems);
        assert!(image::pack(&disk).unwrap() == packed, "{name}: a check changed it");
        assert!(report.records_replayed > 0, "{name}: the journal is empty");
        assert_eq!(image::record(&disk).unwrap(), recorded, "{name}");
        // That opening replayed the journal and closed; the next finds a clean store of this day.
        assert_eq!(image::record(&disk).unwrap(), recorded, "{name}, opened again");
    }
}

#[test]
fn every_image_can_be_written_to() {
    for path in images() {
        let disk = image::unpack(&fs::read(&path).unwrap()).unwrap();
        let running = image::open(&disk).unwrap();
        let volumes = running.client().volumes().unwrap();
        let written = volumes.iter().find(|volume| !volume.read_only).unwrap();
        let volume =
            running.client().open_volume(&written.name, engine::Opener::new("a test", 0)).unwrap();
        running.client().write_at(&volume, 512, &[7; 137 * 512]).unwrap();
        running.close().unwrap();
        let report = engine::check(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{}: {:?}", path.display(), report.problems);
        let recorded = fs::read_to_string(path.with_extension("txt")).unwrap();
        let now = image::record(&disk).unwrap();
        let differing = recorded.lines().zip(now.lines()).filter(|(was, is)| was != is);
        let names: Vec<&str> = differing.map(|(was, _)| was.split(' ').next().unwrap()).collect();
        assert_eq!(names, [written.name.as_str()], "{}", path.display());
    }
}

/// In both copies of the geometry.
fn versions(disk: &MemoryDisk) -> [u32; 2] {
    let block = |block: u64| disk.peek(Zone::Superblock, block * 4096, 4096);
    GEOMETRY_BLOCKS.map(|at| Geometry::decode(&block(at)).unwrap().version)
}

/// The first thing of version 4 makes a store of any version one of version 4, and all that it held
/// stays.
#[test]
fn every_image_can_be_given_a_bucket() {
    for path in images() {
        let name = path.display();
        let disk = image::unpack(&fs::read(&path).unwrap()).unwrap();
        let before = versions(&disk);
        let recorded = fs::read_to_string(path.with_extension("txt")).unwrap();
        let running = image::open(&disk).unwrap();
        let (called, kind) = ("a first bucket".to_owned(), VolumeKind::Bucket);
        let new = NewVolume { name: called, size_bytes: 1 << 20, kind, ..NewVolume::default() };
        running.client().ask(new).unwrap();
        let bucket = running
            .client()
            .open_volume("a first bucket", engine::Opener::new("a test", 0))
            .unwrap();
        running.client().write_at(&bucket, 0, &[7; 64 << 10]).unwrap();
        drop(bucket);
        running.close().unwrap();
        assert!(before[0] <= 4 && versions(&disk) == [4; 2], "{name}: {before:?}");
        let report = engine::check(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{name}: {:?}", report.problems);
        let now = image::record(&disk).unwrap();
        let (made, kept): (Vec<_>, Vec<_>) =
            now.lines().partition(|line| line.starts_with("a first bucket "));
        assert_eq!(kept, recorded.lines().collect::<Vec<_>>(), "{name}");
        assert!(made.len() == 1 && made[0].ends_with(" bucket"), "{name}: {made:?}");
    }
}

#[test]
fn todays_format_version_has_an_image() {
    let name = format!("v{}.image", format::FORMAT_VERSION);
    assert!(
        images().iter().any(|path| path.ends_with(&name)),
        "no {name}: make it with `cargo run -p lab -- image crates/lab/tests/images`"
    );
}

#[test]
fn what_is_made_today_is_packed_and_unpacked_as_it_is() {
    for (version, volumes) in [(2, 7), (3, 7), (4, 10)] {
        let disk = image::make(Recipe::of_version(version).unwrap()).unwrap();
        assert_eq!(versions(&disk), [version; 2]);
        let unpacked = image::unpack(&image::pack(&disk).unwrap()).unwrap();
        let recorded = image::record(&disk).unwrap();
        assert_eq!(image::record(&unpacked).unwrap(), recorded);
        assert_eq!(recorded.lines().count(), volumes, "{recorded}");
    }
}

#[test]
fn bytes_that_are_no_image_are_refused() {
    assert!(image::unpack(b"not packed at all").is_err());
    let packed = fs::read(&images()[0]).unwrap();
    assert!(image::unpack(&packed[..packed.len() / 2]).is_err());
}
