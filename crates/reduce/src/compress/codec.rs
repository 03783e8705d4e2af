//! The codecs behind frames, each as two plain functions over slices.
//!
//! LZ4 is the reference library's block format; its state is on the stack and fresh for each chunk.
//! Zstandard needs contexts of some hundred KiB: every thread keeps one of each kind. A context
//! carries no history from one chunk to the next, so the result depends on the chunk alone.
//!
//! Zstandard payloads are whole frames of that format, magic number included: 4 bytes a chunk, for
//! which a payload cut out of a damaged store can be read with the ordinary `zstd` tool.

use format::units::{Codec, Compression};
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// Zstandard's contexts of one thread, made when first used.
struct Contexts {
    compressor: Option<(i8, Compressor<'static>)>,
    decompressor: Option<Decompressor<'static>>,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> =
        const { RefCell::new(Contexts { compressor: None, decompressor: None }) };
}

/// Compresses `plain` into `out`: bytes used, or None when it does not fit or is not to be
/// compressed.
pub(super) fn pack(compression: Compression, plain: &[u8], out: &mut [u8]) -> Option<usize> {
    match compression.codec {
        Codec::Raw => None,
        Codec::Lz4 => lz4::block::compress_to_buffer(plain, None, false, out).ok(),
        Codec::Zstd => CONTEXTS.with_borrow_mut(|contexts| {
            contexts.compressor(compression.level)?.compress_to_buffer(plain, out).ok()
        }),
    }
}

/// Expands `payload` into `out`: bytes that came out, or None when the payload is not valid or too
/// long.
pub(super) fn unpack(codec: Codec, payload: &[u8], out: &mut [u8]) -> Option<usize> {
    match codec {
        Codec::Raw => {
            out.get_mut(..payload.len())?.copy_from_slice(payload);
            Some(payload.len())
        }
        Codec::Lz4 => {
            let out_bytes = i32::try_from(out.len()).ok()?;
            lz4::block::decompress_to_buffer(payload, Some(out_bytes), out).ok()
        }
        Codec::Zstd => CONTEXTS.with_borrow_mut(|contexts| {
            contexts.decompressor()?.decompress_to_buffer(payload, out).ok()
        }),
    }
}

impl Contexts {
    /// The compressor for `level`; None when there is no memory for one. Another level gets a new
    /// context: one that has just refused a chunk for lack of room does not let its level be
    /// changed.
    fn compressor(&mut self, level: i8) -> Option<&mut Compressor<'static>> {
        if self.compressor.as_ref().is_none_or(|(current, _)| *current != level) {
            self.compressor = Some((level, Compressor::new(i32::from(level)).ok()?));
        }
        self.compressor.as_mut().map(|(_, compressor)| compressor)
    }

    fn decompressor(&mut self) -> Option<&mut Decompressor<'static>> {
        if self.decompressor.is_none() {
            self.decompressor = Decompressor::new().ok();
        }
        self.decompressor.as_mut()
    }
}
