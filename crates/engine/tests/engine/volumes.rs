//! Volumes: making, naming, resizing, deleting, and what a crash leaves of each.

use engine::{
    Address, Dedup, DeleteRequest, NewVolume, Reply, RequestError, SnapshotRequest, Zone, control,
};

use crate::stand::{CHUNK, GIB, Hand, MIB, Opens, Stand, Wish, check_clean, fresh};

fn names(stand: &Stand) -> Vec<String> {
    stand.client.volumes().unwrap().into_iter().map(|volume| volume.name).collect()
}

#[test]
fn volumes_are_listed_by_name_with_what_they_were_made_with() {
    let stand = Wish::default().stand();
    let made = stand.client.create_volume("b", 3 * MIB, false).unwrap();
    stand.client.create_volume("a", 512, true).unwrap();
    assert_eq!((made.name.as_str(), made.size_bytes, made.mapped_bytes), ("b", 3 * MIB, 0));
    let listed = stand.client.volumes().unwrap();
    assert_eq!(names(&stand), ["a", "b"]);
    assert!(listed[0].read_only && !listed[1].read_only);
    assert_ne!(listed[0].id, listed[1].id);
    let handle = stand.client.volume("a").unwrap();
    assert_eq!((handle.name().as_str(), handle.size_bytes(), handle.read_only()), ("a", 512, true));
    assert_eq!(u64::from(handle.chunk_bytes()), CHUNK);
    let refused = stand.client.write_at(&handle, 0, &[1; 512]).unwrap_err();
    assert_eq!(refused, RequestError::ReadOnly { volume: "a".to_owned() });
    let refused = stand.client.trim_blocking(&handle, 0, 512).unwrap_err();
    assert_eq!(refused, RequestError::ReadOnly { volume: "a".to_owned() });
    check_clean(&stand.close());
}

#[test]
fn volumes_that_are_listed_in_parts_are_those_that_there_are() {
    let stand = Wish::default().stand();
    for name in ["e", "a", "c", "b", "d"] {
        stand.client.create_volume(name, MIB, false).unwrap();
    }
    for most in 1..7 {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let part = stand.client.ask(control::ListVolumes { after, most }).unwrap();
            assert!(part.len() <= most);
            after = part.last().map(|last| last.name.clone());
            listed.extend(part);
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, stand.client.volumes().unwrap(), "{most} at a time");
    }
    // One that is gone by then.
    let behind =
        stand.client.ask(control::ListVolumes { after: Some("bb".to_owned()), most: 1 }).unwrap();
    assert_eq!(behind[0].name, "c");
}

#[test]
fn a_name_is_one_volume() {
    let stand = Wish::default().stand();
    stand.volume("one", MIB);
    stand.volume("two", MIB);
    let taken = |name: &str| RequestError::VolumeExists { name: name.to_owned() };
    let missing = |name: &str| RequestError::NoSuchVolume { name: name.to_owned() };
    let client = &stand.client;
    assert_eq!(client.create_volume("one", MIB, false).unwrap_err(), taken("one"));
    assert_eq!(client.rename_volume("one", "two").unwrap_err(), taken("two"));
    assert_eq!(client.rename_volume("three", "four").unwrap_err(), missing("three"));
    assert_eq!(client.resize_volume("three", MIB).unwrap_err(), missing("three"));
    assert_eq!(client.delete_volume("three").unwrap_err(), missing("three"));
    assert_eq!(client.volume("three").unwrap_err(), missing("three"));
    for bad in [
        "",
        "-x",
        ".x",
        "a/b",
        "a@b",
        "a\nb",
        "a\u{202e}b",
        "\u{200b}",
        " ",
        "a ",
        &"x".repeat(256),
    ] {
        let error = RequestError::BadName { name: bad.to_owned() };
        assert_eq!(client.create_volume(bad, MIB, false).unwrap_err(), error);
        assert_eq!(client.rename_volume("one", bad).unwrap_err(), error);
    }
    assert_eq!(names(&stand), ["one", "two"]);
    client.create_volume(&"x".repeat(255), MIB, false).unwrap();
}

#[test]
fn a_size_is_whole_sectors_up_to_a_pebibyte() {
    let stand = Wish::default().stand();
    for size_bytes in [0, 511, 513, 4097, (1 << 50) + 512, u64::MAX] {
        let error = stand.client.create_volume("v", size_bytes, false).unwrap_err();
        assert_eq!(error, RequestError::BadSize { size_bytes });
    }
    stand.volume("v", 512);
    for size_bytes in [0, 100, (1 << 50) + 512] {
        let error = stand.client.resize_volume("v", size_bytes).unwrap_err();
        assert_eq!(error, RequestError::BadSize { size_bytes });
    }
    assert_eq!(stand.client.resize_volume("v", 1 << 50).unwrap().size_bytes, 1 << 50);
}

#[test]
fn a_pebibyte_is_written_to_its_very_end() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 1 << 50);
    let end = (1 << 50) - CHUNK;
    stand.write(&volume, end, &fresh(1, CHUNK));
    stand.write(&volume, end - CHUNK - 512, &fresh(2, 1024));
    stand.write(&volume, 0, &fresh(3, CHUNK));
    let beyond = stand.client.write_at(&volume, 1 << 50, &[0; 512]).unwrap_err();
    assert!(matches!(beyond, RequestError::OutOfRange { .. }));
    let beyond = stand.client.write_at(&volume, end, &[0; 8192]).unwrap_err();
    assert!(matches!(beyond, RequestError::OutOfRange { .. }));
    let wraps = stand.client.trim_blocking(&volume, 512, u64::MAX - 511).unwrap_err();
    assert!(matches!(wraps, RequestError::OutOfRange { .. }));
    let stand = Wish::default().open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    assert_eq!(stand.read(&volume, end, CHUNK), fresh(1, CHUNK));
    assert_eq!(stand.read(&volume, end - CHUNK - 512, 1024), fresh(2, 1024));
    assert_eq!(stand.read(&volume, 0, CHUNK), fresh(3, CHUNK));
    assert_eq!(stand.read(&volume, GIB, MIB), vec![0; MIB as usize]);
    assert_eq!(stand.client.volumes().unwrap()[0].mapped_bytes, 4 * CHUNK);
    check_clean(&stand.close());
}

#[test]
fn what_a_shrunk_volume_lost_reads_zeros_when_it_grows_again() {
    // In the middle of a sector run, of a chunk, of a leaf, and at a chunk's end.
    for kept_bytes in [512, CHUNK, 3 * CHUNK + 1536, MIB, 3 * MIB - 512] {
        let stand = Wish::default().stand();
        let volume = stand.volume("v", 8 * MIB);
        let bytes = fresh(kept_bytes, 4 * MIB);
        stand.write(&volume, 0, &bytes);
        // Once while it is buffered, once when it is stored.
        if kept_bytes % 1024 == 0 {
            stand.flush();
        }
        assert_eq!(stand.client.resize_volume("v", kept_bytes).unwrap().size_bytes, kept_bytes);
        assert_eq!(volume.size_bytes(), kept_bytes);
        let beyond = stand.try_read(&volume, kept_bytes, 512).unwrap_err();
        assert!(matches!(beyond, RequestError::OutOfRange { .. }));
        stand.client.resize_volume("v", 8 * MIB).unwrap();
        let mut expected = bytes;
        expected[kept_bytes as usize..].fill(0);
        assert!(stand.read(&volume, 0, 4 * MIB) == expected, "kept {kept_bytes}");
        let stand = Wish::default().open(stand.close());
        let volume = stand.client.volume("v").unwrap();
        assert!(stand.read(&volume, 0, 4 * MIB) == expected, "kept {kept_bytes}, reopened");
        assert_eq!(stand.stats().logical_bytes, kept_bytes.next_multiple_of(CHUNK));
        check_clean(&stand.close());
    }
}

#[test]
fn a_volume_of_odd_size_is_written_to_its_last_sector() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 2 * CHUNK + 1536);
    stand.write(&volume, CHUNK, &fresh(1, CHUNK + 1536));
    stand.trim(&volume, 2 * CHUNK, 1024);
    let mut expected = fresh(1, CHUNK + 1536);
    expected[CHUNK as usize..CHUNK as usize + 1024].fill(0);
    assert_eq!(stand.read(&volume, CHUNK, CHUNK + 1536), expected);
    stand.trim(&volume, 0, 2 * CHUNK + 1536);
    stand.flush();
    assert_eq!(stand.read(&volume, 0, 2 * CHUNK + 1536), vec![0; 2 * CHUNK as usize + 1536]);
    assert_eq!(stand.stats().logical_bytes, 0);
    check_clean(&stand.close());
}

#[test]
fn a_rename_takes_the_data_along_and_outlives_a_kill() {
    let stand = Wish::default().stand();
    let volume = stand.volume("old", MIB);
    stand.write(&volume, 0, &fresh(1, CHUNK));
    stand.client.rename_volume("old", "new").unwrap();
    assert_eq!(volume.name(), "new");
    assert_eq!(stand.read(&volume, 0, CHUNK), fresh(1, CHUNK));
    stand.volume("old", MIB);
    let stand = Wish::default().open(stand.cut_power(7));
    assert_eq!(names(&stand), ["new", "old"]);
    let volume = stand.client.volume("new").unwrap();
    assert_eq!(stand.read(&volume, 0, CHUNK), fresh(1, CHUNK));
    check_clean(&stand.close());
}

#[test]
fn a_deleted_volume_gives_its_space_back_and_its_name() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    let keeper = stand.volume("keeper", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, 16 * MIB));
    stand.write(&keeper, 0, &fresh(2, MIB));
    // One chunk that both hold.
    stand.write(&keeper, 32 * MIB, &fresh(1, CHUNK));
    stand.flush();
    assert_eq!(stand.stats().logical_bytes, 17 * MIB + CHUNK);
    stand.client.delete_volume("v").unwrap();
    assert!(volume.is_gone());
    let gone = RequestError::NoSuchVolume { name: "v".to_owned() };
    assert_eq!(stand.client.write_at(&volume, 0, &[0; 512]).unwrap_err(), gone);
    assert_eq!(stand.try_read(&volume, 0, 512).unwrap_err(), gone);
    let again = stand.volume("v", MIB);
    assert_ne!(again.id(), volume.id());
    assert_eq!(stand.read(&again, 0, MIB), vec![0; MIB as usize]);
    stand.wait_until("the end of the deletion", |stats| stats.deletions == 0);
    stand.wait_until("the dead volume's space", |stats| stats.free_bytes > 112 * MIB);
    assert_eq!(stand.read(&keeper, 32 * MIB, CHUNK), fresh(1, CHUNK));
    assert_eq!(stand.stats().unique_chunks, MIB / CHUNK + 1);
    check_clean(&stand.close());
}

/// Acknowledged is acknowledged: what of a write lies inside the volume stays, though a shrink that
/// nobody had looked at yet stood before it in the queue.
#[test]
fn a_write_that_meets_a_shrink_in_the_queue_keeps_what_is_inside() {
    for kept_sectors in [0, 1, 8, 12, 31, 32] {
        let mut hand = Hand::new(&Wish::default());
        let volume = hand.volume("v", MIB);
        let (_, done) = hand.done();
        let size_bytes = MIB / 2 + kept_sectors * 512;
        let name = "v".to_owned();
        let request =
            control::ResizeVolume { name, size_bytes, may_shrink: true, even_if_open: true };
        hand.client.administer(request, done);
        let bytes = fresh(1, 4 * CHUNK);
        assert_eq!(hand.write(&volume, MIB / 2, &bytes), None, "acknowledged at the door");
        hand.settle();
        hand.beside(|client| client.resize_volume("v", MIB)).unwrap();
        let kept_bytes = kept_sectors as usize * 512;
        let found = hand.read(&volume, MIB / 2, 4 * CHUNK as u32);
        assert!(found[..kept_bytes] == bytes[..kept_bytes], "{kept_sectors} sectors are kept");
        assert!(
            found[kept_bytes..].iter().all(|&byte| byte == 0),
            "{kept_sectors} sectors, no more"
        );
        check_clean(&hand.close());
    }
}

/// Nor does it depend on what was there before it, which may be damaged.
#[test]
fn a_write_that_meets_a_shrink_in_the_queue_needs_nothing_of_what_it_replaces() {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", MIB);
    hand.write(&volume, 0, &fresh(1, CHUNK));
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let told = hand.beside(|client| client.explain("v", Address::Lba(0))).unwrap();
    let at = told.chunk.unwrap().place.unwrap().zone_offset_bytes + 100;
    drop(volume);
    let disk = hand.close();
    disk.corrupt(Zone::Data(0), at, |byte| *byte ^= 0x40);
    let mut hand = Hand::open(&wish, disk);
    let volume = hand.beside(|client| client.volume("v").unwrap());
    let (shrunk, done) = hand.done();
    let (name, size_bytes) = ("v".to_owned(), 1536);
    let request = control::ResizeVolume { name, size_bytes, may_shrink: true, even_if_open: true };
    hand.client.administer(request, done);
    assert_eq!(hand.write(&volume, 0, &fresh(2, CHUNK)), None, "acknowledged at the door");
    hand.wait(shrunk).unwrap();
    assert!(hand.read(&volume, 0, 1536) == fresh(2, CHUNK)[..1536]);
    hand.beside(|client| client.resize_volume("v", MIB)).unwrap();
    let expected = [&fresh(2, CHUNK)[..1536], &[0; 2560]].concat();
    assert!(hand.read(&volume, 0, CHUNK as u32) == expected);
}

#[test]
fn a_deletion_goes_on_after_a_kill() {
    for seed in 0..4 {
        let stand = Wish { seed, ..Wish::default() }.stand();
        let volume = stand.volume("v", 1 << 40);
        // Leaves far apart, so that the deletion takes many pieces.
        for number in 0..300 {
            stand.write(&volume, number * (3 << 30), &fresh(number, CHUNK));
        }
        stand.client.delete_volume("v").unwrap();
        let disk = stand.cut_power(seed);
        check_clean(&disk);
        let stand = Wish::default().open(disk);
        assert!(names(&stand).is_empty());
        stand.wait_until("the end of the deletion", |stats| stats.deletions == 0);
        let report = check_clean(&stand.close());
        assert_eq!((report.volumes, report.mapped_chunks), (0, 0));
    }
}

#[test]
fn thousands_of_volumes_come_and_go() {
    let stand = Wish::default().stand();
    let name = |number: u64| format!("volume-{number:05}");
    // Many hands, so that many requests share a flush.
    std::thread::scope(|scope| {
        for hand in 0..16 {
            let stand = &stand;
            scope.spawn(move || {
                for number in (hand..2000).step_by(16) {
                    let volume = stand.volume(&name(number), GIB);
                    stand.write(&volume, number * CHUNK, &fresh(number % 50, CHUNK));
                }
            });
        }
    });
    assert_eq!(stand.client.volumes().unwrap().len(), 2000);
    let stand = Wish::default().open(stand.close());
    assert!(stand.report.clean);
    let listed = stand.client.volumes().unwrap();
    assert!(listed.iter().zip(0..).all(|(volume, number)| volume.name == name(number)));
    assert!(listed.iter().all(|volume| volume.mapped_bytes == CHUNK));
    assert_eq!(stand.stats().unique_chunks, 50);
    std::thread::scope(|scope| {
        for hand in 0..16 {
            let stand = &stand;
            scope.spawn(move || {
                for number in (hand..2000).step_by(16).filter(|number| number % 3 > 0) {
                    stand.client.delete_volume(&name(number)).unwrap();
                }
            });
        }
    });
    let left = 2000_u64.div_ceil(3);
    stand.wait_until("the deletions", |stats| stats.deletions == 0);
    assert_eq!(stand.stats().logical_bytes, left * CHUNK);
    let volume = stand.client.volume(&name(999)).unwrap();
    assert_eq!(stand.read(&volume, 999 * CHUNK, CHUNK), fresh(999 % 50, CHUNK));
    assert_eq!(check_clean(&stand.close()).volumes, left);
}

/// Between the question and its answer the name may have come to another.
#[test]
fn only_what_was_asked_about_is_deleted_or_rolled_back_to() {
    let stand = Wish::default().stand();
    let client = &stand.client;
    let snap = |volume: &str, name: &str| {
        let (volumes, name) = (vec![volume.to_owned()], name.to_owned());
        client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
        let full = client.volumes().unwrap();
        full.into_iter().find(|info| info.name == format!("{volume}@daily")).unwrap().id
    };
    let other = |name: &str| Err(RequestError::OtherVolume { name: name.to_owned() });

    let asked = client.create_volume("a", MIB, false).unwrap().id;
    client.rename_volume("a", "b").unwrap();
    let now = client.create_volume("a", MIB, false).unwrap().id;
    let id = Some(asked);
    assert_eq!(client.ask(DeleteRequest { id, ..DeleteRequest::of("a") }), other("a"));
    assert_eq!(names(&stand), ["a", "b"]);

    let asked = snap("a", "daily");
    client.delete_volume("a@daily").unwrap();
    let daily = snap("a", "daily");
    let id = Some(asked);
    assert_eq!(client.ask(DeleteRequest { id, ..DeleteRequest::of("a@daily") }), other("a@daily"));
    let rollback = |id| control::Rollback { snapshot: "a@daily".to_owned(), volume: None, id };
    assert_eq!(client.ask(rollback(id)).map(drop), other("a@daily"));
    assert_eq!(names(&stand), ["a", "a@daily", "b"]);
    client.ask(rollback(Some(daily))).unwrap();

    snap("a", "later");
    let (id, newest) = (Some(now), Some(daily));
    let with_all = DeleteRequest { with_snapshots: true, id, newest, ..DeleteRequest::of("a") };
    let refused = RequestError::NewSnapshots { name: "a".to_owned() };
    assert_eq!(client.ask(with_all.clone()), Err(refused));
    assert_eq!(names(&stand), ["a", "a@daily", "a@later", "b"]);
    client.delete_volume("a@later").unwrap();
    client.ask(with_all).unwrap();
    assert_eq!(names(&stand), ["b"]);
    check_clean(&stand.close());
}

/// Whoever asks for a growth has looked at a size that may be another by now.
#[test]
fn a_growth_cuts_nothing_off() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    let mut asked = |size_bytes| {
        let (tag, done) = hand.done();
        let name = "v".to_owned();
        let request =
            control::ResizeVolume { name, size_bytes, may_shrink: false, even_if_open: true };
        hand.client.administer(request, done);
        tag
    };
    let [larger, smaller] = [4 * MIB, 2 * MIB].map(&mut asked);
    hand.wait(larger).unwrap();
    let (name, size_bytes, asked_bytes) = ("v".to_owned(), 4 * MIB, 2 * MIB);
    let refused = RequestError::WouldShrink { name, size_bytes, asked_bytes };
    assert_eq!(hand.wait(smaller).map(drop), Err(refused));
    assert_eq!(volume.size_bytes(), 4 * MIB);
    hand.write(&volume, 3 * MIB, &fresh(1, CHUNK));
    let again = hand
        .beside(|client| {
            client.ask(control::ResizeVolume {
                name: "v".to_owned(),
                size_bytes: 4 * MIB,
                may_shrink: false,
                even_if_open: true,
            })
        })
        .unwrap();
    assert_eq!(again.size_bytes, 4 * MIB);
    assert_eq!(hand.read(&volume, 3 * MIB, CHUNK as u32), fresh(1, CHUNK));
    check_clean(&hand.close());
}

/// What was changed is said to be, whatever stands behind it in the queue.
#[test]
fn a_change_right_before_a_deletion_is_answered_as_made() {
    let name = || "v".to_owned();
    for number in 0..5 {
        let mut hand = Hand::new(&Wish::default());
        let create = NewVolume { name: name(), size_bytes: MIB, ..NewVolume::default() };
        if number > 0 {
            drop(hand.volume("v", MIB));
        }
        let (changed, done) = hand.done();
        let client = &hand.client;
        match number {
            0 => client.administer(create, done),
            1 => {
                let (size_bytes, may_shrink) = (2 * MIB, false);
                client.administer(
                    control::ResizeVolume {
                        name: name(),
                        size_bytes,
                        may_shrink,
                        even_if_open: true,
                    },
                    done,
                );
            }
            2 => {
                let quota_bytes = Some(MIB);
                client.administer(control::SetQuota { name: name(), quota_bytes }, done);
            }
            3 => client.administer(control::SetDedup { name: name(), dedup: Dedup::On }, done),
            _ => {
                let new_name = "w".to_owned();
                client.administer(control::RenameVolume { name: name(), new_name }, done);
            }
        }
        let name = if number < 4 { "v" } else { "w" };
        let (deleted, done) = hand.done();
        hand.client
            .administer(DeleteRequest { even_if_open: true, ..DeleteRequest::of(name) }, done);
        hand.wait(deleted).unwrap();
        let Ok(Reply::VolumeInfo(info)) = hand.wait(changed) else { panic!("change {number}") };
        assert_eq!(info.name, name);
        assert_eq!(info.size_bytes, if number == 1 { 2 * MIB } else { MIB });
        assert_eq!(info.quota_bytes, (number == 2).then_some(MIB));
        check_clean(&hand.close());
    }
}
