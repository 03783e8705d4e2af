//! What a connection does before its client has said who it is.

use memchr::memchr;

use super::{Connection, Next, State};
use crate::authentication::{
    Authenticator, BAD_END, BAD_TOKEN, FAILED, REFUSED, TOKEN_BYTES_MAX, split_token, token_bytes,
};
use crate::cache::Cache;

/// How far a client has come with saying who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<I> {
    /// Not yet; this is next.
    Waiting(Next),
    /// It is known now. What it has sent behind its token waits for [`Connection::run`].
    Accepted(I),
}

impl<C: Cache> Connection<C> {
    /// Works on what has been received, of a client that has not said who it is.
    ///
    /// ```
    /// # use memcached::model::ModelCache;
    /// # use memcached::{Authentication, Authenticator, Connection, Limits};
    /// struct Door;
    /// impl Authenticator for Door {
    ///     type Identity = String;
    ///     fn check(&mut self, user: &[u8], password: &[u8]) -> Option<String> {
    ///         (user == b"ann" && password == b"secret").then(|| "ann".to_owned())
    ///     }
    /// }
    /// let mut connection = Connection::<ModelCache>::new(Limits::default());
    /// let token = b"set auth 0 0 10\r\nann secret\r\n";
    /// connection.room()[..token.len()].copy_from_slice(token);
    /// connection.received(token.len());
    /// let account = connection.authenticate(&mut Door);
    /// assert_eq!(account, Authentication::Accepted("ann".to_owned()));
    /// ```
    pub fn authenticate<A: Authenticator>(
        &mut self,
        authenticator: &mut A,
    ) -> Authentication<A::Identity> {
        while !matches!(self.state, State::Closing) && !self.is_output_full() {
            let available = self.input.unused_bytes();
            if available < self.wanted_bytes {
                break;
            }
            if self.is_fresh && self.refuse_binary() {
                continue;
            }
            if let Some(token) = self.token_bytes {
                if let Some(identity) = self.check_token(token, authenticator) {
                    return Authentication::Accepted(identity);
                }
            } else if !self.read_token_line() {
                break;
            }
        }
        Authentication::Waiting(self.next())
    }

    /// Reads the line before a token; `false` if it is not whole.
    fn read_token_line(&mut self) -> bool {
        let line_bytes_max = self.limits.line_bytes_max;
        let unused = self.input.unused();
        let found = memchr(b'\n', unused);
        if found.unwrap_or(unused.len()) > line_bytes_max {
            self.state = State::Closing;
            return true;
        }
        let Some(end) = found else {
            self.wanted_bytes = unused.len() + 1;
            return false;
        };
        let token = token_bytes(&unused[..end]);
        self.input.take(end + 1);
        self.wanted_bytes = 1;
        match token {
            None => self.say(REFUSED),
            Some(bytes) if bytes > TOKEN_BYTES_MAX => {
                self.say(BAD_TOKEN);
                self.state = State::Closing;
            }
            Some(bytes) => {
                self.token_bytes = Some(bytes);
                self.wanted_bytes = bytes + 2;
            }
        }
        true
    }

    fn check_token<A: Authenticator>(
        &mut self,
        bytes: usize,
        authenticator: &mut A,
    ) -> Option<A::Identity> {
        let unused = self.input.unused();
        let (token, end) = unused[..bytes + 2].split_at(bytes);
        let mut identity = None;
        let line = if end != b"\r\n" {
            BAD_END
        } else if let Some((user, password)) = split_token(token) {
            identity = authenticator.check(user, password);
            self.counts.auth_cmds += 1;
            self.counts.auth_errors += u64::from(identity.is_none());
            if identity.is_some() { b"STORED\r\n" } else { FAILED }
        } else {
            BAD_TOKEN
        };
        self.say(line);
        self.input.take(bytes + 2);
        self.token_bytes = None;
        self.wanted_bytes = 1;
        identity
    }
}
