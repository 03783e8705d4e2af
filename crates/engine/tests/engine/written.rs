//! What is said to be written to the device is what was written to it, to the byte.

use disk::MemoryDisk;
use engine::Written;

use crate::stand::{CHUNK, Dice, MIB, Wish, fresh};

fn written_to(disk: &MemoryDisk) -> u64 {
    disk.counters().bytes_written
}

/// The sum of all kinds.
fn kinds(written: &Written) -> u64 {
    let data = written.new_frame_bytes + written.moved_frame_bytes + written.container_bytes;
    data + written.table_bytes + written.journal_bytes + written.superblock_bytes
}

#[test]
fn every_byte_to_the_device_is_counted_by_its_kind() {
    let wish = Wish { capacities: vec![64 * MIB], ..Wish::default() };
    let disk = wish.disk();
    let before = written_to(&disk);
    let stand = wish.open(disk.clone());
    let opening = stand.stats().written;
    assert_eq!(opening.device_bytes, written_to(&disk) - before);
    assert!(opening.journal_bytes > 0 && opening.client_bytes == 0, "{opening:?}");

    let volume = stand.volume("v", 1 << 30);
    let mut dice = Dice(1);
    let mut clients_bytes = 0;
    // Overwrites until collection has moved frames, checkpoints and duplicates among them.
    for round in 0..14_000 {
        let bytes = fresh(dice.below(12_000), 4 * CHUNK);
        stand.write(&volume, dice.below(2500) * 4 * CHUNK, &bytes);
        clients_bytes += bytes.len() as u64;
        if round % 500 == 0 {
            stand.flush();
        }
    }
    stand.write(&volume, 0, &vec![0; CHUNK as usize]);
    clients_bytes += CHUNK;
    stand.flush();
    stand.wait_until("rest", |stats| stats.written.device_bytes == written_to(&disk) - before);
    let stats = stand.stats();
    let written = &stats.written;
    assert_eq!(written.client_bytes, clients_bytes);
    assert_eq!(kinds(written), written.device_bytes, "{written:?}");
    let explained = written.duplicate_bytes + written.dropped_bytes;
    let new_bytes = stats.counters.chunks_unique * CHUNK;
    assert_eq!(explained + new_bytes, clients_bytes, "{stats:?}");
    // Noise is stored as it is, each chunk with its header.
    assert_eq!(written.new_frame_bytes, stats.counters.chunks_unique * (CHUNK + 16));
    assert!(written.duplicate_bytes > 0 && written.moved_frame_bytes > 0, "{written:?}");
    assert!(written.table_bytes > 0 && written.superblock_bytes > 0, "{written:?}");
    assert!(written.amplification > 0.5, "{written:?}");
    stand.close();
}
