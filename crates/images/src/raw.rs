//! A raw image: the file is the disk. Its first bytes are looked at, so that an image of another
//! format is not taken for a disk.

use crate::error::ImageError;
use crate::file::HostFile;
use crate::layer::Span;

/// Bytes at the start of a file that tell its format.
const MAGIC_BYTES_MAX: usize = 68;
/// Where a VHD of fixed size says so: the disk comes first, as it is.
const FOOTER_BYTES: u64 = 512;

/// How what `tamis export --stream` makes begins.
const TAMIS_STREAM: &[u8] = b"TAMIS-ST";

/// How an image of a format that is not raw begins. A disk's own first bytes are boot code, which
/// none of these is.
struct OtherFormat {
    at_bytes: usize,
    magic: &'static [u8],
    name: &'static str,
    /// What `qemu-img` calls it.
    qemu_name: &'static str,
}

const VHD: OtherFormat =
    OtherFormat { at_bytes: 0, magic: b"conectix", name: "VHD", qemu_name: "vpc" };
const OTHER_FORMATS: [OtherFormat; 6] = [
    OtherFormat { at_bytes: 0, magic: b"KDMV", name: "VMDK", qemu_name: "vmdk" },
    OtherFormat { at_bytes: 0, magic: b"vhdxfile", name: "VHDX", qemu_name: "vhdx" },
    // The text before it is another in each program that writes VDI.
    OtherFormat { at_bytes: 64, magic: b"\x7f\x10\xda\xbe", name: "VDI", qemu_name: "vdi" },
    OtherFormat { at_bytes: 0, magic: b"<<< Oracle VM VirtualBox", name: "VDI", qemu_name: "vdi" },
    OtherFormat { at_bytes: 0, magic: b"QED\0", name: "QED", qemu_name: "qed" },
    VHD,
];

/// A raw image that is open.
#[derive(Debug)]
pub(crate) struct RawImage {
    file: HostFile,
}

impl RawImage {
    pub(crate) fn new(file: HostFile) -> Self {
        Self { file }
    }

    pub(crate) fn file(&self) -> &HostFile {
        &self.file
    }

    /// What is at `at_bytes` of the disk.
    pub(crate) fn span(&self, at_bytes: u64) -> Result<Span, ImageError> {
        self.file.span(at_bytes)
    }
}

/// The first bytes of `file`, zeros beyond its end.
pub(crate) fn first_bytes(file: &HostFile) -> Result<[u8; MAGIC_BYTES_MAX], ImageError> {
    let mut first = [0; MAGIC_BYTES_MAX];
    file.read_padded_at(0, &mut first)?;
    Ok(first)
}

/// An error when `file`, which begins so, is an image of a format that is not read here.
pub(crate) fn refuse_other_formats(first: &[u8], file: &HostFile) -> Result<(), ImageError> {
    if first.starts_with(TAMIS_STREAM) {
        return Err(ImageError::Stream { path: file.path().to_owned() });
    }
    let begins = |bytes: &[u8], other: &OtherFormat| {
        bytes.get(other.at_bytes..).is_some_and(|bytes| bytes.starts_with(other.magic))
    };
    let mut found = OTHER_FORMATS.iter().find(|other| begins(first, other));
    if let (None, Some(at_bytes)) = (found, file.size_bytes().checked_sub(FOOTER_BYTES)) {
        let mut footer = [0; VHD.magic.len()];
        file.read_padded_at(at_bytes, &mut footer)?;
        found = begins(&footer, &VHD).then_some(&VHD);
    }
    match found {
        Some(OtherFormat { name, qemu_name, .. }) => {
            let path = file.path().to_owned();
            Err(ImageError::OtherFormat { path, format: name, qemu_name })
        }
        None => Ok(()),
    }
}
