//! The format of FIU's IODedup traces: a request a line, nine fields between blanks.
//!
//! ```text
//! [ns] [pid] [process] [lba] [sectors] [W|R] [major] [minor] [digests]
//! 89967404265337 4253 nfsd 508516672 8 W 6 0 88b93b628d84082186026d9da044f173
//! ```
//!
//! The last field holds the MD5 of each 4096 bytes one after the other, 32 hexadecimal digits each
//! (mail, web-vm), or that of each 512 bytes (homes): 32 or 256 digits for eight sectors, and twice
//! that for two requests that were merged. Which one it is follows from its length.

use std::io::{self, Write};

use thiserror::Error;

use crate::digest::Digest;
use crate::request::{BLOCK_SECTORS, Direction, Grain, Request};

/// Sectors of the longest request: 4 MiB, many times what the traces have.
pub const SECTORS_MAX: u32 = 8192;
/// Addresses end here: their bytes can be counted.
const SECTOR_END_MAX: u64 = 1 << 54;
/// Hexadecimal digits of a digest.
const DIGITS: usize = 32;
const FIELDS: usize = 9;

/// Why a line is no request.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// Something else, or cut.
    #[error("it has {found} fields where a request has 9")]
    Fields {
        /// Fields between blanks.
        found: usize,
    },
    /// A number that is none.
    #[error("its {field} is not a number, or too large")]
    Number {
        /// Which.
        field: &'static str,
    },
    /// Neither `W` nor `R`.
    #[error("it is neither R nor W")]
    Direction,
    /// No bytes, or too many.
    #[error("it has {sectors} sectors where a request has 1 to {SECTORS_MAX}")]
    Size {
        /// What it says.
        sectors: u32,
    },
    /// Digests of blocks for what is not made of blocks.
    #[error("it begins at sector {first_sector}, in the middle of the block that a digest names")]
    Misaligned {
        /// Where it begins.
        first_sector: u64,
    },
    /// Beyond every disk.
    #[error("it lies beyond the end of any disk, at sector {first_sector}")]
    Beyond {
        /// Where it begins.
        first_sector: u64,
    },
    /// Too few digits, or too many.
    #[error("it has {digits} digits of digests, which fit {sectors} sectors in neither form")]
    Digests {
        /// Length of the field.
        digits: usize,
        /// Length of the request.
        sectors: u32,
    },
    /// A digest is no number.
    #[error("a digest of it is not hexadecimal")]
    NotHexadecimal,
    /// Longer than any request.
    #[error("it is longer than any request can be")]
    TooLong,
}

/// Reads a line into `request`, whose memory is used again; after an error it holds anything.
///
/// # Errors
/// [`LineError`] says why the line is no request.
pub fn parse_line(line: &[u8], request: &mut Request) -> Result<(), LineError> {
    let mut fields = [&line[..0]; FIELDS];
    let mut found = 0;
    for field in line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()) {
        if let Some(place) = fields.get_mut(found) {
            *place = field;
        }
        found += 1;
    }
    if found != FIELDS {
        return Err(LineError::Fields { found });
    }
    let [time, pid, process, lba, size, direction, major, minor, digests] = fields;
    request.time_ns = number(time, "time")?;
    request.pid = number(pid, "process number")?;
    request.process.clear();
    request.process.push_str(&String::from_utf8_lossy(process));
    request.first_sector = number(lba, "address")?;
    request.sectors = number(size, "size")?;
    request.direction = match direction {
        b"R" => Direction::Read,
        b"W" => Direction::Write,
        _ => return Err(LineError::Direction),
    };
    request.major = number(major, "major number")?;
    request.minor = number(minor, "minor number")?;
    request.grain = grain(request.first_sector, request.sectors, digests.len())?;
    read_digests(digests, &mut request.digests)
}

fn number<T: std::str::FromStr>(text: &[u8], field: &'static str) -> Result<T, LineError> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    // What `parse` takes beyond digits, a sign, is in no trace.
    parsed.filter(|_| text.iter().all(u8::is_ascii_digit)).ok_or(LineError::Number { field })
}

/// What a digest of the request names, once its place and its size are believed.
fn grain(first_sector: u64, sectors: u32, digits: usize) -> Result<Grain, LineError> {
    if !(1..=SECTORS_MAX).contains(&sectors) {
        return Err(LineError::Size { sectors });
    }
    if first_sector > SECTOR_END_MAX - u64::from(sectors) {
        return Err(LineError::Beyond { first_sector });
    }
    if digits == DIGITS * sectors as usize {
        return Ok(Grain::Sector);
    }
    let is_blocks = u64::from(sectors).is_multiple_of(BLOCK_SECTORS);
    if !is_blocks || digits * BLOCK_SECTORS as usize != DIGITS * sectors as usize {
        return Err(LineError::Digests { digits, sectors });
    }
    match first_sector.is_multiple_of(BLOCK_SECTORS) {
        true => Ok(Grain::Block),
        false => Err(LineError::Misaligned { first_sector }),
    }
}

fn read_digests(digits: &[u8], digests: &mut Vec<Digest>) -> Result<(), LineError> {
    digests.clear();
    for digits in digits.chunks_exact(DIGITS) {
        let mut value = 0_u128;
        for &digit in digits {
            let digit = char::from(digit).to_digit(16).ok_or(LineError::NotHexadecimal)?;
            value = value << 4 | u128::from(digit);
        }
        digests.push(Digest(value.to_be_bytes()));
    }
    Ok(())
}

/// Writes a request as a line that [`parse_line`] reads.
///
/// # Errors
/// What writing to `out` fails with.
pub fn write_line(out: &mut impl Write, request: &Request) -> io::Result<()> {
    let Request { time_ns, pid, process, first_sector, sectors, major, minor, .. } = request;
    let direction = match request.direction {
        Direction::Read => 'R',
        Direction::Write => 'W',
    };
    write!(out, "{time_ns} {pid} {process} {first_sector} {sectors} {direction} {major} {minor} ")?;
    request.digests.iter().try_for_each(|digest| write!(out, "{digest}"))?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests;
