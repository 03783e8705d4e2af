//! The index over real stores in memory.

mod crashes;
mod damage;
mod evictions;
mod kills;
mod limits;
mod model;
mod salvages;
mod sharing;
mod space;
mod watched;
