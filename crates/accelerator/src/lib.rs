//! Room `accelerator`: hashing and compression handed to a device in batches, as CIDR does it
//! (HPCA'19; decision 077).
//!
//! ```text
//! predictor.rs  which chunks are taken for new, before anything is hashed
//! batches.rs    chunks of one verdict that go to the device together
//! scheduler.rs  which submission is next, by what the device has to do
//! device.rs     what a device is: capacity, submissions, what it has done (trait Accelerator)
//! emulated.rs   a device whose work the threads of `reduce` do;  settings.rs  its settings
//! offload.rs    predictor, scheduler and device together, and how guesses came out
//! ```
//!
//! A chunk that is taken for new is hashed and compressed in one submission; one that is taken for
//! a duplicate is hashed. The look-up decides afterwards: what was compressed for a duplicate is
//! dropped, and a new chunk that was taken for a duplicate is submitted once more. So what is
//! stored is the same byte for byte, whatever is guessed and whenever the device answers.
//!
//! Nothing here has a clock or a thread: the engine says what time it is, and only figures know.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod batches;
mod device;
mod emulated;
mod offload;
mod predictor;
mod scheduler;
mod settings;
#[cfg(test)]
mod tests;

pub use batches::{Batch, batches};
pub use device::{Accelerator, Backlog, Capacity, Demand, DeviceFigures, Submission};
pub use emulated::Emulated;
pub use offload::{Offload, OffloadFigures};
pub use predictor::{Predicted, Predictor, Verdict, sample_of};
pub use scheduler::Scheduler;
pub use settings::{EmulatedSettings, SettingsError};
