//! The cluster that was expanded last: an image is read in pieces, and a compressed cluster is
//! expanded once for all of its pieces.

use flate2::{Decompress, FlushDecompress, Status};

use super::header::{ClusterCompression, Header};
use crate::error::ImageError;
use crate::file::HostFile;
use crate::layer::CompressedCluster;

/// An expanded cluster, or none yet.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    /// Of which compressed cluster; None: `bytes` mean nothing.
    offset_bytes: Option<u64>,
    bytes: Vec<u8>,
    compressed: Vec<u8>,
}

impl Expanded {
    /// Fills `out` from a compressed cluster of `file`. Its length is within the cluster.
    pub(super) fn read(
        &mut self,
        file: &HostFile,
        header: &Header,
        cluster: CompressedCluster,
        out: &mut [u8],
    ) -> Result<(), ImageError> {
        if self.offset_bytes != Some(cluster.offset_bytes) {
            self.offset_bytes = None;
            self.expand(file, header, cluster)?;
            self.offset_bytes = Some(cluster.offset_bytes);
        }
        let start = usize::try_from(cluster.skip_bytes).unwrap_or(usize::MAX);
        let end = start.saturating_add(out.len());
        let part = self.bytes.get(start..end);
        assert!(part.is_some(), "invariant: a span of a compressed cluster ends with it");
        out.copy_from_slice(part.unwrap_or_default());
        Ok(())
    }

    fn expand(
        &mut self,
        file: &HostFile,
        header: &Header,
        cluster: CompressedCluster,
    ) -> Result<(), ImageError> {
        self.compressed.resize(usize::try_from(cluster.length_bytes).unwrap_or(0), 0);
        file.read_exact_at(cluster.offset_bytes, &mut self.compressed)?;
        self.bytes.resize(usize::try_from(header.cluster_bytes()).unwrap_or(0), 0);
        let full = match header.compression {
            ClusterCompression::Deflate => inflate(&self.compressed, &mut self.bytes),
            ClusterCompression::Zstd => expand_zstd(&self.compressed, &mut self.bytes),
        };
        if full {
            return Ok(());
        }
        let what = format!("the compressed cluster at {} does not expand", cluster.offset_bytes);
        Err(ImageError::Damaged { path: file.path().to_owned(), what })
    }
}

/// Whether `packed` begins with deflated bytes that fill `out`. What follows in the last sector
/// belongs to another cluster.
fn inflate(packed: &[u8], out: &mut [u8]) -> bool {
    let mut stream = Decompress::new(false);
    let outcome = stream.decompress(packed, out, FlushDecompress::Finish);
    let ended = matches!(outcome, Ok(Status::StreamEnd | Status::Ok | Status::BufError));
    ended && stream.total_out() == out.len() as u64
}

/// The same of a Zstandard frame.
fn expand_zstd(packed: &[u8], out: &mut [u8]) -> bool {
    use zstd::stream::raw::{Decoder, Operation};
    let Ok(mut decoder) = Decoder::new() else { return false };
    let (mut taken, mut filled) = (0, 0);
    while filled < out.len() {
        let (Some(rest), Some(room)) = (packed.get(taken..), out.get_mut(filled..)) else {
            return false;
        };
        let Ok(status) = decoder.run_on_buffers(rest, room) else { return false };
        if status.bytes_read == 0 && status.bytes_written == 0 {
            return false;
        }
        taken += status.bytes_read;
        filled += status.bytes_written;
    }
    true
}
