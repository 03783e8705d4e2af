//! The lines of errors, in memcached's words: clients know them by these.

pub(super) const ERROR: &[u8] = b"ERROR\r\n";
pub(super) const OK: &[u8] = b"OK\r\n";
pub(super) const END: &[u8] = b"END\r\n";
pub(super) const NOTHING: &[u8] = b"";
pub(super) const META_NOOP: &[u8] = b"MN\r\n";
/// memcached closes the connection and says nothing.
pub(super) const LINE_TOO_LONG: &[u8] = b"CLIENT_ERROR line too long\r\n";
pub(super) const BAD_FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
pub(super) const BAD_CHUNK: &[u8] = b"CLIENT_ERROR bad data chunk\r\n";
pub(super) const BAD_EXPTIME: &[u8] = b"CLIENT_ERROR invalid exptime argument\r\n";
pub(super) const BAD_DELTA: &[u8] = b"CLIENT_ERROR invalid numeric delta argument\r\n";
pub(super) const BAD_DELETE: &[u8] =
    b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
pub(super) const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large for cache\r\n";
pub(super) const NO_SHUTDOWN: &[u8] = b"ERROR: shutdown not enabled\r\n";
pub(super) const NO_WATCH: &[u8] = b"CLIENT_ERROR watch commands not allowed\r\n";
pub(super) const NO_CRAWLER: &[u8] = b"CLIENT_ERROR lru crawler disabled\r\n";
pub(super) const NO_REASSIGN: &[u8] = b"CLIENT_ERROR slab reassignment disabled\r\n";
pub(super) const LIMIT_TOO_SMALL: &[u8] =
    b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
pub(super) const LIMIT_IN_BYTES: &[u8] =
    b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";

pub(super) const TOO_MANY_FLAGS: &[u8] = b"CLIENT_ERROR options flags are too long\r\n";
pub(super) const DUPLICATE_FLAG: &[u8] = b"CLIENT_ERROR duplicate flag\r\n";
pub(super) const INVALID_FLAG: &[u8] = b"CLIENT_ERROR invalid flag\r\n";
pub(super) const INVALID_OR_DUPLICATE: &[u8] = b"CLIENT_ERROR invalid or duplicate flag\r\n";
pub(super) const BAD_TOKEN: &[u8] = b"CLIENT_ERROR bad token in command line format\r\n";
pub(super) const BAD_KEY: &[u8] = b"CLIENT_ERROR error decoding key\r\n";
pub(super) const BAD_MODE_LENGTH: &[u8] = b"CLIENT_ERROR incorrect length for M token\r\n";
pub(super) const BAD_STORE_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ms M token\r\n";
pub(super) const BAD_ARITHMETIC_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ma M token\r\n";
pub(super) const BAD_INITIAL: &[u8] = b"CLIENT_ERROR invalid numeric initial value\r\n";
pub(super) const BAD_META_DELTA: &[u8] = b"CLIENT_ERROR invalid numeric delta value\r\n";
pub(super) const LONG_OPAQUE: &[u8] = b"CLIENT_ERROR opaque token too long\r\n";
