//! Attempts, their bound, and what passes through.

use super::{RetryPolicy, RetryingDisk};
use crate::buffer::AlignedBuf;
use crate::doorbell::Doorbell;
use crate::error::ErrorClass;
use crate::io::{Completion, Disk, Io, IoKind};
use crate::memory::{Fault, MemoryDisk};
use format::units::Zone;

const ZONE: Zone = Zone::Tables;
const QUICK: RetryPolicy = RetryPolicy { attempts_max: 5, first_delay_ms: 1, delay_ms_max: 4 };

fn retrying(policy: RetryPolicy) -> (MemoryDisk, Doorbell, RetryingDisk) {
    let doorbell = Doorbell::new().unwrap();
    let memory = MemoryDisk::new(&[(ZONE, 1 << 20)], 5);
    memory.set_doorbell(&doorbell);
    let disk = RetryingDisk::new(Box::new(memory.clone()), policy, &doorbell);
    (memory, doorbell, disk)
}

fn refuse(memory: &MemoryDisk, class: ErrorClass) {
    memory.inject(Fault::Refusal { zone: ZONE, class });
}

fn write(tag: u64, byte: u8) -> Io {
    let mut buf = AlignedBuf::new_zeroed(4096);
    buf.fill(byte);
    let kind = IoKind::Write { buf: buf.into(), durable: tag.is_multiple_of(2) };
    Io { zone: ZONE, offset_bytes: tag * 4096, kind, tag }
}

fn read(tag: u64) -> Io {
    let kind = IoKind::Read { buf: AlignedBuf::new_zeroed(4096) };
    Io { zone: ZONE, offset_bytes: tag * 4096, kind, tag }
}

fn run(disk: &mut dyn Disk, io: Io) -> Completion {
    disk.submit(io);
    let mut done = Vec::new();
    disk.wait(&mut done);
    done.pop().unwrap()
}

#[test]
fn an_operation_that_fails_for_a_while_succeeds_in_the_end() {
    let forever = RetryPolicy { attempts_max: u32::MAX, ..QUICK };
    let (memory, doorbell, mut disk) = retrying(forever);
    refuse(&memory, ErrorClass::Transient);
    (0..10).for_each(|tag| disk.submit(write(tag, 7)));
    disk.submit(Io { zone: ZONE, offset_bytes: 0, kind: IoKind::Sync, tag: 10 });
    let mut done = Vec::new();
    while disk.failures.len() < 11 || disk.failures.values().any(|&failures| failures < 3) {
        assert!(doorbell.wait(Some(60_000)), "an attempt that is due did not ring");
        disk.poll(&mut done);
    }
    assert!(done.is_empty());
    assert_eq!(disk.in_flight(), 11);
    memory.heal();
    while disk.in_flight() > 0 {
        disk.wait(&mut done);
    }
    assert_eq!(done.len(), 11);
    assert!(done.iter().all(|done| done.result.is_ok()));
    assert!(disk.failures.is_empty());
    assert!(memory.peek(ZONE, 0, 10 * 4096).iter().all(|&byte| byte == 7));
}

#[test]
fn attempts_end_with_a_permanent_error_and_the_operation_comes_back() {
    let (memory, _, mut disk) = retrying(QUICK);
    refuse(&memory, ErrorClass::Transient);
    for (io, attempts) in [(write(1, 7), 5), (read(2), 5)] {
        let (writes, reads) = (memory.counters().writes, memory.counters().reads);
        let done = run(&mut disk, io);
        let error = done.result.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Permanent, "{error}");
        assert!(error.to_string().ends_with("it failed 5 times"), "{error}");
        let made = memory.counters().writes - writes + memory.counters().reads - reads;
        assert_eq!(made, attempts);
        assert!(done.failed.is_some());
        assert!(disk.failures.is_empty(), "the next of this tag begins anew");
    }
}

#[test]
fn other_classes_pass_at_once() {
    for class in [ErrorClass::Permanent, ErrorClass::Fenced, ErrorClass::NoSpace] {
        let (memory, _, mut disk) = retrying(QUICK);
        refuse(&memory, class);
        let done = run(&mut disk, write(1, 7));
        assert_eq!(done.result.unwrap_err().class(), class);
        assert_eq!(memory.counters().writes, 1);
    }
}

#[test]
fn pauses_double_up_to_the_longest() {
    let policy = RetryPolicy { attempts_max: 9, first_delay_ms: 10, delay_ms_max: 35 };
    let delays = [1, 2, 3, 4, 200].map(|failures| policy.delay_after(failures).as_millis());
    assert_eq!(delays, [10, 20, 35, 35, 35]);
}
