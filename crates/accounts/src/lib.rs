//! Room accounts.
