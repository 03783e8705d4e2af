//! The index over real stores in memory.
