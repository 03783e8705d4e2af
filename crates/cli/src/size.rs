//! Sizes as people write them and as we show them.
//!
//! Units are powers of 1024, as disks' users mean them (`dd`, LVM and QEMU agree): `4K`, `4Ki`,
//! `4KiB` and `4k` are 4096 bytes. `KB`, `MB`, `GB`, `TB` are powers of 1000. A fraction is a size
//! if it is a whole number of bytes: `1.5G` is, `1.0001K` is not.

use format::byte_count::ByteCount;
use thiserror::Error;

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum SizeError {
    #[error("it does not begin with a number; write a size as 4096, 64K, 1.5G or 2TiB")]
    NoNumber,
    #[error("a size has no sign; write it as 4096, 64K, 1.5G or 2TiB")]
    Signed,
    #[error(
        "{unit:?} is not a unit; use K, M, G, T or P, also as Ki or KiB (powers of 1024), or KB, \
         MB, GB, TB or PB (powers of 1000)"
    )]
    UnknownUnit { unit: String },
    #[error("it is not a whole number of bytes")]
    PartOfAByte,
    #[error("it is more than 16 EiB")]
    TooLarge,
}

const LETTERS: [char; 5] = ['K', 'M', 'G', 'T', 'P'];

/// The size that `text` means, in bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    if text.starts_with(['-', '+']) {
        return Err(SizeError::Signed);
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(SizeError::NoNumber);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = unit_bytes(unit.trim())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(SizeError::NoNumber);
    }
    let whole: u64 = whole.parse().map_err(|_| SizeError::TooLarge)?;
    let whole_bytes = whole.checked_mul(factor).ok_or(SizeError::TooLarge)?;
    whole_bytes.checked_add(fraction_bytes(fraction, factor)?).ok_or(SizeError::TooLarge)
}

/// `0.fraction * factor`, exactly.
fn fraction_bytes(fraction: &str, factor: u64) -> Result<u64, SizeError> {
    let digits = fraction.trim_end_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    let places = u32::try_from(digits.len()).map_err(|_| SizeError::PartOfAByte)?;
    let scale = 10_u128.checked_pow(places).ok_or(SizeError::PartOfAByte)?;
    let digits: u128 = digits.parse().map_err(|_| SizeError::PartOfAByte)?;
    let scaled = digits.checked_mul(u128::from(factor)).ok_or(SizeError::PartOfAByte)?;
    if scaled % scale != 0 {
        return Err(SizeError::PartOfAByte);
    }
    u64::try_from(scaled / scale).map_err(|_| SizeError::TooLarge)
}

fn unit_bytes(unit: &str) -> Result<u64, SizeError> {
    let unknown = || SizeError::UnknownUnit { unit: unit.to_owned() };
    let upper = unit.to_ascii_uppercase();
    if matches!(upper.as_str(), "" | "B") {
        return Ok(1);
    }
    let base: u64 = match upper.get(1..).ok_or_else(unknown)? {
        "" | "I" | "IB" => 1024,
        "B" => 1000,
        _ => return Err(unknown()),
    };
    let letter = upper.chars().next();
    let power = LETTERS.iter().zip(1..).find(|(known, _)| Some(**known) == letter);
    power.map(|(_, power)| base.pow(power)).ok_or_else(unknown)
}

/// `bytes` for a person: three digits that matter, in powers of 1024.
pub(crate) fn human_bytes(bytes: u64) -> String {
    ByteCount(bytes).to_string()
}

/// A count for a person: digits in groups of three.
pub(crate) fn human_count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// How many there are of what `noun` names: `1 volume`, `2,000 volumes`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", human_count(count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{SizeError, human_bytes, human_count, parse_size};

    #[test]
    fn units_are_powers_of_1024_unless_they_end_in_a_bare_b() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("4K", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("4 kib", 4096),
            ("4Ki", 4096),
            ("1Gi", 1 << 30),
            ("1.5ti", 3 << 39),
            ("2 Mi", 2 << 20),
            ("1Pi", 1 << 50),
            ("4KB", 4000),
            ("1M", 1 << 20),
            ("100G", 100 << 30),
            ("1.5G", 3 << 29),
            ("0.5K", 512),
            ("1.50 GB", 1_500_000_000),
            ("2TiB", 2 << 40),
            (" 1P ", 1 << 50),
            ("1.", 1),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_size_says_why() {
        for text in ["", "G", ".5G", "1.2.3", "KiB4"] {
            assert_eq!(parse_size(text), Err(SizeError::NoNumber), "{text:?}");
        }
        for text in ["-1", "-5G", "+5G", "-x"] {
            assert_eq!(parse_size(text), Err(SizeError::Signed), "{text:?}");
        }
        for unit in ["X", "I", "Xi", "KiX", "Kii"] {
            let unknown = SizeError::UnknownUnit { unit: unit.into() };
            assert_eq!(parse_size(&format!("1{unit}")), Err(unknown));
        }
        assert!(parse_size("1\u{e9}B").is_err());
        assert_eq!(parse_size("1.0001K"), Err(SizeError::PartOfAByte));
        assert_eq!(parse_size("0.3"), Err(SizeError::PartOfAByte));
        assert_eq!(parse_size("16384P"), Err(SizeError::TooLarge));
        assert_eq!(parse_size("99999999999999999999"), Err(SizeError::TooLarge));
    }

    #[test]
    fn counts_are_in_groups_of_three() {
        assert_eq!(human_count(0), "0");
        assert_eq!(human_count(999), "999");
        assert_eq!(human_count(1_000), "1,000");
        assert_eq!(human_count(12_345_678), "12,345,678");
    }

    proptest! {
        #[test]
        fn every_number_of_bytes_is_itself(bytes: u64) {
            prop_assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
        }

        #[test]
        fn what_is_shown_reads_back_within_half_a_percent(bytes in 1_u64..1 << 60) {
            if let Ok(back) = parse_size(&human_bytes(bytes)) {
                let error = back.abs_diff(bytes) as f64 / bytes as f64;
                prop_assert!(error <= 0.0051, "{bytes} {back}");
            }
        }

        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _ = parse_size(&text);
        }
    }
}
