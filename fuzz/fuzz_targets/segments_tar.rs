//! Where segments of a file end that begins as `tar`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::segments::cut;

fuzz_target!(|input: &[u8]| cut(b"", input));
