//! Long requests are sent piece by piece, so that none of them waits for all memory of its kind.

/// Longer requests are sent in pieces that end at multiples of this.
const PIECE_BYTES: u64 = 1 << 20;

/// Bytes of the first piece of a request for `length_bytes` at `offset_bytes`.
pub(crate) fn piece_bytes(offset_bytes: u64, length_bytes: usize) -> usize {
    let to_boundary = PIECE_BYTES - offset_bytes % PIECE_BYTES;
    // At most a piece: it fits.
    length_bytes.min(to_boundary as usize)
}

#[cfg(test)]
mod tests {
    use super::piece_bytes;

    #[test]
    fn pieces_end_at_whole_mebibytes() {
        let mib = 1 << 20;
        assert_eq!(piece_bytes(0, 512), 512);
        assert_eq!(piece_bytes(0, 3 * mib), mib);
        assert_eq!(piece_bytes(mib as u64 - 512, 4096), 512);
        assert_eq!(piece_bytes(mib as u64, 0), 0);
    }
}
