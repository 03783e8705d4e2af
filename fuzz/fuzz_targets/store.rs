//! A store whose structures say what nobody wrote, with checksums that are right: it is refused, or
//! it opens; checks, repairs, scrubs, reads and changes come to an end without a panic.
//!
//! What is read may be wrong then: no checksum can know better. Positions of scrubs are the input's
//! as well, as `scrub.json` and the control socket may hold any.
#![no_main]

use disk::MemoryDisk;
use engine::{
    CollectRequest, DeleteRequest, Opener, ScrubPosition, ScrubRequest, SnapshotRequest, control,
};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::canary;
use tamis_fuzz::input::Input;
use tamis_fuzz::store::{Running, Sample, keep_checksum, put, samples};

const HITS_MAX: u8 = 4;
const SCRUB_STEPS_MAX: usize = 60;
/// A container each: there are fewer.
const COLLECT_STEPS_MAX: usize = 16;
const READ_BYTES: u32 = 64 << 10;

/// Changes bytes of a structure; mostly so that no checksum tells.
fn hit(sample: &Sample, disk: &MemoryDisk, input: &mut Input<'_>) {
    let structure = &sample.structures[aim(sample, input)];
    let length_bytes = structure.length_bytes as usize;
    let before = disk.peek(structure.zone, structure.offset_bytes, length_bytes);
    let mut bytes = before.clone();
    let start = input.below(length_bytes);
    let count = usize::from(input.byte() % 16).min(length_bytes - start);
    match input.byte() % 4 {
        0 => bytes[start..start + count].fill(0xff),
        1 => bytes[start..start + count].fill(0),
        _ => {
            let given = input.bytes(count);
            bytes[start..start + given.len()].copy_from_slice(given);
        }
    }
    let patch_at = match input.byte() {
        0..8 => None,
        // Far behind what changed, where most structures are empty.
        8..128 => length_bytes.checked_sub(4),
        _ => Some(input.below(length_bytes)),
    };
    if let Some(patch_at) = patch_at {
        keep_checksum(&mut bytes, &before, patch_at);
    }
    put(disk, structure.zone, structure.offset_bytes, &bytes);
}

/// A structure, each kind as likely as the others.
fn aim(sample: &Sample, input: &mut Input<'_>) -> usize {
    let mut kinds: Vec<&str> = sample.structures.iter().map(|one| one.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kind = kinds[usize::from(input.byte()) % kinds.len()];
    let places = sample.structures.iter().enumerate();
    let of_kind: Vec<usize> =
        places.filter(|(_, one)| one.kind == kind).map(|(at, _)| at).collect();
    of_kind[input.below(of_kind.len())]
}

fn position(input: &mut Input<'_>) -> ScrubPosition {
    let index = u64::from(input.word());
    let far = input.byte();
    let index = if far & 1 == 0 { index } else { u64::MAX - index };
    let volume = u32::from(far >> 4);
    match input.byte() % 4 {
        0 => ScrubPosition::Superblock,
        1 => ScrubPosition::Tables {
            tree: if far & 2 == 0 { volume } else { 0x8000_0000 | volume },
            level: (far & 4 != 0).then(|| input.byte()),
            index,
        },
        2 => ScrubPosition::Containers { container: index as u32 },
        _ => ScrubPosition::Losses { volume, leaf: index },
    }
}

fn scrub(life: &mut Running, input: &mut Input<'_>) {
    let fingerprints = input.byte().is_multiple_of(2);
    let mut position = position(input);
    for _ in 0..SCRUB_STEPS_MAX {
        let request = ScrubRequest { position, fingerprints };
        let Ok(step) = life.administer(request) else { return };
        let Some(next) = step.next else { return };
        assert!(next != position, "a scrub stays at {next:?}");
        position = next;
    }
}

fn snapshot(life: &mut Running, volume: String) {
    let name = "now".to_owned();
    let request = SnapshotRequest { volumes: vec![volume], name, taken_unix_s: 1 };
    // Names of volumes that nobody made may be as long as a snapshot's.
    let _ = life.administer(request);
}

fn collect(life: &mut Running) {
    let mut position = None;
    for _ in 0..COLLECT_STEPS_MAX {
        let request = CollectRequest { position, recompress: None };
        let Ok(step) = life.administer(request) else { return };
        position = step.next;
        if position.is_none() {
            return;
        }
    }
}

/// Asks everything of a store that opens; else the sentence with which it does not.
fn live(disk: &MemoryDisk, input: &mut Input<'_>) -> Result<(), String> {
    let mut life = Running::open(disk)?;
    scrub(&mut life, input);
    if let Ok(volumes) = life.administer(control::ListVolumes::all()) {
        for info in volumes.into_iter().take(4) {
            let name = info.name;
            let opener = Opener::new("a fuzzer", 0);
            let Ok(volume) = life.administer(control::Open { name, opener }) else { continue };
            let last = volume.size_bytes().saturating_sub(u64::from(READ_BYTES));
            for offset_bytes in [0, 9000 * 4096, last] {
                let offset_bytes = offset_bytes.min(last) / 512 * 512;
                let length_bytes = (volume.size_bytes() - offset_bytes).min(READ_BYTES.into());
                let answer = life.ask(|client, done| {
                    client.read(&volume, offset_bytes, length_bytes as u32, done);
                });
                if let Ok(pieces) = answer.expect("a read is answered") {
                    let _ = pieces.assemble(&mut vec![0; pieces.length_bytes()]);
                }
            }
            // In the middle of a snapshot's leaf: what is stored, and what is not.
            life.overwrite(&volume, 7, 40);
            snapshot(&mut life, volume.name());
            life.overwrite(&volume, 8, 1 << 40 | u64::from(input.byte()));
            let trimmed = life.ask(|client, done| client.trim(&volume, 4096, 1 << 20, false, done));
            assert!(trimmed.is_some(), "a trim is answered");
        }
    }
    assert!(life.ask(|client, done| client.flush(done)).is_some(), "a flush is answered");
    collect(&mut life);
    let delete = DeleteRequest { with_snapshots: true, ..DeleteRequest::of("b") };
    let _ = life.administer(delete);
    life.idle();
    let _ = life.administer(control::Close {});
    Ok(())
}

fuzz_target!(init: canary::release(), |input: &[u8]| {
    let mut input = Input::new(input);
    let sample = &samples()[usize::from(input.byte() % 2)];
    let disk = sample.disk.left_by_kill(1);
    for _ in 0..input.byte() % (HITS_MAX + 1) {
        hit(sample, &disk, &mut input);
    }
    match input.byte() % 4 {
        0 => drop(engine::check(Box::new(disk), &mut |_| {})),
        1 => {
            if engine::repair(Box::new(disk.clone()), &mut |_| {}).is_ok() {
                let lived = live(&disk, &mut input);
                assert!(lived.is_ok(), "a repaired store does not open: {lived:?}");
            }
        }
        _ => {
            let _ = live(&disk, &mut input);
        }
    }
});
