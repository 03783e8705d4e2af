//! Long chains, subclusters, and clusters in another file.

use super::{CLUSTER, Cluster, Folder, qcow2, read_by_runs};
use crate::disk_image::DiskImage;
use crate::error::ImageError;

#[test]
fn a_chain_may_be_long_and_name_files_as_qemu_does() {
    let folder = Folder::new();
    let clusters = |at: usize| {
        let cluster =
            |number| if number == at { Cluster::Filled(at as u8) } else { Cluster::Absent };
        (0..100).map(cluster).collect::<Vec<_>>()
    };
    folder.write("0", &qcow2(&clusters(0), None));
    for number in 1..100 {
        let below = format!("file:{}", number - 1);
        folder.write(&number.to_string(), &qcow2(&clusters(number), Some(&below)));
    }
    let image = DiskImage::open(&folder.0.join("99")).unwrap();
    let expected: Vec<u8> = (0..100).flat_map(|byte| [byte; CLUSTER]).collect();
    assert_eq!(read_by_runs(&image).unwrap(), expected);
}

/// An image of 32-KiB clusters in 32 subclusters: the first alternates between data and zeros, the
/// second has no cluster and is zeros behind its middle.
fn with_subclusters(bitmap: u64) -> Vec<u8> {
    const LARGE: usize = 32 << 10;
    let mut bytes = vec![0; 4 * LARGE];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, b"QFI\xfb\0\0\0\x03");
    put(20, &15_u32.to_be_bytes());
    put(24, &(2 * LARGE as u64).to_be_bytes());
    put(36, &1_u32.to_be_bytes());
    put(40, &(LARGE as u64).to_be_bytes());
    put(72, &(1_u64 << 4).to_be_bytes());
    put(100, &104_u32.to_be_bytes());
    put(LARGE, &((2 * LARGE as u64) | (1 << 63)).to_be_bytes());
    put(2 * LARGE, &((3 * LARGE as u64) | (1 << 63)).to_be_bytes());
    put(2 * LARGE + 8, &bitmap.to_be_bytes());
    put(2 * LARGE + 24, &(0xFFFF_0000_u64 << 32).to_be_bytes());
    bytes[3 * LARGE..].fill(9);
    bytes
}

#[test]
fn subclusters_are_data_zeros_or_absent_each() {
    let folder = Folder::new();
    folder.write("below.raw", &[7; 64 << 10]);
    let mut bytes = with_subclusters(0xAAAA_AAAA << 32 | 0x5555_5554);
    bytes[8..16].copy_from_slice(&400_u64.to_be_bytes());
    bytes[16..20].copy_from_slice(&9_u32.to_be_bytes());
    bytes[400..409].copy_from_slice(b"below.raw");
    let image = DiskImage::open(&folder.write("sub.qcow2", &bytes)).unwrap();
    let byte = |part: usize| match part {
        0 => 7,
        1..32 if part.is_multiple_of(2) => 9,
        1..32 => 0,
        32..48 => 7,
        _ => 0,
    };
    let expected: Vec<u8> = (0..64).flat_map(|part| [byte(part); 1024]).collect();
    assert!(read_by_runs(&image).unwrap() == expected);
    // Data and zeros at once cannot be.
    let both = folder.write("both.qcow2", &with_subclusters(1 << 32 | 1));
    let read = DiskImage::open(&both).unwrap().next_data(0);
    assert!(matches!(read, Err(ImageError::Damaged { .. })), "{read:?}");
}

#[test]
fn clusters_may_be_in_another_file_which_is_read_if_asked_for() {
    let folder = Folder::new();
    let mut bytes = qcow2(&[Cluster::Absent, Cluster::Absent], None);
    bytes[72..80].copy_from_slice(&(1_u64 << 2).to_be_bytes());
    bytes[104..112].copy_from_slice(&[0x44, 0x41, 0x54, 0x41, 0, 0, 0, 5]);
    bytes[112..117].copy_from_slice(b"bytes");
    let l2_at = bytes.len() as u64;
    bytes[CLUSTER..CLUSTER + 8].copy_from_slice(&(l2_at | 1 << 63).to_be_bytes());
    bytes.resize(bytes.len() + CLUSTER, 0);
    // The first cluster is the second of the data file, and the other way round.
    bytes[l2_at as usize..][..8].copy_from_slice(&(CLUSTER as u64 | 1 << 63).to_be_bytes());
    bytes[l2_at as usize + 8..][..8].copy_from_slice(&(1_u64 << 63).to_be_bytes());
    let path = folder.write("apart.qcow2", &bytes);
    assert!(matches!(DiskImage::open(&path), Err(ImageError::Io { .. })), "no such file yet");
    folder.write("bytes", &[[1; CLUSTER], [2; CLUSTER]].concat());
    let image = DiskImage::open(&path).unwrap();
    assert_eq!(read_by_runs(&image).unwrap(), [[2; CLUSTER], [1; CLUSTER]].concat());
    let unasked = DiskImage::open_as(&path, None);
    assert!(matches!(unasked, Err(ImageError::BackingUnasked { .. })), "{unasked:?}");
}
