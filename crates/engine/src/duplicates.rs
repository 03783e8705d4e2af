//! Finding duplicates: what is asked, of whom, and how what was found is believed.
//!
//! A chunk's fingerprint is looked for among the groups on their way ([`lookups`], [`pending`]), in
//! directories that lie beside a duplicate ([`directories`]), and in the Hash-PBN table, whose own
//! work is [`crate::merge`]. What it may be a duplicate of is a candidate ([`candidates`],
//! [`known`]); in a store that verifies, bytes decide ([`comparing`]). Volumes may do without all
//! of it ([`dedup`]), or keep to their own domain ([`domains`]).

pub(crate) mod candidates;
pub(crate) mod comparing;
pub(crate) mod comparisons;
pub(crate) mod dedup;
pub(crate) mod directories;
pub(crate) mod directory_reads;
pub(crate) mod domains;
pub(crate) mod known;
pub(crate) mod lookups;
pub(crate) mod pending;
