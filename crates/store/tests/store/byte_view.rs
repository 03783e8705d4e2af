//! A view of a volume holds what a plain vector of bytes would, whatever is written where.

use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::{collection, proptest, test_runner::Config};
use store::{ByteView, RequestError, Store};

use crate::scratch::in_memory;

/// Beyond a piece of a mebibyte, and not in whole chunks.
const VIEW_BYTES: u64 = (1 << 20) + 9 * 512;

/// A new volume of one store, which lives as long as the process.
fn view() -> ByteView {
    static STORE: OnceLock<Store> = OnceLock::new();
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let store = STORE.get_or_init(|| in_memory().1);
    let name = format!("v{}", NEXT.fetch_add(1, Ordering::Relaxed));
    ByteView::new(store.create_volume(&name, VIEW_BYTES).unwrap())
}

#[derive(Clone, Debug)]
enum Step {
    Write(Range<u64>, u8),
    Read(Range<u64>),
    Trim(u64),
    CursorWrite(u64, usize, u8),
}

/// Places where something special begins or ends, and a few bytes around them.
fn places() -> impl Strategy<Value = u64> {
    let special = prop_oneof![
        proptest::sample::select(vec![0, 512, 4096, 1 << 20, VIEW_BYTES]),
        0..VIEW_BYTES,
    ];
    (special, -3_i64..=3).prop_map(|(place, by)| place.saturating_add_signed(by).min(VIEW_BYTES))
}

fn ranges() -> impl Strategy<Value = Range<u64>> {
    let short = (places(), 0..1500_u64).prop_map(|(at, length)| at..(at + length).min(VIEW_BYTES));
    let long = (places(), places()).prop_map(|(a, b)| a.min(b)..a.max(b));
    prop_oneof![4 => short, 1 => long]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (ranges(), any::<u8>()).prop_map(|(range, seed)| Step::Write(range, seed)),
        4 => ranges().prop_map(Step::Read),
        1 => (0..VIEW_BYTES / 512).prop_map(Step::Trim),
        2 => (places(), 0..3000_usize, any::<u8>())
            .prop_map(|(at, length, seed)| Step::CursorWrite(at, length, seed)),
    ]
}

/// Bytes of which neighbours differ.
fn made(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

fn take_step(view: &ByteView, model: &mut [u8], step: Step) {
    match step {
        Step::Write(range, seed) => {
            let bytes = made((range.end - range.start) as usize, seed);
            view.write_at(range.start, &bytes).unwrap();
            model[range.start as usize..range.end as usize].copy_from_slice(&bytes);
        }
        Step::Read(range) => {
            let mut bytes = vec![0xee; (range.end - range.start) as usize];
            view.read_at(range.start, &mut bytes).unwrap();
            assert!(bytes == model[range.start as usize..range.end as usize], "{range:?}");
        }
        Step::Trim(sector) => {
            view.volume().trim_blocking(sector * 512, 512).unwrap();
            model[sector as usize * 512..][..512].fill(0);
        }
        Step::CursorWrite(at, length, seed) => {
            let mut cursor = view.cursor();
            assert_eq!(cursor.seek(SeekFrom::Start(at)).unwrap(), at);
            let fits = length.min((VIEW_BYTES - at) as usize);
            let bytes = made(length, seed);
            match cursor.write_all(&bytes) {
                Ok(()) => assert_eq!(fits, length),
                Err(error) => {
                    assert!(fits < length && error.kind() == ErrorKind::StorageFull, "{error}");
                }
            }
            model[at as usize..][..fits].copy_from_slice(&bytes[..fits]);
            assert_eq!(cursor.stream_position().unwrap(), at + fits as u64);
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 40, ..Config::default() })]

    #[test]
    fn a_view_holds_what_a_vector_would(steps in collection::vec(steps(), 1..24)) {
        let view = view();
        let mut model = vec![0; VIEW_BYTES as usize];
        for step in steps {
            take_step(&view, &mut model, step);
        }
        let mut all = Vec::new();
        view.cursor().read_to_end(&mut all).unwrap();
        assert!(all == model);
        view.volume().client().delete_volume(&view.volume().handle().name()).unwrap();
    }
}

#[test]
fn writers_of_one_sector_lose_nothing_of_each_other() {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 400;
    let view = view();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let view = view.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // Each has bytes of its own; their sectors, and that behind, are all writers'.
                    let length = 1 + round % 700;
                    let lane: Vec<u8> = vec![writer as u8 + 1; 1];
                    for at in (writer..length).step_by(97 * WRITERS) {
                        view.write_at(at as u64, &lane).unwrap();
                    }
                    view.write_at(1024 + (writer * 300) as u64, &[round as u8; 300]).unwrap();
                }
            });
        }
    });
    let mut bytes = vec![0; 1024 + WRITERS * 300];
    view.read_at(0, &mut bytes).unwrap();
    for writer in 0..WRITERS {
        for at in (writer..700).step_by(97 * WRITERS) {
            assert_eq!(bytes[at], writer as u8 + 1, "byte {at}");
        }
        assert_eq!(bytes[1024 + writer * 300..][..300], [(ROUNDS - 1) as u8; 300]);
    }
}

#[test]
fn what_is_not_inside_is_refused_and_changes_nothing() {
    let view = view();
    assert_eq!(view.len(), VIEW_BYTES);
    assert!(!view.is_empty());
    for at in [VIEW_BYTES - 1, VIEW_BYTES + 1, u64::MAX - 1] {
        let refused =
            RequestError::OutOfRange { offset_bytes: at, length_bytes: 2, size_bytes: VIEW_BYTES };
        assert_eq!(view.write_at(at, &[1; 2]), Err(refused.clone()));
        assert_eq!(view.read_at(at, &mut [1; 2]), Err(refused));
    }
    let mut last = [1];
    view.read_at(VIEW_BYTES - 1, &mut last).unwrap();
    assert_eq!(last, [0]);
    view.write_at(VIEW_BYTES, &[]).unwrap();
    view.read_at(VIEW_BYTES, &mut []).unwrap();
}

#[test]
fn a_cursor_seeks_as_in_a_file_and_reads_nothing_behind_the_end() {
    let mut cursor = view().cursor();
    assert_eq!(cursor.seek(SeekFrom::End(-3)).unwrap(), VIEW_BYTES - 3);
    assert_eq!(cursor.write(&[7; 10]).unwrap(), 3);
    cursor.flush().unwrap();
    assert_eq!(cursor.read(&mut [0; 4]).unwrap(), 0);
    assert_eq!(cursor.seek(SeekFrom::Current(-2)).unwrap(), VIEW_BYTES - 2);
    let mut bytes = [0; 10];
    assert_eq!(cursor.read(&mut bytes).unwrap(), 2);
    assert_eq!(bytes[..2], [7; 2]);
    let before = cursor.seek(SeekFrom::Current(-(VIEW_BYTES as i64) - 1)).unwrap_err();
    assert_eq!(before.kind(), ErrorKind::InvalidInput);
    cursor.seek(SeekFrom::Start(u64::MAX)).unwrap();
    assert_eq!(cursor.read(&mut bytes).unwrap(), 0);
    assert_eq!(cursor.write(&bytes).unwrap_err().kind(), ErrorKind::StorageFull);
}
