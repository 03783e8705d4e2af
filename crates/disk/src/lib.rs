//! Room disk.
