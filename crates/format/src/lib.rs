//! Room format.
