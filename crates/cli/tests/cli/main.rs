//! The real binary on real directories: what a person or a script sees of `tamis`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod accounts;
mod bucket_repairs;
mod buckets;
mod busy;
mod bytes;
mod codecs;
mod columns;
mod completion;
mod crash;
mod damage;
mod diff;
mod domains;
mod durable;
mod estimate;
mod exchanged;
mod explain;
mod failing;
mod figures;
mod first;
mod harness;
mod help;
mod images;
mod incoming;
mod json;
mod kinds;
mod limits;
mod memcached;
mod messages;
mod output;
mod places;
mod quotas;
mod read_only;
mod removed;
mod repair;
mod replaced;
mod replay;
mod scrub;
mod served;
mod served_data;
mod snapshots;
mod space;
mod streams;
mod volumes;
mod weight;
