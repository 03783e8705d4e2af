//! Clients of the door, over real sockets: honest ones, slow ones and hostile ones.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client;
mod hostile;
mod model_host;
mod served;
mod tenants;
