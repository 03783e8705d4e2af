//! A host with little room, asked for more than it has.

use std::time::Duration;

use proptest::prelude::proptest;

use super::*;

/// Containers that a medium has for a zone, beside what it has given already.
#[derive(Clone, Default)]
struct Host {
    room: Arc<Mutex<u64>>,
    given: Arc<Mutex<u64>>,
}

impl Host {
    fn of(containers: u64) -> Self {
        let host = Self::default();
        host.make_room(containers);
        host
    }

    fn make_room(&self, containers: u64) {
        *self.room.lock().unwrap() += containers * UNIT_BYTES;
    }
}

impl Medium for Host {
    /// Gives a part of what it cannot give whole, as ext4 does.
    fn allocate(&self, stretch: Range<u64>) -> io::Result<()> {
        let (mut room, mut given) = (self.room.lock().unwrap(), self.given.lock().unwrap());
        let new_bytes = stretch.end.saturating_sub(*given);
        let taken_bytes = new_bytes.min(*room);
        assert!(stretch.start <= *given, "a hole would be left");
        *room -= taken_bytes;
        *given += taken_bytes;
        if taken_bytes == new_bytes { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(*self.room.lock().unwrap())
    }

    fn taken_bytes(&self) -> io::Result<u64> {
        Ok(*self.given.lock().unwrap())
    }

    fn number(&self) -> u64 {
        7
    }
}

fn start(hosts: &[&Host], containers: u64) -> (AllocationAhead, Doorbell) {
    let doorbell = Doorbell::new().unwrap();
    let zone = |(number, host): (u16, &&Host)| SparseZone {
        number,
        allocated_bytes: 0,
        length_bytes: containers * UNIT_BYTES,
        medium: Box::new((*host).clone()),
    };
    let zones = (0..).zip(hosts).map(zone).collect();
    (AllocationAhead::start(zones, &doorbell).unwrap(), doorbell)
}

/// Asks, and waits for the answer.
fn ask(ahead: &AllocationAhead, doorbell: &Doorbell, containers: u64) -> ZoneAllocation {
    ahead.allocate(0, containers * UNIT_BYTES);
    let mut seen = 0;
    loop {
        if let Some(zones) = ahead.changed(&mut seen)
            && !zones[0].is_under_way
        {
            return zones[0].clone();
        }
        let _ = doorbell.wait(Some(1));
    }
}

#[test]
fn what_is_asked_for_comes_slice_by_slice() {
    let host = Host::of(200);
    let (ahead, doorbell) = start(&[&host], 300);
    let zone = ask(&ahead, &doorbell, 150);
    assert_eq!((zone.allocated_bytes, zone.refusal), (150 * UNIT_BYTES, None));
    assert_eq!(ahead.allocated_bytes(0), Some(150 * UNIT_BYTES));
    assert_eq!(ahead.obtainable_bytes(), 50 * UNIT_BYTES);
    assert_eq!((ahead.allocated_bytes(1), ahead.taken_bytes(1)), (None, None));
    let mut seen = 0;
    assert!(ahead.changed(&mut seen).is_some() && ahead.changed(&mut seen).is_none());
}

#[test]
fn a_full_medium_gives_its_last_container_and_is_asked_again() {
    let host = Host::of(5);
    let (ahead, doorbell) = start(&[&host], 300);
    let zone = ask(&ahead, &doorbell, 100);
    assert_eq!(zone.allocated_bytes, 5 * UNIT_BYTES);
    assert!(zone.refusal.is_some() && ahead.obtainable_bytes() == 0);
    host.make_room(400);
    let zone = ask(&ahead, &doorbell, 100);
    assert_eq!((zone.allocated_bytes, zone.refusal), (100 * UNIT_BYTES, None));
    assert_eq!(ahead.obtainable_bytes(), 200 * UNIT_BYTES);
}

#[test]
fn zones_of_one_medium_share_what_it_has_free() {
    let (one, other) = (Host::of(5), Host::of(5));
    let (ahead, _) = start(&[&one, &other], 300);
    ahead.look();
    assert_eq!(ahead.obtainable_bytes(), 5 * UNIT_BYTES);
    one.make_room(1000);
    ahead.look();
    while ahead.obtainable_bytes() == 5 * UNIT_BYTES {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(ahead.obtainable_bytes(), 600 * UNIT_BYTES);
}

proptest! {
    /// What counts is what was given, and all that there was room for.
    #[test]
    fn no_more_counts_than_was_given(
        asks in proptest::collection::vec((0_u64..300, 0_u64..80), 1..12),
    ) {
        let host = Host::default();
        let (ahead, doorbell) = start(&[&host], 300);
        let (mut model, mut room) = (0, 0);
        for (wanted, more) in asks {
            host.make_room(more);
            room += more;
            let new = wanted.saturating_sub(model).min(room);
            (model, room) = (model + new, room - new);
            let zone = ask(&ahead, &doorbell, wanted);
            assert_eq!(zone.allocated_bytes, model * UNIT_BYTES);
            assert_eq!(*host.given.lock().unwrap(), model * UNIT_BYTES);
            assert_eq!(*host.room.lock().unwrap(), room * UNIT_BYTES);
        }
    }
}
