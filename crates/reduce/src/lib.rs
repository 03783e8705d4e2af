//! Room reduce.
