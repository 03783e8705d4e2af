//! Little-endian fields at offsets of byte slices.
//!
//! Callers check the length of what came from a device once, as a whole, before they look at
//! fields of it; an offset beyond the end is therefore a bug here, and panics like any slice.

macro_rules! integer_field {
    ($get:ident, $put:ident, $integer:ty) => {
        pub(crate) fn $get(bytes: &[u8], at: usize) -> $integer {
            <$integer>::from_le_bytes(array_at(bytes, at))
        }

        pub(crate) fn $put(bytes: &mut [u8], at: usize, value: $integer) {
            put_bytes(bytes, at, &value.to_le_bytes());
        }
    };
}

integer_field!(u16_at, put_u16, u16);
integer_field!(u32_at, put_u32, u32);
integer_field!(u64_at, put_u64, u64);

pub(crate) fn u24_at(bytes: &[u8], at: usize) -> u32 {
    let [a, b, c] = array_at(bytes, at);
    u32::from_le_bytes([a, b, c, 0])
}

pub(crate) fn put_u24(bytes: &mut [u8], at: usize, value: u32) {
    let [a, b, c, overflow] = value.to_le_bytes();
    assert!(overflow == 0, "{value} does not fit 24 bits");
    put_bytes(bytes, at, &[a, b, c]);
}

pub(crate) fn u48_at(bytes: &[u8], at: usize) -> u64 {
    let [a, b, c, d, e, f] = array_at(bytes, at);
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

pub(crate) fn put_u48(bytes: &mut [u8], at: usize, value: u64) {
    let [a, b, c, d, e, f, overflow @ ..] = value.to_le_bytes();
    assert!(overflow == [0, 0], "{value} does not fit 48 bits");
    put_bytes(bytes, at, &[a, b, c, d, e, f]);
}

pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

pub(crate) fn put_bytes(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
