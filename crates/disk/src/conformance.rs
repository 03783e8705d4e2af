//! The promises of a disk as tests that every implementation runs.
//!
//! An implementation says how it is made ([`Subject`]); [`run`] then plays operations on it and
//! panics with a sentence where a promise is broken. The tests of this room run it for every disk
//! of its own and for one that knows nothing but this room's public face (`tests/conformance.rs`).
//!
//! ```
//! use disk::conformance::{Subject, run};
//! use disk::{Disk, Doorbell, MemoryDisk, ZoneGrowth};
//! use format::units::Zone;
//!
//! struct Memory;
//!
//! impl Subject for Memory {
//!     fn make(&mut self, zones: &[(Zone, u64)], doorbell: &Doorbell) -> Box<dyn Disk> {
//!         let disk = MemoryDisk::new(zones, 42);
//!         disk.set_doorbell(doorbell);
//!         Box::new(disk)
//!     }
//!
//!     fn prepare_growth(&mut self, zones: &[(Zone, u64)]) -> Option<ZoneGrowth> {
//!         Some(MemoryDisk::prepare_growth(zones))
//!     }
//! }
//!
//! run(&mut Memory);
//! ```

mod failures;
mod growing;
mod history;
mod lasting;
mod operations;
mod promises;
mod subject;

use subject::Fresh;

pub use subject::Subject;

/// Holds an implementation to every promise.
///
/// # Panics
/// Where a promise is broken, with a sentence that says which.
pub fn run(subject: &mut dyn Subject) {
    let checks: [fn(&mut Fresh<'_>); 13] = [
        history::a_history_reads_like_a_plain_array,
        promises::every_operation_completes_once,
        promises::zones_are_apart,
        promises::parts_of_one_buffer_are_written_at_once,
        promises::a_large_operation_is_whole,
        promises::what_cannot_be_fails_and_comes_back,
        promises::nothing_in_flight_means_nothing_to_wait_for,
        promises::what_is_to_be_polled_rings,
        promises::a_disk_moves_to_another_thread,
        lasting::what_was_made_durable_is_there_again,
        growing::a_disk_grows_while_it_works,
        growing::a_growth_of_another_kind_is_refused,
        failures::errors_have_classes_and_heal,
    ];
    for check in checks {
        check(&mut Fresh { subject });
    }
}
