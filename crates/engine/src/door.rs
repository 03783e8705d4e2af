//! What doors (NBD, the admin socket) have of an engine: handles to ask with, and answers.
//!
//! ```text
//! client.rs, client_reads.rs, client_writes.rs,    the handle, on doors' threads
//! client_volumes.rs, client_reservations.rs,
//! client_tasks.rs, client_copies.rs
//! volume.rs                                        what a door knows of a volume
//! opens.rs, open_volume.rs                         who has it open, and the guard of that
//! reservation.rs                                   room for what is written later
//! credits.rs                                       memory is taken before bytes are received
//! buffer_share.rs                                  no domain fills it for the others
//! lookaside.rs                                     frames by address: reads without the core
//! intake.rs        requests.rs ->                  where doors' threads and the core's meet
//!                  <- outcome.rs, error.rs, done.rs, ending.rs
//! ```
//!
//! All that several threads touch is here. A caller is answered exactly once, also if the
//! engine ends before ([`ending`]).

pub(crate) mod buffer_share;
pub(crate) mod client;
pub(crate) mod client_copies;
pub(crate) mod client_reads;
pub(crate) mod client_reservations;
pub(crate) mod client_tasks;
pub(crate) mod client_volumes;
pub(crate) mod client_writes;
pub(crate) mod credits;
pub(crate) mod done;
pub(crate) mod ending;
pub(crate) mod error;
pub(crate) mod intake;
pub(crate) mod lookaside;
pub(crate) mod moment;
pub(crate) mod open_volume;
pub(crate) mod opens;
pub(crate) mod outcome;
pub(crate) mod requests;
pub(crate) mod reservation;
pub(crate) mod volume;
