//! What the first bytes of a file or of standard input say it is, so that nothing that is no disk
//! is taken for one.
//!
//! A disk's own first bytes are boot code or a file system's, which none of these is. What is found
//! here is read ([`Content::Qcow2`]), expanded while it is read ([`Content::Compressed`]), or
//! refused by its name with the line that makes a disk of it ([`Content::Foreign`]). A user whose
//! disk does begin so says that it is raw.

use crate::compressed::Compression;
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

/// A format that is recognised and not read here.
#[derive(Debug, PartialEq, Eq)]
pub struct ForeignFormat {
    /// What it is: "a VMDK image".
    pub name: &'static str,
    /// What `qemu-img` calls it, where it reads it.
    pub qemu_name: Option<&'static str>,
    /// The line that makes a disk of it; `FILE` stands for its name.
    pub way_out: &'static str,
    at_bytes: usize,
    magic: &'static [u8],
}

/// One that `qemu-img` reads.
const fn image(
    at_bytes: usize,
    magic: &'static [u8],
    name: &'static str,
    (qemu_name, way_out): (&'static str, &'static str),
) -> ForeignFormat {
    ForeignFormat { name, qemu_name: Some(qemu_name), way_out, at_bytes, magic }
}

/// Any other.
const fn other(
    at_bytes: usize,
    magic: &'static [u8],
    name: &'static str,
    way_out: &'static str,
) -> ForeignFormat {
    ForeignFormat { name, qemu_name: None, way_out, at_bytes, magic }
}

const VMDK: (&str, &str) = ("vmdk", "qemu-img convert -f vmdk -O raw FILE disk.raw");
const VHDX: (&str, &str) = ("vhdx", "qemu-img convert -f vhdx -O raw FILE disk.raw");
const VDI: (&str, &str) = ("vdi", "qemu-img convert -f vdi -O raw FILE disk.raw");
const VPC: (&str, &str) = ("vpc", "qemu-img convert -f vpc -O raw FILE disk.raw");
const QED: (&str, &str) = ("qed", "qemu-img convert -f qed -O raw FILE disk.raw");
const PARALLELS: (&str, &str) = ("parallels", "qemu-img convert -f parallels -O raw FILE disk.raw");
const BOCHS: (&str, &str) = ("bochs", "qemu-img convert -f bochs -O raw FILE disk.raw");
const DMG_IMAGE: (&str, &str) = ("dmg", "qemu-img convert -f dmg -O raw FILE disk.raw");
/// Archives hold files with names.
const UNPACK: &str = "bsdtar -tf FILE lists what it holds, and bsdtar -xf FILE unpacks it";

/// A VHD of fixed size has its name at the end only: the disk comes first, as it is.
const VHD: ForeignFormat = image(0, b"conectix", "a VHD image", VPC);
const DMG: ForeignFormat = image(0, b"koly", "an Apple disk image", DMG_IMAGE);
/// Footers that tell a format.
static LAST: [ForeignFormat; 2] = [VHD, DMG];
static FIRST: [ForeignFormat; 22] = [
    image(0, b"KDMV", "a VMDK image", VMDK),
    image(0, b"COWD", "a VMDK image", VMDK),
    image(0, b"# Disk DescriptorFile", "the descriptor of a VMDK image", VMDK),
    image(0, b"vhdxfile", "a VHDX image", VHDX),
    // The text before it is another in each program that writes VDI.
    image(64, b"\x7f\x10\xda\xbe", "a VDI image", VDI),
    image(0, b"<<< Oracle VM VirtualBox", "a VDI image", VDI),
    image(0, b"QED\0", "a QED image", QED),
    image(0, b"WithoutFreeSpace", "a Parallels image", PARALLELS),
    image(0, b"WithouFreSpacExt", "a Parallels image", PARALLELS),
    image(0, b"Bochs Virtual HD Image", "a Bochs image", BOCHS),
    VHD,
    other(
        0,
        b"LUKS\xba\xbe",
        "an encrypted disk (LUKS), whose bytes neither compress nor repeat",
        "cryptsetup open --readonly FILE plain, and import /dev/mapper/plain",
    ),
    // POSIX tar, and so OVA; GNU's has the same five letters.
    other(257, b"ustar", "a tar archive (or an OVA)", UNPACK),
    other(0, b"PK\x03\x04", "a zip archive", UNPACK),
    other(0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    other(0, b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    other(0, b"!<arch>\n", "an ar archive (or a Debian package)", "ar x FILE"),
    other(0, b"070701", "a cpio archive", UNPACK),
    other(0, b"\x04\x22\x4d\x18", "compressed by lz4", "lz4 -dc FILE >disk.raw"),
    other(0, b"LZIP", "compressed by lzip", "lzip -dc FILE >disk.raw"),
    other(0, b"\x89LZO\0", "compressed by lzop", "lzop -dc FILE >disk.raw"),
    other(0, b"\x1f\x9d", "compressed by compress", "uncompress -c FILE >disk.raw"),
];

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

impl ForeignFormat {
    fn is_at(&self, bytes: &[u8]) -> bool {
        bytes.get(self.at_bytes..).is_some_and(|bytes| bytes.starts_with(self.magic))
    }
}

#[cfg(test)]
mod tests {
    use super::{Content, FIRST, FIRST_BYTES};
    use crate::compressed::Compression;

    #[test]
    fn each_format_is_known_by_its_own_bytes() {
        for format in &FIRST {
            let mut first = [0; FIRST_BYTES];
            first[format.at_bytes..][..format.magic.len()].copy_from_slice(format.magic);
            assert_eq!(Content::of_first_bytes(&first), Content::Foreign(format));
            let cut = &first[..format.at_bytes + format.magic.len() - 1];
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
