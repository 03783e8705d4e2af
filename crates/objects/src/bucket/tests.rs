//! A bucket over a real volume of a store in memory.

mod basics;
mod checks;
mod documents;
mod full_store;
mod listings;
mod mapped;
mod model;
mod repairs;
mod rig;
mod threads;
mod transactions;
mod uploads;
