//! Random bytes of the kernel's: for what nobody may guess.

use std::fs::File;
use std::io::Read;

use crate::error::CliError;

/// As many as are asked for.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], CliError> {
    let mut bytes = [0; N];
    let filled = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    filled.map_err(|source| CliError::System { action: "/dev/urandom cannot be read", source })?;
    Ok(bytes)
}
