//! Table pages as the core wants them: asked for, prefetched, held, and missing.
//!
//! A step names its pages before it changes anything ([`wanted`]), has those that are here held
//! while others come ([`crate::core::Core::hold_in`]), and asks for what later steps will want
//! ([`prefetch`], [`map_ahead`], [`near`]). A page that no device gives is another case than one
//! that is on its way ([`absence`]). The cache itself is of the room `tables`.

pub(crate) mod absence;
pub(crate) mod map_ahead;
pub(crate) mod near;
pub(crate) mod prefetch;
pub(crate) mod wanted;
