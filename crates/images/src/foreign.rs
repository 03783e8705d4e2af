//! Formats that are recognised by a few bytes in a fixed place, and not read here: each with its
//! name and the line that makes a disk of it. QEMU's programs read those that have a name there.

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
    /// The bytes that tell it.
    pub(crate) magic: &'static [u8],
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
/// Formats that their last bytes tell.
pub(crate) static LAST: [ForeignFormat; 2] = [VHD, DMG];
/// Formats that their first bytes tell.
pub(crate) static FIRST: [ForeignFormat; 22] = [
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

impl ForeignFormat {
    /// The format that `qemu-img` calls so.
    #[must_use]
    pub fn of_qemu(name: &str) -> Option<&'static Self> {
        FIRST.iter().chain(&LAST).find(|format| format.qemu_name == Some(name))
    }

    /// Where the bytes are that tell it.
    #[cfg(test)]
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.at_bytes..self.at_bytes + self.magic.len()
    }

    /// Whether `bytes` have what tells it in its place.
    pub(crate) fn is_at(&self, bytes: &[u8]) -> bool {
        bytes.get(self.at_bytes..).is_some_and(|bytes| bytes.starts_with(self.magic))
    }
}
