//! Making and opening a store's files: nothing is overwritten, nothing half-made stays, and every
//! refusal names the path.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod scratch;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use disk::{
    Access, AlignedBuf, CreateFilesError, Doorbell, FileGrowth, Io, IoEngine, IoKind, OpenError,
    SUPERBLOCK_BYTES, StoreFiles, create_sparse_store_files, create_store_files, grow_store_files,
    open_further_files, open_store_files, zone_is_device, zone_length_bytes,
};
use format::mark::Mark;
use format::units::Zone;
use scratch::Scratch;

const UUID: [u8; 16] = [1; 16];

const ONE: [(Zone, u64); 3] =
    [(Zone::Journal, 3 << 20), (Zone::Tables, 1 << 20), (Zone::Data(0), 8 << 20)];

fn open(dir: &Path) -> Result<StoreFiles, OpenError> {
    open_store_files(dir, Access::ReadWrite, IoEngine::Auto, &Doorbell::new().unwrap())
}

/// Without what is there for git.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names.retain(|name| name != ".gitignore");
    names
}

#[test]
fn a_store_is_four_files_of_the_sizes_asked_for() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    create_store_files(&dir, &ONE, &[], UUID).unwrap();
    assert_eq!(names(&dir), ["data", "journal", "superblock", "tables"]);
    assert_eq!(fs::read_to_string(dir.join(".gitignore")).unwrap(), "*\n");
    let store = open(&dir).unwrap();
    for (zone, size_bytes) in ONE.into_iter().chain([(Zone::Superblock, SUPERBLOCK_BYTES)]) {
        assert_eq!(store.disk.size_bytes(zone), size_bytes);
    }
    assert_eq!(store.disk.size_bytes(Zone::Data(1)), 0);
    let journal = fs::metadata(dir.join("journal")).unwrap();
    assert!(std::os::unix::fs::MetadataExt::blocks(&journal) * 512 >= 3 << 20, "not allocated");
}

const SPARSE: [(Zone, u64); 3] =
    [(Zone::Journal, 1 << 20), (Zone::Tables, 1 << 20), (Zone::Data(0), 200 << 20)];

fn taken_bytes(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path).unwrap()) * 512
}

/// A sparse data file begins with a step of room, and more comes when it is asked for; who opens
/// the store again finds as much.
#[test]
fn a_sparse_data_file_takes_a_step_and_what_is_asked_for() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    create_sparse_store_files(&dir, &SPARSE, &[], UUID).unwrap();
    let data = dir.join("data");
    assert_eq!(fs::metadata(&data).unwrap().len(), 200 << 20);
    assert!((64 << 20..66 << 20).contains(&taken_bytes(&data)), "{}", taken_bytes(&data));
    assert!(taken_bytes(&dir.join("tables")) >= 1 << 20);

    let store = open(&dir).unwrap();
    let ahead = store.disk.allocation_ahead().unwrap();
    assert_eq!(ahead.allocated_bytes(0), Some(64 << 20));
    assert!(ahead.obtainable_bytes() > 0);
    ahead.allocate(0, 100 << 20);
    // Its thread ends with the last answer.
    drop(store);
    assert!((100 << 20..102 << 20).contains(&taken_bytes(&data)), "{}", taken_bytes(&data));

    let store = open(&dir).unwrap();
    assert_eq!(store.disk.allocation_ahead().unwrap().allocated_bytes(0), Some(100 << 20));
    store.disk.allocation_ahead().unwrap().allocate(0, 200 << 20);
    drop(store);
    assert!(open(&dir).unwrap().disk.allocation_ahead().is_none(), "all of it is there");
}

#[test]
fn who_only_reads_allocates_nothing() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    create_sparse_store_files(&dir, &SPARSE, &[], UUID).unwrap();
    let doorbell = Doorbell::new().unwrap();
    let store = open_store_files(&dir, Access::ReadOnly, IoEngine::Auto, &doorbell).unwrap();
    assert!(store.disk.allocation_ahead().is_none());
}

/// What others have in the folder is theirs: git goes on seeing it.
#[test]
fn only_a_folder_of_its_own_is_hidden_from_git() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    fs::write(dir.join("notes"), "mine").unwrap();
    create_sparse_store_files(dir, &SPARSE, &[], UUID).unwrap();
    assert!(fs::metadata(dir.join(".gitignore")).is_err());

    let far = scratch.path().join("no/such/place");
    let failing = scratch.path().join("failing");
    create_sparse_store_files(&failing, &SPARSE, &[(Zone::Journal, far)], UUID).unwrap_err();
    assert!(fs::metadata(&failing).is_err(), "what was made stays");
}

/// What is in them is in nobody's keeping but the owner's.
#[test]
fn only_the_owner_may_read_a_stores_files() {
    let scratch = Scratch::new();
    let (dir, _, _) = half_grown(&scratch);
    let mut looked_at = 0;
    for path in names(&dir).into_iter().map(|name| dir.join(name)) {
        // Of a link, what it leads to.
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        looked_at += 1;
    }
    assert_eq!(looked_at, 6);
}

#[test]
fn several_data_zones_are_numbered() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let mut sizes = ONE.to_vec();
    sizes.extend([(Zone::Data(1), 4 << 20), (Zone::Superblock, SUPERBLOCK_BYTES)]);
    create_store_files(&dir, &sizes, &[], UUID).unwrap();
    assert_eq!(names(&dir), ["data.0", "data.1", "journal", "superblock", "tables"]);
    let store = open(&dir).unwrap();
    assert_eq!(store.disk.size_bytes(Zone::Data(1)), 4 << 20);
}

/// Each engine takes longer files and further ones while it runs, and can use all of them.
#[test]
fn an_open_disk_grows() {
    for engine in [IoEngine::Auto, IoEngine::Psync] {
        let scratch = Scratch::new();
        let dir = scratch.path();
        create_store_files(dir, &ONE, &[], UUID).unwrap();
        let mut disk = open_store_files(dir, Access::ReadWrite, engine, &Doorbell::new().unwrap())
            .unwrap()
            .disk;
        let growth = FileGrowth {
            uuid: UUID,
            data_zones: 1,
            longer: vec![(Zone::Data(0), 12 << 20), (Zone::Tables, 2 << 20)],
            added: vec![(Zone::Data(1), 4 << 20, dir.join("more"))],
        };
        grow_store_files(dir, &growth).unwrap();
        assert_eq!(disk.size_bytes(Zone::Data(0)), 8 << 20);
        disk.grow(open_further_files(dir, 1..2).unwrap()).unwrap();
        let grown = [(Zone::Data(0), 12 << 20), (Zone::Data(1), 4 << 20), (Zone::Tables, 2 << 20)];
        for (tag, (zone, size_bytes)) in (0..).zip(grown) {
            assert_eq!(disk.size_bytes(zone), size_bytes);
            let buf = AlignedBuf::new_zeroed(4096).into();
            let kind = IoKind::Write { buf, durable: false };
            disk.submit(Io { zone, offset_bytes: size_bytes - 4096, kind, tag });
        }
        let mut done = Vec::new();
        while disk.in_flight() > 0 {
            disk.wait(&mut done);
        }
        assert!(done.len() == 3 && done.iter().all(|io| io.result.is_ok()), "{done:?}");
        let again = open_further_files(dir, 1..2).err().unwrap();
        assert!(matches!(again, OpenError::Locked { .. }), "{again}");
    }
}

/// A growth by files at these places, of a store with one data zone.
fn growth_by(places: &[&Path], size_bytes: u64) -> FileGrowth {
    let added = (1..).zip(places).map(|(n, place)| (Zone::Data(n), size_bytes, place.into()));
    FileGrowth {
        uuid: UUID,
        data_zones: 1,
        longer: vec![(Zone::Tables, 2 << 20)],
        added: added.collect(),
    }
}

/// A store whose files have grown by those in `more` and `again`, and which was never told: its
/// geometry knows one data zone.
fn half_grown(scratch: &Scratch) -> (PathBuf, PathBuf, PathBuf) {
    let at = |name| scratch.path().join(name);
    let (dir, more, again) = (at("store"), at("more"), at("again"));
    create_store_files(&dir, &ONE, &[], UUID).unwrap();
    grow_store_files(&dir, &growth_by(&[&more, &again], 4 << 20)).unwrap();
    (dir, more, again)
}

#[test]
fn a_further_file_cannot_be_where_the_store_has_its_link_to_it() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    create_store_files(&dir, &ONE, &[], UUID).unwrap();
    let before = names(&dir);
    let refused = grow_store_files(&dir, &growth_by(&[&dir.join("data.1")], 4 << 20));
    let refused = refused.unwrap_err();
    assert!(matches!(refused, CreateFilesError::OwnName { .. }), "{refused}");
    assert_eq!(names(&dir), before);
}

fn link(dir: &Path, name: &str) -> PathBuf {
    fs::read_link(dir.join(name)).unwrap()
}

#[test]
fn a_growth_that_the_store_was_not_told_of_hinders_none_without_further_files() {
    let scratch = Scratch::new();
    let (dir, ..) = half_grown(&scratch);
    assert!(!zone_is_device(&dir, Zone::Data(0), 1).unwrap());
    assert_eq!(zone_length_bytes(&dir, Zone::Data(0), 1).unwrap(), 8 << 20);
    let growth = FileGrowth {
        uuid: UUID,
        data_zones: 1,
        longer: vec![(Zone::Data(0), 12 << 20)],
        added: Vec::new(),
    };
    grow_store_files(&dir, &growth).unwrap();
    assert_eq!(open(&dir).unwrap().disk.size_bytes(Zone::Data(0)), 12 << 20);
}

/// Whatever had been done when it was killed, and wherever the next one puts its files, longer ones
/// as well: those that are there already are taken over, and no others are touched.
#[test]
fn a_growth_that_the_store_was_not_told_of_can_be_had_again() {
    for renamed in [true, false] {
        for (first, second) in [(0, 1), (1, 0), (1, 2), (2, 0)] {
            let scratch = Scratch::new();
            let (dir, more, again) = half_grown(&scratch);
            if !renamed {
                fs::rename(dir.join("data.0"), dir.join("data")).unwrap();
            }
            let places = [more.clone(), again, scratch.path().join("new")];
            let (first, second) = (&places[first], &places[second]);
            grow_store_files(&dir, &growth_by(&[first, second], 6 << 20)).unwrap();
            assert_eq!((link(&dir, "data.1"), link(&dir, "data.2")), (first.into(), second.into()));
            let names = names(&dir);
            let data: Vec<_> = names.iter().filter(|name| name.starts_with("data")).collect();
            assert_eq!(data, ["data.0", "data.1", "data.2"]);
            assert_eq!(fs::metadata(dir.join("data.0")).unwrap().len(), 8 << 20);
            let disk = open(&dir).unwrap().disk;
            assert_eq!([1, 2].map(|n| disk.size_bytes(Zone::Data(n))), [6 << 20; 2]);
            assert!(more.exists(), "not ours to remove");
            let marks = [first, second].map(|place| Mark::decode(&fs::read(place).unwrap()));
            let mark = |number| Ok(Mark { uuid: UUID, zone: Zone::Data(number) });
            assert_eq!(marks, [mark(1), mark(2)]);
        }
    }
}

#[test]
fn of_two_files_that_are_left_over_one_is_enough() {
    let scratch = Scratch::new();
    let (dir, _, again) = half_grown(&scratch);
    grow_store_files(&dir, &growth_by(&[&again], 4 << 20)).unwrap();
    assert_eq!(link(&dir, "data.1"), again);
    assert!(!names(&dir).contains(&"data.2".to_owned()), "two lead to one file");
    assert!(open(&dir).is_ok());
}

#[test]
fn a_file_that_is_left_over_and_somebody_uses_is_not_taken() {
    let scratch = Scratch::new();
    let (dir, more, again) = half_grown(&scratch);
    let refused = |places: &[&Path]| {
        let error = grow_store_files(&dir, &growth_by(places, 4 << 20)).unwrap_err();
        let CreateFilesError::AlreadyExists { path } = error else { panic!("{error}") };
        assert_eq!((link(&dir, "data.1"), link(&dir, "data.2")), (more.clone(), again.clone()));
        path
    };
    let opened = open(&dir).unwrap();
    assert_eq!(refused(&[&more]), more);
    drop(opened);
    fs::write(&again, b"a thesis by now").unwrap();
    assert_eq!(refused(&[&again]), again);
    assert_eq!(refused(&[&scratch.path().join("new"), &again]), again);
    fs::write(&more, [b"also a thesis by now", [0; 8172].as_slice()].concat()).unwrap();
    assert_eq!(refused(&[&more]), more);
    fs::write(&more, [0; 8192]).unwrap();
    assert_eq!(fs::read(&again).unwrap(), b"a thesis by now");
    fs::write(dir.join("data.3"), b"by hand").unwrap();
    let four = [more.as_path(), &scratch.path().join("new"), &scratch.path().join("newer")];
    assert_eq!(refused(&four), dir.join("data.3"));
    let huge = growth_by(&[&scratch.path().join("new")], 1 << 50);
    let error = grow_store_files(&dir, &huge).unwrap_err();
    assert!(matches!(error, CreateFilesError::NoSpace { .. }), "{error}");
    assert_eq!((link(&dir, "data.1"), link(&dir, "data.2")), (more, again));
    assert!(!scratch.path().join("new").exists());
}

/// Or they could not be opened for the growth that takes them over.
#[test]
fn an_open_disk_releases_files_that_the_store_does_not_know() {
    for engine in [IoEngine::Auto, IoEngine::Psync] {
        let scratch = Scratch::new();
        let (dir, more, again) = half_grown(&scratch);
        let mut disk = open_store_files(&dir, Access::ReadWrite, engine, &Doorbell::new().unwrap())
            .unwrap()
            .disk;
        let locked = open_further_files(&dir, 1..3).err().unwrap();
        assert!(matches!(locked, OpenError::Locked { .. }), "{locked}");
        disk.release_data_zones(1);
        assert_eq!([0, 1, 2].map(|n| disk.size_bytes(Zone::Data(n))), [8 << 20, 0, 0]);
        grow_store_files(&dir, &growth_by(&[&again, &more], 4 << 20)).unwrap();
        disk.grow(open_further_files(&dir, 1..3).unwrap()).unwrap();
        assert_eq!([0, 1, 2].map(|n| disk.size_bytes(Zone::Data(n))), [8 << 20, 4 << 20, 4 << 20]);
    }
}

#[test]
fn a_store_is_opened_by_one_at_a_time() {
    let scratch = Scratch::new();
    create_store_files(scratch.path(), &ONE, &[], UUID).unwrap();
    let first = open(scratch.path()).unwrap();
    let second = open(scratch.path()).err().unwrap();
    assert!(matches!(&second, OpenError::Locked { path } if path.ends_with("superblock")));
    assert!(second.to_string().contains("in use by another process"));
    drop(first);
    assert!(open(scratch.path()).is_ok());
}

#[test]
fn an_existing_store_is_never_touched() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    create_store_files(dir, &ONE, &[], UUID).unwrap();
    fs::write(dir.join("tables"), b"precious").unwrap();
    let error = create_store_files(dir, &ONE, &[], UUID).unwrap_err();
    assert!(matches!(error, CreateFilesError::AlreadyExists { .. }));
    assert_eq!(fs::read(dir.join("tables")).unwrap(), b"precious");
    assert_eq!(names(dir), ["data", "journal", "superblock", "tables"]);
}

#[test]
fn one_data_zone_does_not_hide_several() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("data.0"), b"precious").unwrap();
    let error = create_store_files(scratch.path(), &ONE, &[], UUID).unwrap_err();
    assert!(matches!(error, CreateFilesError::AlreadyExists { path } if path.ends_with("data.0")));
}

#[test]
fn what_fails_half_way_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let far = scratch.path().join("journal-elsewhere");
    let sizes = [(Zone::Journal, 1 << 20), (Zone::Tables, 1 << 20), (Zone::Data(0), 1 << 50)];
    let error = create_store_files(&dir, &sizes, &[(Zone::Journal, far)], UUID).unwrap_err();
    let CreateFilesError::NoSpace { path, needed_bytes, free_bytes } = error else {
        panic!("{error}");
    };
    assert!(path.ends_with("data") && needed_bytes == 1 << 50 && free_bytes < 1 << 50);
    assert!(names(scratch.path()).is_empty());
}

#[test]
fn a_zone_may_live_elsewhere() {
    let scratch = Scratch::new();
    let (dir, far) = (scratch.path().join("store"), scratch.path().join("fast-tables"));
    create_store_files(&dir, &ONE, &[(Zone::Tables, far.clone())], UUID).unwrap();
    assert_eq!(fs::read_link(dir.join("tables")).unwrap(), far);
    assert_eq!(open(&dir).unwrap().disk.size_bytes(Zone::Tables), 1 << 20);

    fs::rename(&far, scratch.path().join("unplugged")).unwrap();
    let error = open(&dir).err().unwrap();
    assert!(matches!(&error, OpenError::Dangling { target, .. } if *target == far));
    assert!(error.to_string().contains("fast-tables"));
}

#[test]
fn a_link_never_overwrites_what_it_points_to() {
    let scratch = Scratch::new();
    let (dir, far) = (scratch.path().join("store"), scratch.path().join("thesis.pdf"));
    fs::write(&far, b"precious").unwrap();
    let error = create_store_files(&dir, &ONE, &[(Zone::Data(0), far.clone())], UUID).unwrap_err();
    assert!(matches!(error, CreateFilesError::AlreadyExists { path } if path == far));
    assert_eq!(fs::read(&far).unwrap(), b"precious");
    assert_eq!(names(scratch.path()), ["thesis.pdf"]);
}

#[test]
fn what_is_not_there_is_named() {
    let scratch = Scratch::new();
    let nowhere = scratch.path().join("nowhere");
    assert!(matches!(open(&nowhere), Err(OpenError::NoStore { dir }) if dir == nowhere));
    assert!(matches!(open(scratch.path()), Err(OpenError::NoStore { .. })));

    create_store_files(scratch.path(), &ONE, &[], UUID).unwrap();
    let superblock = scratch.path().join("superblock");
    let bytes = fs::read(&superblock).unwrap();
    fs::write(&superblock, &bytes[..4095]).unwrap();
    assert!(matches!(open(scratch.path()), Err(OpenError::Empty { path }) if path == superblock));
    fs::write(&superblock, bytes).unwrap();
    fs::write(scratch.path().join("journal"), [1; 4095]).unwrap();
    assert_eq!(open(scratch.path()).unwrap().disk.size_bytes(Zone::Journal), 0);
    fs::remove_file(scratch.path().join("journal")).unwrap();
    let error = open(scratch.path()).err().unwrap();
    assert!(matches!(error, OpenError::Missing { path } if path.ends_with("journal")));

    let orphan = scratch.path().join("no/store");
    let error = create_store_files(&orphan, &ONE, &[], UUID).unwrap_err();
    assert!(matches!(error, CreateFilesError::NoParent { path } if path == orphan));
}

#[test]
fn plans_that_do_not_fit_together_are_refused_before_anything_is_made() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let refused = |sizes: &[(Zone, u64)], links: &[(Zone, PathBuf)]| {
        let error = create_store_files(&dir, sizes, links, UUID).unwrap_err();
        assert!(!dir.exists());
        error
    };
    let odd = [(Zone::Journal, 5000), ONE[1], ONE[2]];
    assert!(matches!(refused(&odd, &[]), CreateFilesError::BadSize { size_bytes: 5000, .. }));
    let plans: [&[(Zone, u64)]; 4] = [
        &ONE[1..],
        &[ONE[0], ONE[1]],
        &[ONE[0], ONE[1], (Zone::Data(1), 4096)],
        &[ONE[0], ONE[1], ONE[2], ONE[2]],
    ];
    for sizes in plans {
        assert!(matches!(refused(sizes, &[]), CreateFilesError::BadPlan { .. }));
    }
    let stray = [(Zone::Data(4), dir.join("x"))];
    assert!(matches!(refused(&ONE, &stray), CreateFilesError::BadPlan { zone: Zone::Data(4) }));
}

#[test]
fn identity_says_what_drives_the_files() {
    let scratch = Scratch::new();
    create_store_files(scratch.path(), &ONE, &[], UUID).unwrap();
    let bell = Doorbell::new().unwrap();
    for (engine, name) in [(IoEngine::Uring, "io_uring"), (IoEngine::Psync, "psync")] {
        let store = open_store_files(scratch.path(), Access::ReadWrite, engine, &bell).unwrap();
        assert_eq!(store.identity.engine, name);
        assert_eq!(store.identity.direct, store.identity.note.is_none());
    }
}
