//! The flags of meta commands: one letter each, some with a token behind it.

use super::lines;
use crate::base64::decoded_bytes;
use crate::expiry::Expiry;
use crate::layout::{Layout, Part};
use crate::numbers::{parse_i64, parse_u32, parse_u64};
use crate::operation::Recache;
use crate::words::Words;

/// The longest opaque token with its letter, in bytes.
const OPAQUE_BYTES_MAX: usize = 32;

/// All flags of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MetaFlags {
    /// `b`
    pub(super) is_base64: bool,
    /// `q`
    pub(super) is_quiet: bool,
    /// `v`
    pub(super) wants_value: bool,
    /// `u`
    pub(super) leaves_access: bool,
    /// `I`
    pub(super) invalidate: bool,
    /// `x`
    pub(super) removes_value: bool,
    /// `N`
    pub(super) vivify: Option<Expiry>,
    /// `T`
    pub(super) expires: Option<Expiry>,
    /// `R`
    pub(super) recache: Option<Recache>,
    /// `F`
    pub(super) client_flags: u32,
    /// `C`
    pub(super) compare: Option<u64>,
    /// `E`
    pub(super) new_cas: Option<u64>,
    /// `M`
    pub(super) mode: Option<u8>,
    /// `J`
    pub(super) initial: u64,
    /// `D`
    pub(super) delta: Option<u64>,
    /// `r` or `e`
    pub(super) part: Option<Part>,
    /// `n`
    pub(super) wants_count: bool,
    /// `a`
    pub(super) layout: Layout,
    /// `O`, and its token is too long.
    has_long_opaque: bool,
}

impl MetaFlags {
    /// Reads the words behind key and length; the refusal is a line. Of several faults the last is
    /// told.
    pub(super) fn parse(text: &[u8], key: &[u8], now_s: u64) -> Result<Self, &'static [u8]> {
        let mut flags = MetaFlags::default();
        let mut seen = 0_u128;
        let mut refusal = None;
        for word in Words(text) {
            let letter = word[0];
            let bit = 1_u128.checked_shl(u32::from(letter)).unwrap_or(0);
            if bit == 0 || letter == 127 || seen & bit != 0 {
                return Err(lines::DUPLICATE_FLAG);
            }
            seen |= bit;
            match flags.read(letter, &word[1..], now_s) {
                // The key is decoded in its place, once nothing can refuse the line any more.
                Ok(()) if letter == b'b' && decoded_bytes(key).is_none() => {
                    refusal = Some(lines::BAD_KEY);
                }
                Ok(()) => {}
                // An unknown letter ends it; other faults are told once all letters are known.
                Err(lines::INVALID_FLAG) => return Err(lines::INVALID_FLAG),
                Err(lines::BAD_FORMAT) => refusal = refusal.or(Some(lines::BAD_FORMAT)),
                Err(line) => refusal = Some(line),
            }
        }
        refusal.map_or(Ok(flags), Err)
    }

    /// Whether a letter of it is about parts of values, which only `mg` and `ms` know.
    pub(super) fn is_of_parts(&self) -> bool {
        self.part.is_some() || self.wants_count || self.layout != Layout::Whole
    }

    /// Refuses an opaque token that is too long, behind all other faults.
    pub(super) fn check_opaque(self) -> Result<Self, &'static [u8]> {
        if self.has_long_opaque { Err(lines::LONG_OPAQUE) } else { Ok(self) }
    }

    fn read(&mut self, letter: u8, token: &[u8], now_s: u64) -> Result<(), &'static [u8]> {
        let expiry = || {
            let seconds = parse_i64(token).ok_or(lines::BAD_TOKEN)?;
            Ok(Expiry::from_client(seconds, now_s))
        };
        match letter {
            b'b' => self.is_base64 = true,
            b'q' => self.is_quiet = true,
            b'v' => self.wants_value = true,
            b'u' => self.leaves_access = true,
            b'I' => self.invalidate = true,
            b'x' => self.removes_value = true,
            b'N' => self.vivify = Some(expiry()?),
            b'T' => self.expires = Some(expiry()?),
            b'R' => {
                let is_after_touch = self.expires.is_some();
                self.recache = Some(Recache { before: expiry()?, is_after_touch });
            }
            b'F' => self.client_flags = parse_u32(token).ok_or(lines::BAD_FORMAT)?,
            b'C' => self.compare = Some(parse_u64(token).ok_or(lines::BAD_TOKEN)?),
            // 0 is no version.
            b'E' => {
                let cas = parse_u64(token).ok_or(lines::BAD_TOKEN)?;
                self.new_cas = Some(cas).filter(|&cas| cas != 0);
            }
            b'J' => self.initial = parse_u64(token).ok_or(lines::BAD_INITIAL)?,
            b'D' => self.delta = Some(parse_u64(token).ok_or(lines::BAD_META_DELTA)?),
            b'M' => match token {
                [mode] => self.mode = Some(*mode),
                _ => return Err(lines::BAD_MODE_LENGTH),
            },
            b'r' | b'e' => {
                let parse = if letter == b'r' { Part::parse_bytes } else { Part::parse_elements };
                let part = parse(token).filter(|_| self.part.is_none());
                self.part = Some(part.ok_or(lines::BAD_TOKEN)?);
            }
            b'a' if token.is_empty() => {}
            b'a' => self.layout = Layout::parse(token).ok_or(lines::BAD_TOKEN)?,
            b'n' => self.wants_count = true,
            b'O' => self.has_long_opaque = token.len() >= OPAQUE_BYTES_MAX,
            // Of answers, or of proxies in between.
            b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' => {}
            _ => return Err(lines::INVALID_FLAG),
        }
        Ok(())
    }
}
