//! The index over real stores in memory.

mod crashes;
mod damage;
mod limits;
mod model;
mod sharing;
mod space;
mod watched;
