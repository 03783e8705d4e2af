//! Key pairs: what is public of an account, and its secret.

use std::fmt::{self, Debug, Formatter};

use serde::{Deserialize, Serialize};

use crate::error::AccountsError;

/// Letters of access keys: no 0, 1, O or I, which people mistake. There are 32 of them.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// What access keys begin with, so that people see what they are.
const ACCESS_KEY_PREFIX: &str = "TM";
const ACCESS_KEY_LETTERS: usize = 18;
const SECRET_BYTES: usize = 30;
/// The alphabet of base64 in URLs: clients put secrets into files of many forms.
const SECRET_LETTERS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The secret of a key pair, of which [`Debug`] shows nothing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, to sign with or to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Debug for Secret {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn random<const N: usize>() -> Result<[u8; N], AccountsError> {
    let mut bytes = [0; N];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| AccountsError::NoRandomness(error.to_string()))?;
    Ok(bytes)
}

/// A key pair that nobody has: 90 random bits in the access key, 240 in the secret.
pub(crate) fn new_key_pair() -> Result<(String, Secret), AccountsError> {
    let letters = random::<ACCESS_KEY_LETTERS>()?.map(|byte| LETTERS[usize::from(byte % 32)]);
    let access_key = format!("{ACCESS_KEY_PREFIX}{}", String::from_utf8_lossy(&letters));
    let mut secret = String::with_capacity(SECRET_BYTES / 3 * 4);
    for three in random::<SECRET_BYTES>()?.chunks(3) {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        let letters = [18, 12, 6, 0].map(|shift| SECRET_LETTERS[bits >> shift & 63]);
        secret.extend(letters.map(char::from));
    }
    Ok((access_key, Secret(secret)))
}

#[cfg(test)]
mod tests {
    use super::new_key_pair;

    #[test]
    fn pairs_differ_and_secrets_are_not_shown() {
        let (one, two) = (new_key_pair().unwrap(), new_key_pair().unwrap());
        assert!(one.0 != two.0 && one.1 != two.1);
        assert_eq!((one.0.len(), one.1.reveal().len()), (20, 40));
        assert!(!format!("{:?}", one.1).contains(one.1.reveal()));
    }
}
