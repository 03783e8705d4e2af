use traces::{Content, Direction, Grain, Workload, WorkloadKind};

use super::{Compared, Truth};

fn kept(grain: Grain) -> Truth {
    Truth::new(None, Content::new(50), 4096, grain)
}

/// Bytes that differ for each number, so many blocks of them.
fn bytes(numbers: &[u8]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| vec![number; 4096]).collect()
}

fn read(truth: &Truth, offset_bytes: u64, found: &[u8]) -> Compared {
    let keys = truth.keys(offset_bytes, found.len() as u64);
    truth.compare(offset_bytes, found, &keys)
}

#[test]
fn what_was_written_last_is_right_and_all_else_is_wrong() {
    let mut truth = kept(Grain::Block);
    truth.write(8192, &bytes(&[1, 2, 3]));
    truth.write(12288, &bytes(&[9]));
    assert_eq!(read(&truth, 4096, &bytes(&[0, 1, 9, 3, 0])).right_bytes, 5 * 4096);
    let wrong = read(&truth, 4096, &bytes(&[0, 1, 2, 3, 4]));
    assert_eq!((wrong.right_bytes, wrong.wrong_bytes), (3 * 4096, 2 * 4096));
    assert_eq!(wrong.first_wrong_bytes, Some(12288));
    let mut one_bit = bytes(&[1]);
    one_bit[4095] ^= 1;
    assert_eq!(read(&truth, 8192, &one_bit).wrong_bytes, 4096);
}

#[test]
fn a_block_that_is_written_in_part_is_judged_by_sectors_or_not_at_all() {
    let mut blocks = kept(Grain::Block);
    blocks.write(0, &bytes(&[1]));
    blocks.write(512, &[5; 512]);
    assert_eq!(read(&blocks, 0, &bytes(&[7])), Compared::default());
    assert_eq!(blocks.mapped_unique_chunks(4096), None);
    let mut sectors = kept(Grain::Sector);
    sectors.write(0, &bytes(&[1]));
    sectors.write(512, &[5; 512]);
    let mut expected = bytes(&[1]);
    expected[512..1024].fill(5);
    assert_eq!(read(&sectors, 0, &expected).right_bytes, 4096);
    assert_eq!(read(&sectors, 0, &bytes(&[1])).wrong_bytes, 512);
    assert_eq!(sectors.mapped_unique_chunks(4096), Some(1));
}

#[test]
fn chunks_are_counted_by_what_is_mapped_now() {
    let mut truth = kept(Grain::Block);
    truth.write(0, &bytes(&[1, 2, 1, 2, 0, 3]));
    truth.write(40960, &bytes(&[1]));
    assert_eq!(truth.mapped_unique_chunks(4096), Some(3));
    // (1, 2) twice, (0, 3), (1, nothing).
    assert_eq!(truth.mapped_unique_chunks(8192), Some(3));
    let share = truth.duplicate_share().unwrap();
    assert!((share - 0.5).abs() < 1e-9, "{share}");
    truth.write(20480, &bytes(&[0]));
    assert_eq!(truth.mapped_unique_chunks(4096), Some(2));
    assert_eq!(truth.mapped_unique_chunks(8192), Some(2));
    assert_eq!(truth.written_ranges(8192), [0..8192, 8192..16384, 16384..24576, 40960..45056]);
}

#[test]
fn a_workload_is_judged_without_memory_as_with_it() {
    let workload = Workload::new(WorkloadKind::ReadMixed, 4001, 5);
    let content = Content::new(50);
    let mut made = Truth::new(Some(&workload), content, 4096, Grain::Block);
    let mut kept = kept(Grain::Block);
    for number in 0..workload.requests() {
        let access = workload.access(number);
        let mut block = vec![0; 4096];
        content.fill(Grain::Block, &[access.digest], &mut block);
        let offset_bytes = access.block * 4096;
        if access.direction == Direction::Write {
            made.write(offset_bytes, &block);
            kept.write(offset_bytes, &block);
        } else {
            assert_eq!(read(&made, offset_bytes, &block).right_bytes, 4096);
            assert_eq!(read(&kept, offset_bytes, &block).right_bytes, 4096);
        }
    }
    let volume_bytes = workload.volume_blocks() * 4096;
    assert_eq!(made.keys(0, volume_bytes), kept.keys(0, volume_bytes));
    assert_eq!(made.mapped_unique_chunks(4096), kept.mapped_unique_chunks(4096));
    assert_eq!(made.duplicate_share(), kept.duplicate_share());
    assert_eq!(made.written_ranges(1 << 16), kept.written_ranges(1 << 16));
}
