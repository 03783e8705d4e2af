//! The whole of an estimate, against a plain model of a store.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use format::frame::ChunkName;
use format::units::{Codec, Compression, Pbn};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use reduce::{compress_frame, frame_bytes_max};

use super::{Estimate, MEMORY_BYTES_MIN, Options, estimate};
use crate::figures::{Figure, SizeFigures};
use crate::pieces::tests::Folder;

const SIZES: [u32; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

fn codecs() -> Vec<(String, Compression)> {
    [("lz4", Codec::Lz4, 0), ("zstd:1", Codec::Zstd, 1), ("none", Codec::Raw, 0)]
        .map(|(name, codec, level)| (name.to_owned(), Compression { codec, level }))
        .into()
}

fn options() -> Options {
    Options {
        chunk_bytes: SIZES.to_vec(),
        compressions: codecs(),
        memory_bytes: MEMORY_BYTES_MIN,
        threads: 3,
    }
}

fn all(paths: &[PathBuf], options: &Options) -> Estimate {
    estimate(paths, options, |_| ControlFlow::Continue(())).unwrap()
}

/// Different bytes for each number, half of them compressible.
fn block(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if number.is_multiple_of(2) { (state % 7) as u8 + 1 } else { state as u8 }
    };
    (0..4096).map(next).collect()
}

/// What a store keeps of `files`, found in the simplest way.
struct Model {
    data_chunks: u64,
    zero_bytes: u64,
    unique: HashMap<Vec<u8>, Vec<usize>>,
}

impl Model {
    fn of(files: &[Vec<u8>], chunk_bytes: u32) -> Self {
        let mut model = Self { data_chunks: 0, zero_bytes: 0, unique: HashMap::new() };
        for chunk in files.iter().flat_map(|file| file.chunks(chunk_bytes as usize)) {
            if chunk.iter().all(|byte| *byte == 0) {
                model.zero_bytes += chunk.len() as u64;
                continue;
            }
            let mut whole = chunk.to_vec();
            whole.resize(chunk_bytes as usize, 0);
            model.data_chunks += 1;
            let frames = |chunk: &[u8]| {
                let mut out = vec![0; frame_bytes_max(chunk.len())];
                let codecs = codecs().into_iter();
                codecs
                    .map(|(_, codec)| {
                        compress_frame(codec, ChunkName::unkeyed(Pbn(7)), chunk, &mut out)
                    })
                    .collect()
            };
            let lengths = frames(&whole);
            model.unique.insert(whole, lengths);
        }
        model
    }

    fn stored_bytes(&self, codec: usize) -> usize {
        self.unique.values().map(|lengths| lengths[codec]).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn an_exact_estimate_is_what_a_plain_model_finds(
        files in vec((vec(0_u64..30, 0..80), 0_usize..5000, any::<bool>()), 1..6),
    ) {
        let folder = Folder::new();
        let mut contents = Vec::new();
        for (number, (blocks, cut, zero_run)) in files.into_iter().enumerate() {
            let to_bytes = |number| if number < 6 { vec![0; 4096] } else { block(number) };
            let mut bytes: Vec<u8> = blocks.into_iter().flat_map(to_bytes).collect();
            if zero_run {
                bytes.resize(bytes.len() + (200 << 10), 0);
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            fs::write(folder.path().join(number.to_string()), &bytes).unwrap();
            contents.push(bytes);
        }
        let found = all(&[folder.path().to_owned()], &options());
        let logical_bytes: usize = contents.iter().map(Vec::len).sum();
        prop_assert_eq!(found.logical_bytes, logical_bytes as u64);
        prop_assert_eq!(found.files, contents.len() as u64);
        prop_assert_eq!(found.unreadable.count, 0);
        for size in &found.sizes {
            let model = Model::of(&contents, size.chunk_bytes);
            prop_assert_eq!(size.data_chunks, model.data_chunks);
            prop_assert_eq!(size.zero_bytes, model.zero_bytes);
            prop_assert_eq!(size.unique_chunks, exact(model.unique.len()));
            for (number, codec) in size.codecs.iter().enumerate() {
                prop_assert_eq!(codec.stored_bytes, exact(model.stored_bytes(number)));
            }
        }
    }
}

fn exact(count: usize) -> Figure {
    Figure { value: count as f64, error: 0.0 }
}

/// An estimate of `blocks` different blocks, with a table of 1000 slots.
fn sampled(folder: &Folder, blocks: u64) -> (Vec<u8>, Estimate) {
    let path = folder.path().join("large");
    // Each block twice, and far from itself.
    let half: Vec<u8> = (0..blocks).flat_map(block).collect();
    let bytes = [half.as_slice(), half.as_slice()].concat();
    fs::write(&path, &bytes).unwrap();
    let options = Options { chunk_bytes: vec![4096], ..options() };
    let scan = super::Scan::new(std::slice::from_ref(&path), &options, reading());
    // The least memory holds more than a quick test writes: a smaller table stands in.
    super::lock(&scan.sizes[0].counted).sample = crate::sample::Sample::new(22 * 1000, 3);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| scan.work());
        }
    });
    (bytes, scan.into_estimate(&options))
}

fn reading() -> &'static super::Reading {
    Box::leak(Box::default())
}

#[test]
fn a_sampled_estimate_is_right_within_its_errors() {
    let folder = Folder::new();
    let (bytes, found) = sampled(&folder, 6000);
    let size: &SizeFigures = &found.sizes[0];
    let model = Model::of(&[bytes], 4096);
    assert!(!size.exact && size.sampled_fraction <= 0.125, "{size:?}");
    assert_eq!(size.data_chunks, model.data_chunks);
    let near = |figure: Figure, actual: f64| {
        let error = (figure.value - actual).abs();
        assert!(figure.error > 0.0 || error == 0.0, "{figure:?} for {actual}");
        assert!(error <= 5.0 * figure.error, "{figure:?} for {actual}");
    };
    near(size.unique_chunks, 6000.0);
    near(size.dedup_ratio, 2.0);
    for (number, codec) in size.codecs.iter().enumerate() {
        let stored_bytes = model.stored_bytes(number) as f64;
        near(codec.stored_bytes, stored_bytes);
        let data_bytes = (model.data_chunks * 4096) as f64;
        near(codec.reduction_ratio, data_bytes / stored_bytes);
    }
    near(size.codecs[0].compression_ratio, 6000.0 * 4096.0 / model.stored_bytes(0) as f64);
}

#[test]
fn who_watches_sees_the_end_and_may_break_off() {
    let folder = Folder::new();
    let path = folder.path().join("file");
    fs::write(&path, vec![1; 3 << 20]).unwrap();
    let mut last = 0;
    let found = estimate(std::slice::from_ref(&path), &options(), |done_bytes| {
        last = done_bytes;
        ControlFlow::Continue(())
    });
    assert_eq!(found.unwrap().sizes.len(), 5);
    assert_eq!(last, 3 << 20);
    assert!(estimate(&[path], &options(), |_| ControlFlow::Break(())).is_none());
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_read() {
    let folder = Folder::new();
    let (good, bad) = (folder.path().join("good"), folder.path().join("bad.qcow2"));
    fs::write(&good, vec![1; 8192]).unwrap();
    fs::write(&bad, b"QFI\xfb and no more").unwrap();
    let gone = folder.path().join("gone");
    let found = all(&[bad.clone(), gone.clone(), good], &options());
    assert_eq!((found.files, found.logical_bytes, found.unreadable.count), (1, 8192, 2));
    let named: Vec<_> = found.unreadable.named.iter().map(|file| file.path.clone()).collect();
    assert_eq!(named, [bad, gone]);
}
