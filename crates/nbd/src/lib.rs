//! Room nbd.
