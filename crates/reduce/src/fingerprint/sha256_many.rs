//! SHA-256 of many chunks at once.
//!
//! One SHA-256 is a chain: every round needs the one before. Many chunks are many chains, which
//! vectors (16 with AVX-512, 8 with AVX2) or four interleaved streams of SHA instructions run side
//! by side. The kernels are those of the crate `tape-sha256`: on a machine with AVX-512 and without
//! SHA instructions they are twelve times as fast as one chunk after the other (decision 020).
//!
//! That crate is young, and which of its kernels runs is decided by the machine. So each process
//! compares it once with the plain hash, on chunks of several lengths, before it believes it; where
//! they differ, the plain hash is what is used.

use format::units::Fingerprint;
use std::sync::LazyLock;

use super::digests::sha256;

/// Fewer chunks than this leave all lanes but one idle: the plain hash is as fast.
const MANY: usize = 2;

/// Whether the fast way was right on this machine.
static AGREES: LazyLock<bool> = LazyLock::new(|| {
    let bytes: Vec<u8> = (0..4096u32).map(|at| (at.wrapping_mul(at + 7) >> 3) as u8).collect();
    // Every number of lanes, full and in part, and lengths that end at each place in a block.
    let ends = [4096, 4095, 4032, 4033, 3584, 1024, 120, 119, 64, 63, 56, 55, 1];
    let chunks: Vec<&[u8]> =
        (0..70).map(|n| &bytes[n..]).chain(ends.map(|end| &bytes[..end])).collect();
    let same: Vec<&[u8]> = (0..33).map(|n| &bytes[n..n + 2048]).collect();
    [chunks, same].iter().all(|chunks| {
        hash_many(chunks)
            .iter()
            .zip(chunks)
            .all(|(hash, chunk)| Fingerprint(*hash) == sha256(chunk))
    })
});

/// Sets the result of each chunk to its hash.
pub(super) fn hash_all<'a>(chunks: impl Iterator<Item = (&'a [u8], &'a mut Option<Fingerprint>)>) {
    let (chunks, results): (Vec<&[u8]>, Vec<_>) = chunks.unzip();
    if chunks.len() >= MANY && *AGREES {
        for (result, hash) in results.into_iter().zip(hash_many(&chunks)) {
            *result = Some(Fingerprint(hash));
        }
    } else {
        for (result, chunk) in results.into_iter().zip(chunks) {
            *result = Some(sha256(chunk));
        }
    }
}

fn hash_many(chunks: &[&[u8]]) -> Vec<[u8; 32]> {
    let mut hashes = vec![[0; 32]; chunks.len()];
    tape_sha256::hash_many(chunks, &mut hashes);
    hashes
}

#[cfg(test)]
mod tests {
    use super::AGREES;

    #[test]
    fn this_machine_hashes_many_chunks_the_fast_way() {
        assert!(*AGREES, "{} is wrong on this machine", tape_sha256::backend());
    }
}
