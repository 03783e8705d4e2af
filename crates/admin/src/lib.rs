//! Room admin.
