//! Room tables.
