//! DedupCore with its surroundings, and what it must say.
//!
//! ```text
//! rig.rs     core, host, memory and device, cycle by cycle
//! memory.rs, device.rs    with latency, out of order, unforgiving
//! plain.rs   the same operations on a plain map, and the comparison;   stream.rs   many of them
//! ports.rs   words for what the ports say;   dice.rs   chance by a seed
//! ```

mod device;
mod dice;
mod memory;
mod plain;
mod ports;
mod rig;
mod stream;

pub use dice::Dice;
pub use plain::PlainMap;
pub use ports::{Answer, BEAT_BYTES, Digest, Line, Op, PAGE_BYTES, Settings, Verdict};
pub use rig::{Instruction, Rig, page_of};
pub use stream::{Stream, alike, check_stream, crowded, spread};
