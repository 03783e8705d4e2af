//! How much a client may send at once, and how much of it stands in memory.

/// The longest key, in bytes. A key in base64 is at most as long in its encoded form.
pub const KEY_BYTES_MAX: usize = 250;

/// The longest value that any server may allow: 1 GiB.
pub const VALUE_BYTES_MAX: u64 = 1 << 30;

/// Bounds of one connection.
///
/// ```
/// let limits = memcached::Limits { value_bytes_max: 8 << 20, ..memcached::Limits::default() };
/// assert!(limits.whole_value_bytes_max <= limits.value_bytes_max as usize);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest value, in bytes; at most [`VALUE_BYTES_MAX`]. A longer one is read and dropped,
    /// and answered with an error. memcached calls this `-I`.
    pub value_bytes_max: u64,
    /// Values up to this length wait in the input buffer until they are whole, and go to the cache
    /// in a batch. Longer ones go to it in parts, and come from it in parts.
    pub whole_value_bytes_max: usize,
    /// The longest command line, in bytes. A connection with a longer one is closed.
    pub line_bytes_max: usize,
    /// The longest line of `get`, `gets`, `gat` and `gats`, which name many keys.
    pub get_line_bytes_max: usize,
    /// How many operations the cache gets in one call.
    pub batch_operations_max: usize,
    /// A connection with this much unsent output runs no further batch, in bytes.
    pub output_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            value_bytes_max: 1 << 20,
            whole_value_bytes_max: 64 << 10,
            line_bytes_max: 2048,
            get_line_bytes_max: 1 << 20,
            batch_operations_max: 64,
            output_bytes_max: 256 << 10,
        }
    }
}
