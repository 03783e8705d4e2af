//! What the first bytes of a file or of standard input say it is, so that nothing that is no disk
//! is taken for one.
//!
//! A disk's own first bytes are boot code or a file system's, which none of these is. What is found
//! here is read ([`Content::Qcow2`]), expanded while it is read ([`Content::Compressed`]), or
//! refused by its name with the line that makes a disk of it ([`Content::Foreign`]). A user whose
//! disk does begin so says that it is raw.

use crate::compressed::Compression;
use crate::foreign::{FIRST, ForeignFormat, LAST};
use crate::qcow2;

/// Bytes from the start of a file that are looked at.
pub const FIRST_BYTES: usize = 512;
/// Bytes from the end of a file that are looked at.
pub(crate) const LAST_BYTES: usize = 512;

/// How what `tamis` writes of snapshots begins.
const TAMIS_STREAM: &[u8] = b"TAMIS-ST";

/// What a file or standard input holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A disk, as far as its first bytes tell.
    Disk,
    /// A qcow2 image.
    Qcow2,
    /// Snapshots on their way to another store.
    TamisStream,
    /// Something compressed.
    Compressed(Compression),
    /// What is recognised and not read here.
    Foreign(&'static ForeignFormat),
}

impl Content {
    /// What begins with `first`, the first [`FIRST_BYTES`] or all there is.
    #[must_use]
    pub fn of_first_bytes(first: &[u8]) -> Self {
        if first.starts_with(&qcow2::MAGIC) {
            return Self::Qcow2;
        }
        if first.starts_with(TAMIS_STREAM) {
            return Self::TamisStream;
        }
        if let Some(compression) = Compression::of_first_bytes(first) {
            return Self::Compressed(compression);
        }
        let found = FIRST.iter().find(|format| format.is_at(first));
        found.map_or(Self::Disk, Self::Foreign)
    }

    /// What begins with `first` and ends with `last`, the last [`LAST_BYTES`].
    #[must_use]
    pub fn of_ends(first: &[u8], last: &[u8]) -> Self {
        match Self::of_first_bytes(first) {
            Self::Disk => {
                let found = LAST.iter().find(|format| format.is_at(last));
                found.map_or(Self::Disk, Self::Foreign)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Content, FIRST_BYTES};
    use crate::compressed::Compression;
    use crate::foreign::FIRST;

    #[test]
    fn each_format_is_known_by_its_own_bytes() {
        for format in &FIRST {
            let mut first = [0; FIRST_BYTES];
            let range = format.range();
            first[range.clone()].copy_from_slice(format.magic);
            assert_eq!(Content::of_first_bytes(&first), Content::Foreign(format));
            let cut = &first[..range.end - 1];
            assert_eq!(Content::of_first_bytes(cut), Content::Disk, "{}", format.name);
        }
        for (first, content) in [
            (b"QFI\xfb".as_slice(), Content::Qcow2),
            (b"TAMIS-ST", Content::TamisStream),
            (b"\x1f\x8b\x08", Content::Compressed(Compression::Gzip)),
            (b"BZh91AY&SY", Content::Compressed(Compression::Bzip2)),
            (b"\xfd7zXZ\0", Content::Compressed(Compression::Xz)),
            (b"\x28\xb5\x2f\xfd", Content::Compressed(Compression::Zstd)),
            (b"", Content::Disk),
            (b"\xeb\x63\x90", Content::Disk),
        ] {
            assert_eq!(Content::of_first_bytes(first), content);
        }
    }

    #[test]
    fn a_footer_tells_where_the_beginning_says_nothing() {
        let found = Content::of_ends(&[0; 512], b"conectix");
        assert!(matches!(found, Content::Foreign(format) if format.name.contains("VHD")));
        assert_eq!(Content::of_ends(b"QFI\xfb", b"conectix"), Content::Qcow2);
    }

    #[test]
    fn each_way_out_names_the_file() {
        for format in &FIRST {
            assert!(format.way_out.contains("FILE"), "{}", format.name);
        }
    }
}
