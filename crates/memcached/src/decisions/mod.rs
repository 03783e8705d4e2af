//! What an operation does to an item: pure, so that every cache does the same.
//!
//! The cache looks the key up, and passes an item that is live ([`crate::Item::is_live`]) or
//! `None`. It carries out what is decided in one go: nobody changes the item in between. A new
//! version is taken from `next_cas` only where one is needed. The cache fills in
//! [`crate::Item::generation`], and may drop at once what is stored with an expiry that has passed.

mod arithmetic;
mod delete;
mod get;
mod store;
#[cfg(test)]
mod tests;

pub use arithmetic::{ArithmeticDecision, NUMBER_BYTES_MAX, Number};
pub use delete::DeleteDecision;
pub use get::GetDecision;
pub use store::{Join, StoreDecision};
