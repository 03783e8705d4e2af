//! Numbers of bytes as sentences have them: in powers of 1024, three digits that matter.

use std::fmt;

const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A number of bytes for a sentence. `{}` rounds to three digits, as in `1.50 GiB`; `{:#}` adds the
/// exact number where rounding changed it, for sentences that compare two numbers.
///
/// ```
/// use format::byte_count::ByteCount;
///
/// assert_eq!(ByteCount(1 << 30).to_string(), "1 GiB");
/// assert_eq!(format!("{:#}", ByteCount(1 << 30)), "1 GiB");
/// assert_eq!(format!("{:#}", ByteCount((1 << 30) + 1)), "1.00 GiB (1073741825 bytes)");
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        if bytes < 1024 {
            return write!(f, "{bytes} B");
        }
        let mut value = bytes as f64 / 1024.0;
        let mut units = UNITS.iter().zip(1_u32..);
        let mut unit = units.next();
        // 999.5 would print as 1000, four digits: it goes to the next unit before that.
        while value >= 999.5 {
            let Some(next) = units.next() else { break };
            (value, unit) = (value / 1024.0, Some(next));
        }
        let places = match value {
            _ if value >= 99.95 || value.fract() == 0.0 => 0,
            _ if value >= 9.995 => 1,
            _ => 2,
        };
        let (unit, power) = unit.unwrap_or((&"B", 0));
        write!(f, "{value:.places$} {unit}")?;
        let is_exact = bytes.is_multiple_of(1 << (10 * power));
        if f.alternate() && !is_exact { write!(f, " ({bytes} bytes)") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::ByteCount;

    #[test]
    fn people_see_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.50 KiB"),
            (40 << 30, "40 GiB"),
            ((40 << 30) + (1 << 29), "40.5 GiB"),
            (1_234_567, "1.18 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(ByteCount(bytes).to_string(), text);
        }
    }

    #[test]
    fn what_is_compared_is_exact() {
        for (bytes, text) in [
            (100, "100 B"),
            (3 << 50, "3 PiB"),
            (1000, "1000 B"),
            (1025, "1.00 KiB (1025 bytes)"),
            ((64 << 20) + 512, "64.0 MiB (67109376 bytes)"),
        ] {
            assert_eq!(format!("{:#}", ByteCount(bytes)), text);
        }
    }
}
