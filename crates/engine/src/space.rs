//! Room for what is acknowledged, and whom to tell or hold up before there is none.
//!
//! A write that is acknowledged has a place: [`space_budget`] promises containers, blocks of tables
//! and journal for the worst that it may take, and [`quota`] chunks of its volume. What volumes
//! were promised beforehand is left alone ([`promises`]). Who gets no
//! promise now waits for it ([`wait`], [`waiting`], [`quota_line`]) or is refused. How full that
//! leaves the store is for people to know in time ([`fullness`], [`watermarks`]).

pub(crate) mod allocation;
pub(crate) mod fullness;
pub(crate) mod promises;
pub(crate) mod quota;
pub(crate) mod quota_line;
pub(crate) mod reserve;
pub(crate) mod space_budget;
pub(crate) mod wait;
pub(crate) mod waiting;
pub(crate) mod watermarks;
pub(crate) mod write_room;
