//! Memory for bytes whose length somebody else has chosen: a client, another machine, a disk.

use engine::RequestError;

/// A buffer of `length_bytes` zeros, to read into.
///
/// # Errors
/// [`RequestError::NoMemory`]: one request fails, and the server goes on.
pub fn zeroed(length_bytes: usize) -> Result<Vec<u8>, RequestError> {
    let mut bytes = Vec::new();
    match bytes.try_reserve_exact(length_bytes) {
        Ok(()) => bytes.resize(length_bytes, 0),
        Err(_) => return Err(RequestError::NoMemory { bytes: length_bytes }),
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use engine::RequestError;

    use super::zeroed;

    #[test]
    fn what_no_machine_has_is_refused() {
        assert_eq!(zeroed(3), Ok(vec![0; 3]));
        let bytes = isize::MAX as usize / 2;
        assert_eq!(zeroed(bytes), Err(RequestError::NoMemory { bytes }));
    }
}
