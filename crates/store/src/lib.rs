//! Room store: a store in ten lines, for every program that embeds the engine.
//!
//! ```
//! use store::{CreateOptions, Options, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = std::env::temp_dir().join(format!("first-store-{}", std::process::id()));
//! store::create(&path, &CreateOptions::new(64 << 20))?; // 64 MiB of data, in files
//! let store = Store::open(&path, Options::default())?; // its engine runs on a thread of its own
//! let volume = store.create_volume("disk0", 1 << 30)?; // thin: 1 GiB is what it promises
//! volume.write_at(4096, &[7; 8192])?; // whole chunks cost least
//! volume.flush_blocking()?; // durable
//! let mut bytes = [0; 8192];
//! volume.read_at(4096, &mut bytes)?;
//! assert_eq!(bytes, [7; 8192]);
//! store.close()?;
//! # std::fs::remove_dir_all(&path)?;
//! # Ok(())
//! # }
//! ```
//!
//! The engine has no thread, clock or randomness of its own; this room gives it all three. A
//! [`Store`] is in one of these states:
//!
//! ```text
//! create ──> files ──open──> running ──close──> files, clean: the next opening replays nothing
//!              ^                 └────drop───> files, as after a crash: the next one recovers
//!              └── another handle or process: OpenError::InUse, after LockWait
//! ```
//!
//! * [`create()`] makes files and the first root, [`create_in_memory`] the same on a
//!   [`disk::MemoryDisk`], for tests.
//! * [`Store::open`] locks the files and starts the engine; [`Store::open_on`] runs on any
//!   implementation of [`disk::Disk`].
//! * [`Store::client`] is what doors ask; a [`Volume`] is one volume with its client. Its requests
//!   block, or are [`futures`] for any executor.
//! * A [`ByteView`] is a volume as plain bytes, without regard to sectors.
//! * [`Hooks`] say who hears of notices, and who is told that the engine has ended.
//!
//! Invariant: while a [`Store`] lives, its engine's thread runs, or has ended by a panic and called
//! [`Hooks::when_over`]. After [`Store::close`] and after a drop the thread has ended and the locks
//! of the files are free.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod answers;
mod byte_view;
mod create;
mod error;
mod files;
pub mod futures;
mod memory;
mod options;
mod pieces;
mod randomness;
mod running;
mod volume;

pub use answers::{Answer, Answers};
pub use byte_view::{ByteCursor, ByteView, io_error};
pub use create::{CreateOptions, create, create_in_memory};
pub use engine::{
    Client, Codec, Compression, Durability, Notice, RequestError, Reservation, ReservedFor,
    VolumeInfo, WriteOptions, WriteRoom,
};
pub use error::{CloseError, CreateError, MachineError, OpenError};
pub use files::{LockWait, open_files};
pub use memory::zeroed;
pub use options::{Hooks, Options};
pub use randomness::random_bytes;
pub use running::{CORE_THREAD, Store};
pub use volume::Volume;
