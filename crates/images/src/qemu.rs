//! A disk in another program's format (VMDK, VHDX, VDI and the like), which QEMU's programs read.
//!
//! ```text
//! qemu-img info    its size, and whether it names other files
//! qemu-img map     where it holds nothing, and whether its data ends with the file   (map.rs)
//! qemu-nbd         its bytes, over a socket of this process alone                    (served.rs)
//! ```
//!
//! Why QEMU: it is what people convert such images with, and no library reads all of them. Where it
//! is not installed, the image is refused by its name.
//!
//! An image may name other files or addresses, which QEMU opens, and the guest of a raw image may
//! have written such an image. So nothing is read that names another unless the format was asked
//! for; of a VMDK that is known before QEMU sees it, since asking for its size opens what it names.

mod asked;
mod map;
mod served;

use std::cell::RefCell;
use std::path::PathBuf;

use serde::Deserialize;

use crate::error::ImageError;
use crate::file::HostFile;
use crate::foreign::ForeignFormat;
use crate::layer::{Place, Span};
use asked::Asked;
use map::Map;
use served::ServedDisk;

/// What `qemu-img info` says.
#[derive(Debug, Deserialize)]
struct Info {
    #[serde(rename = "backing-filename")]
    backing: Option<PathBuf>,
}

/// An image that QEMU reads.
#[derive(Debug)]
pub(crate) struct QemuImage {
    file: HostFile,
    format: &'static ForeignFormat,
    map: Map,
    disk: RefCell<ServedDisk>,
    size_bytes: u64,
}

impl QemuImage {
    /// Opens `file`, of this format. Other files that it names are read if `others_asked`.
    pub(crate) fn open(
        file: HostFile,
        format: &'static ForeignFormat,
        others_asked: bool,
    ) -> Result<Self, ImageError> {
        let path = file.path().canonicalize().map_err(|source| file.unreadable(source))?;
        let Some(qemu_name) = format.qemu_name else {
            return Err(ImageError::OtherFormat { path: file.path().to_owned(), format });
        };
        let asked = Asked { format, qemu_name, path: &path };
        let unasked = || ImageError::BackingUnasked {
            path: file.path().to_owned(),
            format: format.name,
            option: qemu_name,
        };
        let alone = is_alone(&file, format)?;
        if !alone && !others_asked {
            return Err(unasked());
        }
        let info: Info = asked.read("info", |out| serde_json::from_slice(out).ok())?;
        if info.backing.is_some() && !others_asked {
            return Err(unasked());
        }
        let map = asked.read("map", Map::parse)?;
        // Where there are several files, nobody says which one an offset is in.
        if alone && info.backing.is_none() && map.end_in_file_bytes > file.size_bytes() {
            let what = format!(
                "it ends at byte {}, inside of its data, which goes to {}",
                file.size_bytes(),
                map.end_in_file_bytes
            );
            return Err(asked.damaged(what));
        }
        let disk = ServedDisk::open(asked)?;
        let size_bytes = disk.size_bytes();
        Ok(Self { file, format, map, disk: RefCell::new(disk), size_bytes })
    }

    pub(crate) fn file(&self) -> &HostFile {
        &self.file
    }

    pub(crate) fn format(&self) -> &'static ForeignFormat {
        self.format
    }

    /// The size of the disk.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What is at `at_bytes` of the disk.
    pub(crate) fn span(&self, at_bytes: u64) -> Span {
        if at_bytes >= self.size_bytes {
            return Span { end_bytes: u64::MAX, place: Place::Zeros };
        }
        let (end_bytes, is_hole) = self.map.at(at_bytes);
        let place = if is_hole { Place::Zeros } else { Place::Host(at_bytes) };
        Span { end_bytes: end_bytes.min(self.size_bytes), place }
    }

    /// Fills `out` with bytes of the disk from `at_bytes` on.
    pub(crate) fn read_at(&self, at_bytes: u64, out: &mut [u8]) -> Result<(), ImageError> {
        self.disk
            .borrow_mut()
            .read_at(at_bytes, out)
            .map_err(|what| ImageError::Qemu { path: self.file.path().to_owned(), what })
    }
}

/// Whether an image of this format is one file, as far as its first bytes tell.
fn is_alone(file: &HostFile, format: &ForeignFormat) -> Result<bool, ImageError> {
    if format.qemu_name != Some("vmdk") {
        return Ok(true);
    }
    let mut first = [0; 20];
    file.read_padded_at(0, &mut first)?;
    // One that begins with a header which says how large the disk is holds the disk itself;
    // any other describes in words where its parts are.
    let (magic, capacity) = (&first[..4], &first[12..]);
    Ok(magic == b"COWD" || magic == b"KDMV" && capacity.iter().any(|byte| *byte != 0))
}
