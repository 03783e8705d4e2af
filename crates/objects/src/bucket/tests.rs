//! A bucket over a real volume of a store in memory.

mod basics;
mod model;
mod recorded;
mod rig;
