//! Values over a real volume and an index that is a map: nothing is lost, leaked or named twice.
//!
//! [`bucket`] puts, copies and deletes as a bucket will; [`recount`] holds the invariant of
//! decision 060 after each step and after a crash at each `apply`.

mod ageing;
mod bucket;
mod full_store;
mod long_list;
mod map_index;
mod pending;
mod random_steps;
mod reading;
mod recount;
mod steps;
mod threads;
