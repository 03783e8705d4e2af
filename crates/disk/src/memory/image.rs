//! Sparse bytes: what a medium holds, in pieces that copies share until one changes them.

use std::sync::Arc;

use hashbrown::HashMap;

const PIECE_BYTES: usize = 64 << 10;

/// Bytes from 0 to any offset, zeros where nothing was written. A clone costs a pointer per piece.
#[derive(Clone, Default)]
pub(super) struct Image {
    pieces: HashMap<u64, Arc<[u8]>>,
}

impl Image {
    pub(super) fn read(&self, offset_bytes: u64, out: &mut [u8]) {
        for (piece, start, range) in parts(offset_bytes, out.len()) {
            let out = &mut out[range];
            match self.pieces.get(&piece) {
                Some(bytes) => out.copy_from_slice(&bytes[start..start + out.len()]),
                None => out.fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, offset_bytes: u64, bytes: &[u8]) {
        for (piece, start, range) in parts(offset_bytes, bytes.len()) {
            let bytes = &bytes[range];
            let held = self.pieces.get_mut(&piece);
            // Zeros over nothing stay nothing, so that blanking a huge zone costs no memory.
            if held.is_none() && bytes.iter().all(|&byte| byte == 0) {
                continue;
            }
            let held = match held {
                Some(held) => held,
                None => self.pieces.entry(piece).or_insert(Arc::new([0; PIECE_BYTES])),
            };
            Arc::make_mut(held)[start..start + bytes.len()].copy_from_slice(bytes);
        }
    }

    #[cfg(test)]
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }
}

/// The pieces that a range touches: number, first byte inside the piece, range inside the bytes.
fn parts(
    offset_bytes: u64,
    length_bytes: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length_bytes {
            return None;
        }
        let at = offset_bytes + done as u64;
        let start = (at % PIECE_BYTES as u64) as usize;
        let range = done..length_bytes.min(done + PIECE_BYTES - start);
        done = range.end;
        Some((at / PIECE_BYTES as u64, start, range))
    })
}
