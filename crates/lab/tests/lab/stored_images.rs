//! Every store that an earlier release left in `tests/images` is still what it was.
//!
//! The images of all format versions stay here for good. Today's version is made by
//! `cargo run -p lab -- image crates/lab/tests/images`, when a version is new, and made again for
//! as long as no release has written that version and it still changes. Then it is frozen.
//!
//! Versions 2 and 3 are not released yet.

use std::fs;
use std::path::{Path, PathBuf};

use engine::{Detection, FingerprintKind};
use lab::image;

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
    for kind in [FingerprintKind::Blake3, FingerprintKind::Sha256] {
        let disk = image::make(Detection { kind, verify: false, ..Default::default() }).unwrap();
        let unpacked = image::unpack(&image::pack(&disk).unwrap()).unwrap();
        let recorded = image::record(&disk).unwrap();
        assert_eq!(image::record(&unpacked).unwrap(), recorded);
        assert_eq!(recorded.lines().count(), 7, "{recorded}");
    }
}

#[test]
fn bytes_that_are_no_image_are_refused() {
    assert!(image::unpack(b"not packed at all").is_err());
    let packed = fs::read(&images()[0]).unwrap();
    assert!(image::unpack(&packed[..packed.len() / 2]).is_err());
}
