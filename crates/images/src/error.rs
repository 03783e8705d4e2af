//! Why an image cannot be read. Each names the file that it is about, which may be one that
//! another image names.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::compressed::Compression;
use crate::foreign::ForeignFormat;

/// Why an image cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The system refuses.
    #[error("{} cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its end is not where it was when it was opened.
    #[error(
        "the image {} became shorter or longer while it was read: try again when nobody writes to \
         it",
        path.display()
    )]
    LengthChanged {
        /// The file.
        path: PathBuf,
    },
    /// It has no bytes at places of their own.
    #[error("{} is neither a file nor a block device", path.display())]
    NotSeekable {
        /// The file.
        path: PathBuf,
    },
    /// What leads a volume from one snapshot to the next, and is no disk.
    #[error(
        "{} holds a stream of `tamis export` and not a disk: `tamis import` takes it from a file \
         of its length",
        path.display()
    )]
    Stream {
        /// The file or device.
        path: PathBuf,
    },
    /// A compressed disk, which has no bytes at places of their own.
    #[error(
        "{} is compressed by {compression}, and only an import from its start to its end expands \
         it: expand it first",
        path.display()
    )]
    Compressed {
        /// The file.
        path: PathBuf,
        /// How.
        compression: Compression,
    },
    /// A file of a format that is not read here, or of one that only QEMU's programs read, which
    /// are not installed.
    #[error(
        "{} is {}, which tamis {} ({}); --format raw takes it as it is",
        path.display(),
        format.name,
        if format.qemu_name.is_some() {
            "reads from a file, where qemu-img and qemu-nbd are installed"
        } else {
            "does not read"
        },
        format.way_out.replace("FILE", &path.display().to_string())
    )]
    OtherFormat {
        /// The file, or what stands for standard input.
        path: PathBuf,
        /// What it is.
        format: &'static ForeignFormat,
    },
    /// A sound qcow2 image that uses what is not read here.
    #[error(
        "{} is a qcow2 image {what}, which tamis does not read: make a plain one of it with \
         `qemu-img convert -O qcow2`",
        path.display()
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it has, so that the sentence goes on: "with ...".
        what: &'static str,
    },
    /// A file that looks like an image and names another file, which was not asked for.
    #[error(
        "{} begins like {format} that names another file, which is not read unasked, since the \
         guest of a raw image can write such bytes to read your files: add --format {option} if \
         it is one, and --format raw if it is a disk",
        path.display()
    )]
    BackingUnasked {
        /// The file.
        path: PathBuf,
        /// What it looks like: "a qcow2 image".
        format: &'static str,
        /// How that format is asked for.
        option: &'static str,
    },
    /// What QEMU's programs read, and fail to.
    #[error("the image {} cannot be read through qemu-nbd: {what}", path.display())]
    Qemu {
        /// The image.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// An image of another format that contradicts itself.
    #[error(
        "{} is {}, and damaged: {what}; `qemu-img check` says more",
        path.display(),
        format.name
    )]
    DamagedForeign {
        /// The file.
        path: PathBuf,
        /// What it is.
        format: &'static ForeignFormat,
        /// What cannot be.
        what: String,
    },
    /// An image whose chain of backing files comes back to a file that is in it already.
    #[error(
        "the backing files of {} lead back to {}: such a chain has no end; `qemu-img rebase` gives \
         an image another backing file",
        path.display(),
        again.display()
    )]
    Loop {
        /// The image that was asked for.
        path: PathBuf,
        /// The file that comes twice.
        again: PathBuf,
    },
    /// A qcow2 image that contradicts itself.
    #[error(
        "{} is a damaged qcow2 image: {what}; `qemu-img check` says more",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What cannot be.
        what: String,
    },
}
