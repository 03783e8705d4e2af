//! What holds for the whole format: everything comes back, damage is noticed, nothing panics, and
//! nothing moves without `docs/format.md` and the stored encodings saying so.

mod buckets;
mod damage;
mod documentation;
mod encodings;
mod layout;
mod messages;
mod objects_log;
mod pages;
mod round_trips;
mod streams;
mod values;
