//! A trace, read from its start to its end: one line in memory, whatever the trace.
//!
//! A line that is no request is counted, and the first one is kept with its number, so that
//! somebody can look at it; the rest is read on. Traces come in tar archives, and archives that
//! were joined or cut without tar leave its headers and its padding between the lines. Both
//! contain zero bytes, which no request does, and are counted apart.

use std::io::{self, BufRead, Read};

use crate::fiu::{LineError, SECTORS_MAX, parse_line};
use crate::request::Request;

/// The longest line: digests of every sector of the longest request, and room for the rest.
const LINE_BYTES_MAX: usize = 32 * SECTORS_MAX as usize + 4096;

/// What was read and is no request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Lines that are no requests.
    pub bad_lines: u64,
    /// Number of the first of them, counted from 1, and what is wrong with it.
    pub first_bad: Option<(u64, LineError)>,
    /// Lines with headers or padding of tar in them.
    pub tar_lines: u64,
}

/// The requests of a trace.
pub struct TraceReader<R> {
    input: R,
    line: Vec<u8>,
    lines: u64,
    bytes: u64,
    skipped: Skipped,
}

impl<R: BufRead> TraceReader<R> {
    /// From `input`, which is at its start.
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), lines: 0, bytes: 0, skipped: Skipped::default() }
    }

    /// Reads the next request into `request`, whose memory is used again; false at the end.
    ///
    /// # Errors
    /// What reading the input fails with.
    pub fn read(&mut self, request: &mut Request) -> io::Result<bool> {
        while self.next_line()? {
            if self.line.contains(&0) {
                self.skipped.tar_lines += 1;
                continue;
            }
            let parsed = if self.line.len() > LINE_BYTES_MAX {
                Err(LineError::TooLong)
            } else {
                parse_line(&self.line, request)
            };
            let Err(error) = parsed else { return Ok(true) };
            self.skipped.bad_lines += 1;
            self.skipped.first_bad.get_or_insert((self.lines, error));
        }
        Ok(false)
    }

    /// What has been passed over so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Bytes that have been read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the next line; of one that is too long, only so much that this can be seen.
    fn next_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line)?;
        self.bytes += read as u64;
        if read == 0 {
            return Ok(false);
        }
        self.lines += 1;
        if self.line.last() != Some(&b'\n') && self.line.len() > LINE_BYTES_MAX {
            self.bytes += self.input.skip_until(b'\n')? as u64;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::collection::vec;
    use proptest::prelude::any;
    use proptest::proptest;

    use super::{LINE_BYTES_MAX, Skipped, TraceReader};
    use crate::fiu::LineError;
    use crate::request::Request;

    fn line(lba: u64) -> String {
        format!("1 2 nfsd {lba} 8 W 6 0 {lba:032x}\n")
    }

    fn read_all(bytes: &[u8]) -> (Vec<u64>, Skipped) {
        // A small buffer, so that lines do not lie in it whole.
        let mut reader = TraceReader::new(BufReader::with_capacity(7, bytes));
        let mut request = Request::default();
        let mut found = Vec::new();
        while reader.read(&mut request).unwrap() {
            found.push(request.first_sector);
        }
        assert_eq!(reader.bytes(), bytes.len() as u64);
        (found, reader.skipped().clone())
    }

    #[test]
    fn requests_are_read_past_what_is_none() {
        let trace = format!(
            "mail-01\0\0\0ustar  \0{}{}oops\n{}\n{}\0\0\0",
            line(8),
            line(16),
            line(24),
            line(32)
        );
        let (found, skipped) = read_all(trace.as_bytes());
        assert_eq!(found, [16, 24, 32]);
        let expected = Skipped {
            bad_lines: 2,
            first_bad: Some((3, LineError::Fields { found: 1 })),
            tar_lines: 2,
        };
        assert_eq!(skipped, expected);
    }

    #[test]
    fn a_line_that_never_ends_takes_no_memory() {
        let mut trace = vec![b'x'; 3 * LINE_BYTES_MAX];
        trace.extend_from_slice(format!("\n{}", line(8)).as_bytes());
        let (found, skipped) = read_all(&trace);
        assert_eq!((found, skipped.bad_lines), (vec![8], 1));
        assert_eq!(skipped.first_bad, Some((1, LineError::TooLong)));
    }

    #[test]
    fn the_last_line_may_be_without_its_end() {
        assert_eq!(read_all(line(8).trim_end().as_bytes()).0, [8]);
        assert_eq!(read_all(b"").0, [0; 0]);
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_reading_ends(bytes in vec(any::<u8>(), 0..2000)) {
            read_all(&bytes);
        }
    }
}
