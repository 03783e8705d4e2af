//! The facade as an embedder sees it: stores in files and in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod byte_view;
mod futures;
mod lifecycle;
mod scratch;
