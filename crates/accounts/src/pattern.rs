//! Which buckets an account may use: by name, or by the beginning of names.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::AccountsError;

/// The name of a bucket, or the beginning of names and `*`.
///
/// A snapshot belongs to its bucket: what matches `photos` matches `photos@monday`.
///
/// ```
/// let pattern: accounts::BucketPattern = "team-*".parse().unwrap();
/// assert!(pattern.matches("team-a") && pattern.matches("team-a@monday"));
/// assert!(!pattern.matches("other"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BucketPattern(String);

impl BucketPattern {
    /// Whether it is about this bucket, or the bucket of this snapshot.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let bucket = name.split_once('@').map_or(name, |(bucket, _)| bucket);
        match self.0.strip_suffix('*') {
            Some(beginning) => bucket.starts_with(beginning),
            None => bucket == self.0,
        }
    }
}

impl FromStr for BucketPattern {
    type Err = AccountsError;

    fn from_str(text: &str) -> Result<Self, AccountsError> {
        let beginning = text.strip_suffix('*').unwrap_or(text);
        let is_of_names = beginning.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
        });
        match is_of_names && !text.is_empty() {
            true => Ok(Self(text.to_owned())),
            false => Err(AccountsError::BadPattern { pattern: text.to_owned() }),
        }
    }
}

impl TryFrom<String> for BucketPattern {
    type Error = AccountsError;

    fn try_from(text: String) -> Result<Self, AccountsError> {
        text.parse()
    }
}

impl From<BucketPattern> for String {
    fn from(pattern: BucketPattern) -> Self {
        pattern.0
    }
}

impl Display for BucketPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::BucketPattern;

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_names() {
        let all: BucketPattern = "*".parse().unwrap();
        let one: BucketPattern = "photos".parse().unwrap();
        assert!(all.matches("photos") && one.matches("photos") && one.matches("photos@monday"));
        assert!(!one.matches("photos2") && !one.matches("photo") && !one.matches("other@photos"));
        for bad in ["", "a*b", "**", "*a", "A", "a/b", "a@b"] {
            assert!(bad.parse::<BucketPattern>().is_err(), "{bad}");
        }
    }
}
