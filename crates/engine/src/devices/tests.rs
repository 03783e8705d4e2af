//! Syncs of one zone behind each other, and writes that are promised before they are made.

use disk::{AlignedBuf, MemoryDisk};
use format::units::{ContainerId, Zone};

use super::{Devices, Purpose};

#[test]
fn a_promised_write_is_waited_for_until_it_has_ended_or_is_given_up() {
    let disk = MemoryDisk::new(&[(Zone::Data(0), 1 << 20)], 1);
    let mut devices = Devices::new(Box::new(disk.clone()));
    let before = devices.mark();
    let [kept, lost] = [0, 1].map(|id| devices.promise(Purpose::Container(ContainerId(id))));
    let mark = devices.mark();
    let waits = |devices: &Devices| !devices.written_before(mark) && devices.in_flight() > 0;
    assert!(waits(&devices) && devices.written_before(before));
    devices.write_promised(kept, Zone::Data(0), 4096, AlignedBuf::new_zeroed(4096).into());
    let mut ended = Vec::new();
    while ended.is_empty() {
        assert!(waits(&devices));
        devices.poll(&mut ended);
    }
    assert!(matches!(ended[0].purpose, Purpose::Container(ContainerId(0))));
    assert_eq!(devices.written().data, 4096);
    assert!(waits(&devices), "one more was promised");
    devices.give_up_promised(lost);
    assert!(devices.written_before(mark) && devices.in_flight() == 0);
}

#[test]
fn a_zone_is_synced_once_at_a_time() {
    for seed in 0..20 {
        let disk = MemoryDisk::new(&[(Zone::Journal, 1 << 20), (Zone::Tables, 1 << 20)], seed);
        let mut devices = Devices::new(Box::new(disk.clone()));
        devices.sync(Zone::Journal, Purpose::FlushSync);
        devices.sync(Zone::Journal, Purpose::ScrubSync);
        devices.sync(Zone::Tables, Purpose::TablesSync);
        devices.sync(Zone::Journal, Purpose::RootSync);
        assert_eq!((disk.counters().syncs, devices.in_flight()), (2, 4));
        let mut ended = Vec::new();
        while devices.in_flight() > 0 {
            devices.poll(&mut ended);
            let behind = ended.iter().filter(|io| io.zone == Zone::Journal).count() as u64;
            assert!(disk.counters().syncs <= 2 + behind);
        }
        let journal = ended.iter().filter(|io| io.zone == Zone::Journal);
        let order: Vec<_> = journal.map(|io| format!("{:?}", io.purpose)).collect();
        assert_eq!(order, ["FlushSync", "ScrubSync", "RootSync"]);
    }
}
