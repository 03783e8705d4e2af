//! Room containers.
