//! Admission under a fake transport, with a real engine on a disk in memory behind it.

mod connections;
mod fake;
mod model;
mod quotas;
mod slow_payloads;
mod waits;
