//! DedupCore with its surroundings, and what it must say.
//!
//! ```text
//! rig.rs     core, host, memory and device, cycle by cycle
//! memory.rs, device.rs    with latency, out of order, unforgiving
//! driver.rs  the block interface: which digest each address of the host has
//! plain.rs   the same operations on a plain map, and the comparison;   stream.rs   many of them
//! ports.rs   words for what the ports say;   page.rs   pages with digests;   dice.rs   chance by a
//!            seed
//! ```

mod device;
mod dice;
mod driver;
mod memory;
mod page;
mod plain;
mod ports;
mod rig;
mod stream;

pub use dice::Dice;
pub use driver::{Driver, Written};
pub use page::{Page, page_of};
pub use plain::PlainMap;
pub use ports::{Answer, BEAT_BYTES, Digest, Line, Op, PAGE_BYTES, Settings, Verdict};
pub use rig::{Instruction, Rig};
pub use stream::{Stream, alike, check_stream, crowded, spread};
