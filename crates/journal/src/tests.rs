//! The journal against a model, and the corners one by one.

mod corners;
mod crashes;
mod hostile;
mod medium;
