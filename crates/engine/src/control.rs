//! The control language: what is asked of a store beside its data, each verb with its answer.
//!
//! A verb is a plain struct that implements [`Ask`], and its answer is a type: the caller gets
//! that or a [`RequestError`](crate::RequestError), nothing else. A verb travels to the core
//! together with the [`Done`] that takes its answer ([`Asked`]), so that the two cannot be parted.
//! The same structs are asked in process ([`Client::ask`](crate::Client::ask)) and, in a form that
//! room `admin` gives them, over a store's control socket.
//!
//! ```text
//! Client::ask(verb) -> Asking (verb + Done<Answer>) -> intake -> Engine::accept_verb
//!                   <-------------- Done<Answer> <--------------
//! ```

pub(crate) mod asked;
mod verbs;

use crate::door::done::Done;
use crate::door::outcome::Reply;

pub use asked::Asking;
pub(crate) use asked::{Asked, Verb};
pub use verbs::{
    CloneVolume, Close, CloseOpens, DeleteRequest, Explain, GetCompression, GetGeometry, GetStats,
    Grow, ListOpens, ListVolumes, NewVolume, Open, RenameVolume, ResizeVolume, Rollback,
    SetCompression, SetDedup, SetQuota, SetReservation, SetVolumeCompression, SnapshotRequest,
    TakeCopied,
};

/// A request of the control language.
pub trait Ask: Send + 'static {
    /// What it comes back with when it is carried out.
    type Answer: Into<Reply> + Send + 'static;

    /// Whether it speaks of what is stored and so needs a flush before it: what is only in the
    /// write buffer is in no map.
    #[doc(hidden)]
    fn flushes_first(&self) -> bool {
        false
    }

    /// The verb as it travels to the core.
    #[doc(hidden)]
    fn with(self, done: Done<Self::Answer>) -> Asking;
}
