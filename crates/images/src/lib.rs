//! Room `images`: disks of others that are read: raw files, block devices, qcow2 images.
//!
//! ```text
//! disk_image.rs              a disk as its guest sees it: bytes, and where none were ever written
//!   ├─ raw.rs                a layer that is a file or a device
//!   ├─ qcow2.rs              a layer that is a qcow2 image, over another if it has a backing file
//!   │    header.rs, l2_table.rs, expanded.rs    its header, its tables, its compressed clusters
//!   └─ qemu.rs               a layer in another program's format, which QEMU's programs read
//!        asked.rs, map.rs, served.rs    questions, its holes, its bytes
//!        file.rs             a file or block device of the host, and its holes
//! ```
//!
//! [`Content`] says what the first bytes of a file are; [`Compression`] expands disks that come
//! compressed, which have no layers.
//!
//! Nothing is ever written. All of it is foreign: an image that is damaged, or made to do harm,
//! ends in an [`ImageError`], and what an image names (tables, offsets, other images) is bounded
//! before memory is taken for it.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod compressed;
mod content;
mod disk_image;
mod error;
mod file;
mod foreign;
mod layer;
mod qcow2;
mod qemu;
mod raw;

pub use compressed::Compression;
pub use content::{Content, FIRST_BYTES};
pub use disk_image::{DiskImage, ImageFormat};
pub use error::ImageError;
pub use foreign::ForeignFormat;
