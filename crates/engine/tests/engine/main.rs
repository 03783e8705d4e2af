//! The engine through its public face: stores in memory, stepped by a thread or by the test.
//!
//! One binary: each would link the whole room again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod allocation;
mod belonging;
mod buckets;
mod carried;
mod classes;
mod cold_maps;
mod collect;
mod compared;
mod copies;
mod copy_range;
mod cut_off;
mod dedup;
mod difference;
mod directories;
mod domains;
mod explain;
mod figures;
mod full_trims;
mod fullness;
mod fullness_collecting;
mod given_up;
mod giving_way;
mod grow;
mod heat;
mod hostile;
mod kinds;
mod lending;
mod long_trims;
mod many_versions;
mod opens;
mod proven;
mod quotas;
mod read_cache;
mod repair;
mod reserve;
mod rounds;
mod scrub;
mod scrub_failing;
mod scrub_pages;
mod snapshots;
mod stages;
mod stand;
mod stops;
mod threads;
mod two_hits;
mod unreadable;
mod unsynced;
mod vectors;
mod versions;
mod volumes;
mod weight;
mod writes;
mod written;
