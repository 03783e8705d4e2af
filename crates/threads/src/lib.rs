//! Room threads: how this process's threads share the processors with each other and with others.
//!
//! - [`AdaptiveSpin`]: a thread polls for a short time before it sleeps, where that has paid. A
//!   [`SpinBudget`] bounds how many of several threads do so at once.
//! - [`BatchPolicy`]: a thread that finds several requests per wait runs under `SCHED_BATCH`, so
//!   that a client that wakes it keeps its processor.
//! - [`lower_priority`] and [`yield_processor`]: work in the background takes the processor time
//!   that others leave.
//! - [`read_ticks`]: a clock that costs a few nanoseconds to read, for figures that people read.
//! - [`raise_descriptors`] and [`MemoryLimit`]: what the system lets this process have.
//! - [`cpu_times_ns`]: the processor time of each kind of thread, as the scheduler counts it.
//!
//! Nothing here decides what is stored: the room reads clocks, and no room below `engine` lets a
//! clock decide anything but when a thread sleeps. The system calls need `unsafe` (`libc` and the
//! processor's counter); each block names why it is sound.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod adaptive_spin;
mod background;
mod batch_policy;
mod cpu_times;
mod limits;
mod tick_clock;

pub use adaptive_spin::{AdaptiveSpin, SpinBudget, SpinWait};
pub use background::{lower_priority, yield_processor};
pub use batch_policy::BatchPolicy;
pub use cpu_times::{cpu_time_between_ns, cpu_times_ns};
pub use limits::{MemoryLimit, open_descriptors, raise_descriptors};
pub use tick_clock::{calibrate_ticks, read_ticks, ticks_to_ns};
