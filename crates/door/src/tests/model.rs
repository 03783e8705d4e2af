//! Random requests against a plain model of a volume. Changes are in flight together, and reads
//! are; but no read is beside a change.

use std::collections::BTreeMap;
use std::thread;

use engine::Extent;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::fake::{Answer, FakeReader, MIB, connection, finish, running, serve, writer};
use crate::{Admission, Errno, Operation, Request, check_range};

const SIZE_BYTES: u64 = MIB;
const SECTOR: u64 = 512;

fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::Read),
        5 => Just(Operation::Write),
        1 => Just(Operation::Flush),
        1 => Just(Operation::Trim),
        1 => Just(Operation::WriteZeroes),
        1 => Just(Operation::Prefetch),
        1 => (1_u32..5).prop_map(|extents_max| Operation::Extents { extents_max }),
    ]
}

/// An operation, where, how much, what, and whether durably.
type Step = (Operation, u64, u32, u8, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sectors = SIZE_BYTES / SECTOR;
    let at = prop_oneof![0..sectors, 0..64_u64, sectors - 20..sectors + 20];
    let length = prop_oneof![0..20_u32, Just(8), 0..400_u32];
    let beside = || prop_oneof![2 => Just(0), 1 => 0..SECTOR as u32];
    let at = (at, beside()).prop_map(|(sector, more)| sector * SECTOR + u64::from(more));
    let length = (length, beside()).prop_map(|(sectors, more)| sectors * SECTOR as u32 + more);
    proptest::collection::vec((operations(), at, length, any::<u8>(), any::<bool>()), 1..120)
}

/// What a request must be answered with.
enum Expected {
    Exactly(Answer),
    /// Runs of a range of the volume, as it was then.
    Runs(Vec<u8>),
}

/// A volume as a list of bytes.
struct Model(Vec<u8>);

impl Model {
    fn serve(&mut self, request: &Request<u64>, fill: u8) -> Expected {
        let start = usize::try_from(request.offset_bytes).unwrap();
        let range = start..start + request.length_bytes as usize;
        Expected::Exactly(match request.operation {
            Operation::Read if range.is_empty() => Answer::Done,
            Operation::Read => Answer::Bytes(self.0[range].to_vec()),
            Operation::Extents { .. } if !range.is_empty() => {
                return Expected::Runs(self.0[range].to_vec());
            }
            Operation::Write => {
                self.0[range].fill(fill);
                Answer::Done
            }
            Operation::Trim | Operation::WriteZeroes => {
                self.0[range].fill(0);
                Answer::Done
            }
            _ => Answer::Done,
        })
    }
}

/// Runs are in order and none is beyond the range; where there is a hole there are zeros.
fn assert_runs(extents: &[Extent], bytes: &[u8], extents_max: u32) {
    assert!(!extents.is_empty() && extents.len() <= extents_max as usize);
    let mut at = 0;
    for extent in extents {
        let end = at + usize::try_from(extent.length_bytes).unwrap();
        assert!(end <= bytes.len(), "{extents:?} of {}", bytes.len());
        assert!(!extent.hole || bytes[at..end].iter().all(|byte| *byte == 0), "{extents:?}");
        at = end;
    }
}

fn run(steps: &[Step]) {
    let (store, volume) = running(SIZE_BYTES);
    let client = store.client().clone();
    let connection = connection();
    let writer = writer(&connection);
    let mut reader = FakeReader::new(&connection);
    let mut admission = Admission::new(&client, volume, connection.clone());
    let mut model = Model(vec![0; usize::try_from(SIZE_BYTES).unwrap()]);
    let mut expected = BTreeMap::new();
    let mut last_read = false;
    for (tag, (operation, at, length, fill, durable)) in (0..).zip(steps) {
        let flushes = *operation == Operation::Flush;
        let (offset_bytes, length_bytes) = if flushes { (0, 0) } else { (*at, *length) };
        let (operation, durable) = (*operation, *durable);
        let request = Request { operation, offset_bytes, length_bytes, durable, tag };
        match check_range(&request, admission.volume().size_bytes()) {
            Ok(()) => {
                // A read beside a change that is not answered yet may see it, or not.
                let reads = matches!(operation, Operation::Read | Operation::Extents { .. });
                while reads != last_read && connection.is_busy() {
                    thread::yield_now();
                }
                last_read = reads;
                let payload = vec![*fill; request.payload_bytes()];
                serve(&mut admission, &mut reader, request, &payload).unwrap();
                expected.insert(tag, (operation, model.serve(&request, *fill)));
            }
            Err(refusal) => {
                let end = offset_bytes + u64::from(length_bytes);
                assert!(end > SIZE_BYTES, "{request:?}");
                let grows = matches!(operation, Operation::Write | Operation::WriteZeroes);
                let errno = if grows { Errno::NoSpace } else { Errno::Invalid };
                assert_eq!(refusal.errno, errno);
            }
        }
    }
    let answers = finish(&connection, &mut reader, writer);
    assert_eq!(answers.len(), expected.len(), "each is answered once");
    for (tag, answer) in answers {
        let (operation, expected) = expected.remove(&tag).expect("one answer to each");
        match (expected, operation, answer) {
            (Expected::Exactly(expected), _, answer) => {
                assert!(answer == expected, "{operation:?}")
            }
            (Expected::Runs(bytes), Operation::Extents { extents_max }, Answer::Extents(runs)) => {
                assert_runs(&runs, &bytes, extents_max);
            }
            (_, _, answer) => panic!("{operation:?} was answered with {answer:?}"),
        }
    }
    let mut held = vec![0; model.0.len()];
    client.read_at(admission.volume(), 0, &mut held).unwrap();
    assert!(held == model.0);
    drop(admission);
    store.close().unwrap();
}

proptest! {
    #![proptest_config(Config::with_cases(24))]

    #[test]
    fn whatever_is_asked_a_volume_is_what_a_list_of_bytes_would_be(steps in steps()) {
        run(&steps);
    }
}
