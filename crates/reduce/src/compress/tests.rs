//! Every codec gives back what it was given, and no damaged frame gives back anything.

use super::{compress_frame, expand_frame, frame_bytes_max};
use crate::error::ReduceError;
use format::frame::{self, ChunkName, FRAME_HEADER_BYTES, FrameHeader};
use format::units::{Codec, Compression, Pbn};
use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

const LEVELS: [i8; 9] = [-7, -3, -1, 0, 1, 3, 6, 12, 19];

fn all_compressions() -> Vec<Compression> {
    let mut all = vec![
        Compression { codec: Codec::Raw, level: 0 },
        Compression { codec: Codec::Lz4, level: 0 },
    ];
    all.extend(LEVELS.map(|level| Compression { codec: Codec::Zstd, level }));
    all
}

fn noise(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed ^ 0x9E37_79B9_7F4A_7C15;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length_bytes).map(step).collect()
}

fn text(length_bytes: usize, seed: u64) -> Vec<u8> {
    let words = ["container ", "frame ", "the ", "of a chunk ", "is ", "never ", "written\n"];
    let order = noise(length_bytes, seed);
    order.iter().flat_map(|n| words[*n as usize % words.len()].bytes()).take(length_bytes).collect()
}

/// Half of it noise, in stretches, so that some codecs are just at the limit of what is worth it.
fn mixed(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut data = noise(length_bytes, seed);
    let stride = (seed as usize % 40 + 2) * 16;
    data.chunks_mut(stride).for_each(|part| part.iter_mut().take(16).for_each(|byte| *byte = 0));
    data
}

fn plain() -> impl Strategy<Value = Vec<u8>> {
    let length_bytes = prop_oneof![Just(4096), (1..=128usize).prop_map(|sectors| sectors * 512)];
    (length_bytes, any::<u64>(), 0..4u8).prop_map(|(length_bytes, seed, kind)| match kind {
        0 => noise(length_bytes, seed),
        1 => text(length_bytes, seed),
        2 => mixed(length_bytes, seed),
        _ => vec![0; length_bytes],
    })
}

fn compression() -> impl Strategy<Value = Compression> {
    prop::sample::select(all_compressions())
}

fn frame_of(compression: Compression, pbn: Pbn, plain: &[u8]) -> Vec<u8> {
    // Whatever is behind it stays out of it.
    let mut frame = vec![0xEE; frame_bytes_max(plain.len()) + 7];
    let length_bytes = compress_frame(compression, ChunkName::unkeyed(pbn), plain, &mut frame);
    assert!(frame[frame_bytes_max(plain.len())..] == [0xEE; 7]);
    frame.truncate(length_bytes);
    frame
}

proptest! {
    #[test]
    fn every_codec_and_level_gives_the_chunk_back(
        plain in plain(), compression in compression(), pbn in 1..1u64 << 48,
    ) {
        let frame = frame_of(compression, Pbn(pbn), &plain);
        prop_assert!(frame.len() <= frame_bytes_max(plain.len()));
        let mut back = vec![0xEE; plain.len()];
        let header = expand_frame(&frame, &mut back).unwrap();
        prop_assert_eq!(header.pbn, Pbn(pbn));
        prop_assert!(header.codec == compression.codec || header.codec == Codec::Raw);
        prop_assert!(back == plain);
    }

    #[test]
    fn the_same_chunk_makes_the_same_frame_whatever_came_before(
        first in plain(), second in plain(), compression in compression(), other in compression(),
    ) {
        let alone = frame_of(compression, Pbn(1), &first);
        frame_of(other, Pbn(2), &second);
        prop_assert!(frame_of(compression, Pbn(1), &first) == alone);
        let on_a_fresh_thread =
            std::thread::spawn(move || frame_of(compression, Pbn(1), &first)).join().unwrap();
        prop_assert!(on_a_fresh_thread == alone);
    }

    #[test]
    fn a_damaged_frame_is_always_an_error(
        plain in plain(), compression in compression(), at in any::<prop::sample::Index>(),
        change in 1..=255u8,
    ) {
        let mut frame = frame_of(compression, Pbn(5), &plain);
        let at = at.index(frame.len());
        frame[at] ^= change;
        prop_assert!(expand_frame(&frame, &mut vec![0; plain.len()]).is_err());
    }

    #[test]
    fn a_shortened_frame_is_always_an_error(
        plain in plain(), compression in compression(), keep in any::<prop::sample::Index>(),
    ) {
        let frame = frame_of(compression, Pbn(5), &plain);
        let short = &frame[..keep.index(frame.len())];
        prop_assert!(expand_frame(short, &mut vec![0; plain.len()]).is_err());
    }

    /// The checksum is right and the payload is an attacker's: an error or some bytes, never a
    /// panic.
    #[test]
    fn hostile_payloads_under_a_valid_checksum_never_panic(
        payload in prop::collection::vec(any::<u8>(), 1..3000),
        codec in prop::sample::select(vec![Codec::Raw, Codec::Lz4, Codec::Zstd]),
        sectors in 1..=128usize,
    ) {
        expand_hostile(codec, &payload, sectors * 512);
    }

    /// The same, one byte away from a payload that a codec made: reaches deeper into the decoders.
    #[test]
    fn nearly_right_payloads_under_a_valid_checksum_never_panic(
        plain in plain(), compression in compression(), at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let frame = frame_of(compression, Pbn(5), &plain);
        let (header, payload) = frame::decode(&frame).unwrap();
        let mut payload = payload.to_vec();
        let at = at.index(payload.len());
        payload[at] = byte;
        expand_hostile(header.codec, &payload, plain.len());
    }
}

/// The payload is cut or filled up to a length that a header can claim.
fn expand_hostile(codec: Codec, payload: &[u8], plain_bytes: usize) {
    let mut payload = payload.to_vec();
    let stored_bytes =
        if codec == Codec::Raw { plain_bytes } else { payload.len().min(plain_bytes) };
    payload.resize(stored_bytes, 0x11);
    let mut frame = vec![0; FRAME_HEADER_BYTES];
    frame.extend_from_slice(&payload);
    let stored_bytes = payload.len() as u32;
    let header = FrameHeader {
        codec,
        stored_bytes,
        plain_bytes: plain_bytes as u32,
        pbn: Pbn(1),
        domain: Default::default(),
    };
    frame::write_header(&mut frame, &header);
    let _ = expand_frame(&frame, &mut vec![0; plain_bytes]);
}

#[test]
fn what_saves_too_little_is_stored_as_it_is() {
    for compression in all_compressions() {
        let plain = noise(4096, 3);
        let frame = frame_of(compression, Pbn(1), &plain);
        assert_eq!(frame.len(), frame_bytes_max(4096));
        assert_eq!(&frame[FRAME_HEADER_BYTES..], plain);
    }
}

#[test]
fn what_compresses_is_compressed() {
    for compression in all_compressions().into_iter().skip(1) {
        let frame = frame_of(compression, Pbn(1), &text(4096, 1));
        assert!(frame.len() < 3000, "{compression:?}: {} bytes", frame.len());
        assert_eq!(frame::decode(&frame).unwrap().0.codec, compression.codec);
    }
}

#[test]
fn a_chunk_of_another_length_is_refused_by_name() {
    for compression in all_compressions() {
        let frame = frame_of(compression, Pbn(1), &text(4096, 9));
        for length_bytes in [0, 512, 4095, 4608, 65_536] {
            let error = expand_frame(&frame, &mut vec![0; length_bytes]).unwrap_err();
            assert!(matches!(error, ReduceError::Length { actual_bytes: 4096, .. }), "{error}");
        }
    }
}

/// Sound payloads under sound checksums, but of a chunk that is shorter than the header says: what
/// they leave of the reader's buffer unwritten must not pass for data.
#[test]
fn a_payload_that_expands_to_too_little_is_refused() {
    for compression in all_compressions().into_iter().skip(1) {
        let short = frame_of(compression, Pbn(1), &text(2048, 4));
        let (header, payload) = frame::decode(&short).unwrap();
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        frame.extend_from_slice(payload);
        frame::write_header(&mut frame, &FrameHeader { plain_bytes: 4096, ..header });
        let error = expand_frame(&frame, &mut [0; 4096]).unwrap_err();
        assert!(matches!(error, ReduceError::Payload { plain_bytes: 4096, .. }), "{error}");
    }
}

#[test]
fn frames_are_made_one_after_the_other_in_one_buffer() {
    let mut out = vec![0xEE; 2 * frame_bytes_max(4096)];
    let compression = Compression { codec: Codec::Lz4, level: 0 };
    let first = compress_frame(compression, ChunkName::unkeyed(Pbn(1)), &text(4096, 1), &mut out);
    let both = first
        + compress_frame(
            compression,
            ChunkName::unkeyed(Pbn(2)),
            &noise(4096, 1),
            &mut out[first..],
        );
    let mut back = vec![0; 4096];
    assert_eq!(expand_frame(&out[..first], &mut back).unwrap().pbn, Pbn(1));
    assert_eq!(back, text(4096, 1));
    assert_eq!(expand_frame(&out[first..both], &mut back).unwrap().pbn, Pbn(2));
    assert_eq!(back, noise(4096, 1));
}

/// A context that had refused a chunk did not take another level, and everything after it was
/// stored uncompressed, until the thread ended.
#[test]
fn a_refused_chunk_does_not_stop_compression_at_another_level() {
    let zstd = |level| Compression { codec: Codec::Zstd, level };
    frame_of(zstd(1), Pbn(1), &noise(4096, 3));
    let frame = frame_of(zstd(3), Pbn(2), &text(4096, 1));
    assert_eq!(frame::decode(&frame).unwrap().0.codec, Codec::Zstd);
}
