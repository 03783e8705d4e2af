//! Images made by hand, byte for byte, so that each can be damaged anywhere.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;

use super::DiskImage;
use crate::error::ImageError;

mod further_qcow2;

const CLUSTER: usize = 512;
/// Clusters of the disk, more than one level-2 table (64 entries) describes.
const CLUSTERS: usize = 150;

/// A directory of its own for one test, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tamis-images-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a cluster of a made image is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Cluster {
    Absent,
    Zeros,
    Filled(u8),
    /// Filled too, and compressed by deflate.
    Compressed(u8),
}

impl Cluster {
    fn from_number(number: u8) -> Self {
        match number {
            0..100 => Self::Absent,
            100..150 => Self::Zeros,
            150..180 => Self::Compressed(number),
            byte => Self::Filled(byte),
        }
    }
}

/// A qcow2 image of version 3: header, level-1 table, level-2 tables that are needed, clusters.
fn qcow2(clusters: &[Cluster], backing: Option<&str>) -> Vec<u8> {
    let l2_count = clusters.len().div_ceil(64);
    let mut file = vec![0; CLUSTER * 2];
    let mut put = |at: usize, field: &[u8]| file[at..at + field.len()].copy_from_slice(field);
    put(0, b"QFI\xfb\0\0\0\x03");
    if let Some(name) = backing {
        put(8, &400_u64.to_be_bytes());
        put(16, &(name.len() as u32).to_be_bytes());
        put(400, name.as_bytes());
    }
    put(20, &9_u32.to_be_bytes());
    put(24, &((clusters.len() * CLUSTER) as u64).to_be_bytes());
    put(36, &(l2_count as u32).to_be_bytes());
    put(40, &(CLUSTER as u64).to_be_bytes());
    put(100, &104_u32.to_be_bytes());
    for (number, part) in clusters.chunks(64).enumerate() {
        if part.iter().all(|cluster| *cluster == Cluster::Absent) {
            continue;
        }
        let l2_at = file.len();
        file[CLUSTER + number * 8..][..8].copy_from_slice(&(l2_at as u64 | 1 << 63).to_be_bytes());
        file.resize(l2_at + CLUSTER, 0);
        for (index, cluster) in part.iter().enumerate() {
            let entry = match cluster {
                Cluster::Absent => 0,
                Cluster::Zeros => 1,
                Cluster::Filled(byte) => {
                    let at = file.len() as u64;
                    file.resize(file.len() + CLUSTER, *byte);
                    at | 1 << 63
                }
                Cluster::Compressed(byte) => {
                    let at = file.len() as u64;
                    file.extend(deflated(&[*byte; CLUSTER]));
                    // Offsets have 61 bits where clusters have 9: no sectors but the first.
                    let sectors = (file.len() as u64 - 1) / 512 - at / 512;
                    // What is not compressed is at a multiple of its size.
                    file.resize(file.len().next_multiple_of(CLUSTER), 0xEE);
                    at | sectors << 61 | 1 << 62
                }
            };
            file[l2_at + index * 8..][..8].copy_from_slice(&entry.to_be_bytes());
        }
    }
    file
}

/// Deflated bytes without a header, as qcow2 has them.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 100);
    let mut stream = flate2::Compress::new(flate2::Compression::default(), false);
    stream.compress_vec(bytes, &mut out, flate2::FlushCompress::Finish).unwrap();
    out
}

/// The disk that is read by runs of data, as a scan of an image reads it.
fn read_by_runs(image: &DiskImage) -> Result<Vec<u8>, ImageError> {
    let mut disk = vec![0; image.size_bytes() as usize];
    let mut at = 0;
    while let Some(run) = image.next_data(at)? {
        assert!(run.start >= at && run.end > run.start, "{run:?} after {at}");
        image.read_at(run.start, &mut disk[run.start as usize..run.end as usize])?;
        at = run.end;
    }
    Ok(disk)
}

/// What the layers, the top first, make of a disk of `clusters` clusters.
fn model(layers: &[&[Cluster]], clusters: usize) -> Vec<u8> {
    let cluster = |at: usize| {
        for layer in layers {
            match layer.get(at) {
                Some(Cluster::Absent) => {}
                Some(Cluster::Filled(byte) | Cluster::Compressed(byte)) => return *byte,
                Some(Cluster::Zeros) | None => return 0,
            }
        }
        0
    };
    (0..clusters).flat_map(|at| [cluster(at); CLUSTER]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_chain_reads_as_its_layers_say(
        top in vec(any::<u8>(), CLUSTERS),
        middle in vec(any::<u8>(), 1..CLUSTERS * 2),
        blank_table in any::<bool>(),
        at in any::<Index>(),
    ) {
        let folder = Folder::new();
        let mut top: Vec<Cluster> = top.into_iter().map(Cluster::from_number).collect();
        if blank_table {
            top[..64].fill(Cluster::Absent);
        }
        let middle: Vec<Cluster> = middle.into_iter().map(Cluster::from_number).collect();
        let bottom = [Cluster::Filled(7); 90];
        folder.write("bottom.raw", &[7; 90 * CLUSTER]);
        folder.write("middle.qcow2", &qcow2(&middle, Some("bottom.raw")));
        let path = folder.write("top.qcow2", &qcow2(&top, Some("./middle.qcow2")));

        let image = DiskImage::open(&path).unwrap();
        let expected = model(&[&top, &middle, &bottom], CLUSTERS);
        prop_assert_eq!(image.size_bytes(), expected.len() as u64);
        prop_assert!(read_by_runs(&image).unwrap() == expected);
        let from = at.index(expected.len());
        let mut part = vec![9; expected.len() - from + 100];
        image.read_at(from as u64, &mut part).unwrap();
        prop_assert!(part[..expected.len() - from] == expected[from..]);
        prop_assert!(part[expected.len() - from..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_damaged_image_is_an_error_or_a_disk_and_never_a_panic(
        changes in vec((any::<Index>(), any::<u8>()), 1..30),
        length in any::<Index>(),
        cut in any::<bool>(),
    ) {
        let folder = Folder::new();
        let numbers = (0..CLUSTERS as u8).map(|number| number.wrapping_mul(3));
        let clusters: Vec<Cluster> = numbers.map(Cluster::from_number).collect();
        let mut bytes = qcow2(&clusters, Some("bottom.raw"));
        folder.write("bottom.raw", &[7; 90 * CLUSTER]);
        for (at, byte) in changes {
            // Header and tables, where a change has consequences.
            bytes[at.index(3 * CLUSTER)] = byte;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        let path = folder.write("damaged.qcow2", &bytes);
        let Ok(image) = DiskImage::open(&path) else { return Ok(()) };
        let (mut at, mut out) = (0, [0; 700]);
        for _ in 0..1000 {
            let Ok(Some(run)) = image.next_data(at) else { break };
            prop_assert!(run.start >= at && run.end > run.start && run.end <= image.size_bytes());
            let _ = image.read_at(run.start, &mut out);
            at = run.end;
        }
    }
}

fn refusal(path: &Path) -> String {
    DiskImage::open(path).unwrap_err().to_string()
}

#[test]
fn what_is_not_read_is_said_and_never_guessed() {
    let folder = Folder::new();
    let clusters = [Cluster::Filled(1); 4];
    let path = folder.write("loop.qcow2", &qcow2(&clusters, Some("loop.qcow2")));
    assert!(refusal(&path).contains("lead back"));
    let path = folder.write("net.qcow2", &qcow2(&clusters, Some("nbd:localhost:10809")));
    assert!(refusal(&path).contains("no file"));
    let path = folder.write("gone.qcow2", &qcow2(&clusters, Some("gone.raw")));
    assert!(refusal(&path).contains("gone.raw cannot be read"));
    let path = folder.write("pipe.qcow2", &qcow2(&clusters, Some("/dev/null")));
    assert!(refusal(&path).contains("neither a file nor a block device"));
    for (at, magic, name) in [
        (0, b"KDMV".as_slice(), "a VMDK image"),
        (64, b"\x7f\x10\xda\xbe", "a VDI image"),
        (0, b"conectix", "a VHD image"),
        (8192 - 512, b"conectix", "a VHD image"),
        (257, b"ustar", "a tar archive"),
        (0, b"\x1f\x8b\x08", "compressed by gzip"),
    ] {
        let mut bytes = vec![0; 8192];
        bytes[at..at + magic.len()].copy_from_slice(magic);
        let path = folder.write("other", &bytes);
        let said = refusal(&path);
        assert!(said.contains(name), "{name} at {at}: {said}");
        assert_eq!(DiskImage::open_as_is(&path).unwrap().size_bytes(), 8192);
    }
    let path = folder.write("v.stream", b"TAMIS-ST and more");
    assert!(refusal(&path).contains("holds a stream"));
}

#[test]
fn offsets_that_cannot_be_are_damage() {
    let folder = Folder::new();
    let sound = qcow2(&[Cluster::Filled(1); 4], None);
    for (at, field) in [
        (CLUSTER, 1_u64 << 40),
        (CLUSTER, 0x200 * 1000),
        (2 * CLUSTER, 1 << 50),
        (2 * CLUSTER, 0x200 * 1000),
    ] {
        let mut bytes = sound.clone();
        bytes[at..at + 8].copy_from_slice(&field.to_be_bytes());
        let image = DiskImage::open(&folder.write("damaged.qcow2", &bytes)).unwrap();
        let found = image.next_data(0);
        assert!(matches!(found, Err(ImageError::Damaged { .. })), "{at}: {found:?}");
    }
}

#[test]
fn an_image_that_ends_inside_a_cluster_of_its_disk_is_damaged() {
    let folder = Folder::new();
    for last in [Cluster::Filled(5), Cluster::Compressed(5)] {
        let mut bytes = qcow2(&[Cluster::Filled(5), last], None);
        // The last sector of a compressed cluster need not be whole; what it holds must be.
        bytes.truncate(bytes.len() - CLUSTER + 4);
        let image = DiskImage::open(&folder.write("short.qcow2", &bytes)).unwrap();
        let read = read_by_runs(&image);
        assert!(matches!(read, Err(ImageError::Damaged { .. })), "{last:?}: {read:?}");
    }
}

#[test]
fn a_disk_that_ends_inside_a_cluster_needs_no_more_than_it_has() {
    let folder = Folder::new();
    let mut bytes = qcow2(&[Cluster::Filled(5); 2], None);
    bytes[24..32].copy_from_slice(&(CLUSTER as u64 + 100).to_be_bytes());
    bytes.truncate(bytes.len() - CLUSTER + 100);
    let image = DiskImage::open(&folder.write("odd.qcow2", &bytes)).unwrap();
    assert_eq!(read_by_runs(&image).unwrap(), [5; CLUSTER + 100]);
}

#[test]
fn holes_of_a_raw_file_are_no_data() {
    let folder = Folder::new();
    let path = folder.0.join("sparse.img");
    let file = File::create(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    file.write_all_at(b"one", 3 << 20).unwrap();
    file.write_all_at(b"two", 50 << 20).unwrap();
    let image = DiskImage::open(&path).unwrap();
    let (mut runs, mut from) = (Vec::new(), 0);
    while let Some(run) = image.next_data(from).unwrap() {
        from = run.end;
        runs.push(run);
    }
    for data in [3 << 20, 50 << 20] {
        assert!(runs.iter().any(|run| run.contains(&data)), "{runs:?}");
    }
    assert!(runs.iter().map(|run| run.end - run.start).sum::<u64>() < 32 << 20, "{runs:?}");
    assert!(image.next_data(64 << 20).unwrap().is_none());
}

#[test]
fn a_file_that_changes_its_length_while_it_is_read_is_no_image() {
    let is_told = |told: Result<(), ImageError>| {
        assert!(matches!(told, Err(ImageError::LengthChanged { .. })), "{told:?}");
    };
    let folder = Folder::new();
    let path = folder.0.join("sparse.img");
    let file = File::create(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    file.write_all_at(b"two", 50 << 20).unwrap();
    let image = DiskImage::open(&path).unwrap();
    image.check_length().unwrap();
    file.set_len(32 << 20).unwrap();
    // Behind what is left, and where only a hole is left.
    is_told(image.next_data(40 << 20).map(drop));
    is_told(image.read_at((32 << 20) - 1, &mut [0; 2]));
    is_told(image.check_length());
    file.set_len(65 << 20).unwrap();
    is_told(image.check_length());

    let bytes = qcow2(&[Cluster::Filled(5); 4], None);
    let path = folder.write("cut.qcow2", &bytes);
    let image = DiskImage::open(&path).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(bytes.len() as u64 - 600).unwrap();
    image.read_at(0, &mut [0; 2 * CLUSTER]).unwrap();
    is_told(image.read_at(2 * CLUSTER as u64, &mut [0; CLUSTER]));
}

#[test]
fn a_read_beyond_the_end_is_zeros() {
    let folder = Folder::new();
    let image = DiskImage::open(&folder.write("short.img", &[7; 700])).unwrap();
    let mut out = [9; 512];
    image.read_at(512, &mut out).unwrap();
    assert_eq!(out[..188], [7; 188]);
    assert_eq!(out[188..], [0; 324]);
}

#[test]
fn a_directory_is_no_image() {
    let folder = Folder::new();
    assert!(matches!(DiskImage::open(&folder.0), Err(ImageError::NotSeekable { .. })));
}
