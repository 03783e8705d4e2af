//! A data zone is emptied and taken out, while clients write and whenever the power goes.

use disk::{Loss, MemoryDisk};
use engine::{EvacuateZone, KeepZone, ListZones, RequestError, RetireZone, Zone, ZoneState};
use format::superblock::Geometry;
use format::units::CONTAINER_BYTES;

use crate::stand::{CHUNK, GIB, Looker, MIB, Opens, Stand, Wish, check_clean, fresh, put};

const GOING: u16 = 0;

fn two_zones() -> Wish {
    Wish { capacities: vec![64 * MIB, 128 * MIB], ..Wish::default() }
}

fn geometry_in(disk: &MemoryDisk, block: u64) -> Geometry {
    Geometry::decode(&disk.peek(Zone::Superblock, block * 4096, 4096)).unwrap()
}

/// Evacuates until nothing is left; how many containers that freed.
fn empty(stand: &Stand, zone: u16) -> u64 {
    let mut freed = 0;
    loop {
        let step = stand.client.ask(EvacuateZone { zone }).unwrap();
        let Some(collected) = step.collected else {
            assert_eq!(step.containers_used, 0, "{step:?}");
            return freed;
        };
        assert!(collected.freed, "{collected:?}");
        freed += 1;
    }
}

fn state_of(stand: &Stand, zone: u16) -> ZoneState {
    stand.client.ask(ListZones {}).unwrap()[usize::from(zone)].state
}

/// What is in a zone that is gone reads as nothing of this store.
fn overwrite(disk: &MemoryDisk, zone: Zone, length_bytes: u64) {
    put(disk, zone, &vec![0xee; length_bytes as usize]);
}

#[test]
fn a_zone_is_emptied_and_taken_out_and_nothing_of_it_is_read_again() {
    let wish = two_zones();
    let stand = wish.stand();
    let volume = stand.volume("v", GIB);
    for number in 0..60 {
        stand.write(&volume, number * MIB, &fresh(number, MIB));
    }
    stand.flush();
    let zones = stand.client.ask(ListZones {}).unwrap();
    assert!(zones[0].live_bytes > 20 * MIB && zones[1].live_bytes > 20 * MIB, "{zones:?}");
    assert!(empty(&stand, GOING) >= 6);
    assert_eq!(state_of(&stand, GOING), ZoneState::Leaving);
    let before = stand.client.geometry().unwrap();
    let after = stand.client.ask(RetireZone { zone: GOING }).unwrap();
    assert_eq!(state_of(&stand, GOING), ZoneState::Gone);
    assert_eq!(after.capacity_bytes() + 64 * MIB, before.capacity_bytes());
    assert_eq!(after.containers_total(), before.containers_total());
    overwrite(&stand.disk, Zone::Data(GOING), 64 * MIB);
    // Clients go on, and nothing of them comes to lie there.
    for number in 60..90 {
        stand.write(&volume, number * MIB, &fresh(number, MIB));
    }
    stand.flush();
    let disk = stand.kill(1);
    assert!(geometry_in(&disk, 0) == after && geometry_in(&disk, 3) == after);
    let stand = wish.open(disk);
    let volume = stand.client.volume("v").unwrap();
    for number in 0..90 {
        assert!(stand.read(&volume, number * MIB, MIB) == fresh(number, MIB), "MiB {number}");
    }
    let disk = stand.close();
    let there = disk.peek(Zone::Data(GOING), 0, (64 * MIB) as usize);
    assert!(there.iter().all(|&byte| byte == 0xee), "something was written to a zone that is gone");
    check_clean(&disk);
}

#[test]
fn a_zone_that_is_kept_is_used_again() {
    let stand = two_zones().stand();
    let volume = stand.volume("v", GIB);
    stand.write(&volume, 0, &fresh(1, 32 * MIB));
    stand.flush();
    let free_bytes = stand.stats().free_bytes;
    stand.client.ask(EvacuateZone { zone: GOING }).unwrap();
    assert!(stand.stats().free_bytes < free_bytes - 32 * MIB);
    let early = stand.client.ask(RetireZone { zone: GOING }).unwrap_err();
    assert!(matches!(&early, RequestError::CannotRemove { reason } if reason.contains("hold")));
    stand.client.ask(KeepZone { zone: GOING }).unwrap();
    assert_eq!(state_of(&stand, GOING), ZoneState::InUse);
    stand.wait_until("all room", |stats| {
        stats.free_bytes + 2 * u64::from(CONTAINER_BYTES) >= free_bytes
    });
    check_clean(&stand.close());
}

#[test]
fn what_cannot_be_taken_out_is_refused() {
    let stand = two_zones().stand();
    let refused = |zone| stand.client.ask(EvacuateZone { zone }).unwrap_err();
    let reason = |zone| match refused(zone) {
        RequestError::CannotRemove { reason } => reason,
        other => panic!("{other:?}"),
    };
    let volume = stand.volume("v", GIB);
    stand.write(&volume, 0, &fresh(1, 100 * MIB));
    stand.flush();
    let found = refused(1);
    let is_full = matches!(&found, RequestError::NoRoomElsewhere { used_bytes, room_bytes }
        if used_bytes > room_bytes);
    assert!(is_full, "{found:?}");
    assert!(reason(2).contains("no such data file"));
    stand.trim(&volume, 0, 96 * MIB);
    stand.flush();
    stand.client.ask(EvacuateZone { zone: GOING }).unwrap();
    assert!(reason(1).contains("data.0 is being removed"));
    empty(&stand, GOING);
    stand.client.ask(RetireZone { zone: GOING }).unwrap();
    assert!(reason(GOING).contains("no such data file"));
    assert_eq!(refused(1), RequestError::OnlyDataFile);
    check_clean(&stand.close());
}

/// At each write and sync from the first step to the last the power goes, in every way that it
/// can: what was flushed is there, and the removal begins anew and comes to its end.
#[test]
fn a_removal_that_is_cut_loses_nothing_and_can_begin_anew() {
    let wish = Wish { capacities: vec![32 * MIB, 64 * MIB], ..Wish::default() };
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(7, 16 * CHUNK));
    stand.write(&volume, 8 * MIB, &fresh(9, 8 * MIB));
    let disk = stand.close();
    let (looker, left) = Looker::new(disk.clone());
    let (mut engine, client, ..) = wish.load_through(&disk, Box::new(looker)).unwrap();
    let running = std::thread::spawn(move || {
        while !engine.is_closed() {
            if !engine.step() {
                std::thread::yield_now();
                engine.tick();
            }
        }
    });
    while client.ask(EvacuateZone { zone: GOING }).unwrap().collected.is_some() {}
    let gone = client.ask(RetireZone { zone: GOING }).unwrap();
    client.close().unwrap();
    running.join().unwrap();
    let left = std::mem::take(&mut *left.lock().unwrap());
    let (mut there, mut taken_out) = (0, 0);
    for (number, disk) in left.into_iter().enumerate().step_by(7) {
        if geometry_in(&disk, 0) == gone {
            taken_out += 1;
            overwrite(&disk, Zone::Data(GOING), 32 * MIB);
        } else {
            there += 1;
        }
        let stand = wish.open(disk);
        let volume = stand.client.volume("v").unwrap();
        assert!(stand.read(&volume, 8 * MIB, 8 * MIB) == fresh(9, 8 * MIB), "cut {number}");
        if state_of(&stand, GOING) == ZoneState::InUse {
            empty(&stand, GOING);
            stand.client.ask(RetireZone { zone: GOING }).unwrap();
        }
        wish.use_again(stand.close());
    }
    assert!(there > 3 && taken_out > 0, "{there} {taken_out}");
    let _ = Loss::All;
}
