//! CIDR (HPCA'19), and the CAL'17 paper before it, as far as the talk and FIDR tell them: what each
//! of their ideas gives, on and off.
//!
//! ```text
//! large_chunks.rs  chunks of 32 KiB on traces: blocks that have to be read, chunks written back
//! predictor.rs     which chunks are unique, guessed before they are hashed
//! fpga.rs          cores for hashing, compressing, expanding: fixed, or as the workload wants them
//! scheduler.rs     requests put off until the cores that they want are idle
//! devices.rs       duplicates that devices miss which deduplicate each for itself (CAL'17)
//! rows.rs          the rows of `docs/reproduction.md`;  plots.rs  its figures
//! ```
//!
//! How the predictor and the scheduler work the texts do not say; ours are choices, told in their
//! files. Traces are made ones (`flash`): this project has no copy of FIU's.

mod devices;
mod fpga;
mod large_chunks;
mod plots;
mod predictor;
mod rows;
mod scheduler;

pub use devices::{device_of, found_by_law, found_on_devices};
pub use fpga::{Mix, utilisation_percent};
pub use large_chunks::{BlockIo, large_chunk_io, small_chunk_io};
pub use plots::plots;
pub use predictor::predict;
pub use rows::{mail_io, rows, web_vm_io};
pub use scheduler::{Load, made_loads, rounds};
