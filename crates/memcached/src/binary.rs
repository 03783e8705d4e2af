//! The binary protocol, which is refused: memcached's own authors have given it up.
//!
//! A client that speaks it begins with a magic byte, and would wait for ever for an answer to its
//! line noise. It is answered once, in its own form, and the connection ends.

/// The first byte of a request.
pub(crate) const REQUEST_MAGIC: u8 = 0x80;
/// The length of a request's or answer's header.
pub(crate) const HEADER_BYTES: usize = 24;

const RESPONSE_MAGIC: u8 = 0x81;
const STATUS_NOT_SUPPORTED: u16 = 0x83;
const TEXT: &[u8] = b"the binary protocol is not spoken here, the text protocol is";

/// Appends the answer to a request with this header.
pub(crate) fn refuse(header: &[u8; HEADER_BYTES], out: &mut Vec<u8>) {
    let [_, opcode, _, _, _, _, _, _, _, _, _, _, opaque @ ..] = header;
    let (opaque, _) = opaque.split_at(4);
    out.extend_from_slice(&[RESPONSE_MAGIC, *opcode, 0, 0, 0, 0]);
    out.extend_from_slice(&STATUS_NOT_SUPPORTED.to_be_bytes());
    out.extend_from_slice(&(TEXT.len() as u32).to_be_bytes());
    out.extend_from_slice(opaque);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(TEXT);
}
