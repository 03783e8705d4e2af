//! Random bytes of the kernel, for what nobody may guess: identities, seeds and keys.

use std::fs::File;
use std::io::Read;

use crate::error::MachineError;

/// As many bytes as are asked for, from `/dev/urandom`.
///
/// # Errors
/// [`MachineError`] when the kernel gives none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], MachineError> {
    let mut bytes = [0; N];
    let filled = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    filled.map_err(|source| MachineError { action: "read /dev/urandom", source })?;
    Ok(bytes)
}
