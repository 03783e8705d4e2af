//! What a client and the server have agreed on.

/// The terms of a transmission.
#[derive(Debug, PartialEq, Eq)]
pub struct Agreed<E> {
    /// What is served.
    pub export: E,
    /// Whether replies to reads are structured.
    pub structured: bool,
    /// Whether extents of `base:allocation` may be asked for.
    pub allocation: bool,
    /// Snapshots since which it may be asked what changed.
    pub changed: Vec<Changed<E>>,
}

/// A snapshot since which it may be asked what changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Changed<E> {
    /// The number by which its extents go.
    pub id: u32,
    /// The snapshot; None: it is not there any more.
    pub base: Option<E>,
}
