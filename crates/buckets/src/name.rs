//! Names of buckets: those that S3 allows, which are names of volumes as well.

use crate::error::BucketsError;

/// Longest name of a bucket.
pub const BUCKET_NAME_BYTES_MAX: usize = 63;
const BUCKET_NAME_BYTES_MIN: usize = 3;

/// Checks the name of a new bucket: 3 to 63 lower-case letters, digits, hyphens and dots, with a
/// letter or digit at both ends and no two dots side by side, and no address of IPv4.
///
/// # Errors
/// [`BucketsError::BadName`].
///
/// ```
/// assert!(buckets::check_bucket_name("photos.2026").is_ok());
/// assert!(buckets::check_bucket_name("Photos").is_err());
/// ```
pub fn check_bucket_name(name: &str) -> Result<(), BucketsError> {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let is_long_enough = (BUCKET_NAME_BYTES_MIN..=BUCKET_NAME_BYTES_MAX).contains(&bytes.len());
    let is_of_its_letters =
        bytes.iter().all(|byte| is_alphanumeric(byte) || matches!(byte, b'-' | b'.'));
    let has_ends =
        bytes.first().is_some_and(is_alphanumeric) && bytes.last().is_some_and(is_alphanumeric);
    let is_address = name.parse::<std::net::Ipv4Addr>().is_ok();
    match is_long_enough && is_of_its_letters && has_ends && !name.contains("..") && !is_address {
        true => Ok(()),
        false => Err(BucketsError::BadName { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::check_bucket_name;

    #[test]
    fn names_are_those_of_s3() {
        for name in ["abc", "a-b", "1.2.3", "a.b-c", &"x".repeat(63)] {
            assert!(check_bucket_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(64);
        let bad =
            ["", "ab", "Abc", "a_b", "-ab", "ab-", ".ab", "a..b", "a@b", "a/b", "1.2.3.4", &long];
        for name in bad {
            assert!(check_bucket_name(name).is_err(), "{name}");
        }
    }
}
