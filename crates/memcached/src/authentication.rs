//! Who a client is: a token in the first `set`, as memcached's `-Y` has it.
//!
//! ```text
//! set ANYTHING 0 0 LENGTH\r\n
//! USER PASSWORD\r\n
//! ```
//!
//! Until a client has said who it is, every line that is no such `set` is refused, and what looks
//! like one is a token, whatever its key.

use crate::numbers::parse_u32;
use crate::words::{Words, first_words};

/// A longer token is no token, in bytes; memcached's own lines are shorter.
pub(crate) const TOKEN_BYTES_MAX: usize = 1024;

pub(crate) const REFUSED: &[u8] = b"CLIENT_ERROR unauthenticated\r\n";
pub(crate) const BAD_END: &[u8] = b"CLIENT_ERROR bad command line termination\r\n";
pub(crate) const BAD_TOKEN: &[u8] = b"CLIENT_ERROR bad authentication token format\r\n";
pub(crate) const FAILED: &[u8] = b"CLIENT_ERROR authentication failure\r\n";

/// Knows who may come in.
pub trait Authenticator {
    /// Who a client is from then on: an account, say.
    type Identity;

    /// The client that gives this name and this password, if there is one. What is compared with
    /// the password is compared in constant time.
    fn check(&mut self, user: &[u8], password: &[u8]) -> Option<Self::Identity>;
}

/// How long the token behind a line is, if it is a `set`.
pub(crate) fn token_bytes(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (words, count) = first_words::<5>(line);
    let bytes = parse_u32(words[4])?;
    (count >= 5 && words[0] == b"set").then_some(bytes as usize)
}

/// Name and password of a token.
pub(crate) fn split_token(token: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = Words(token);
    Some((words.next()?, words.next()?))
}
