//! Keys of objects in JSON: text where they are UTF-8, else an array of bytes.

use std::fmt::{self, Display, Formatter};

use format::shown::Escaped;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The key of an object, or the beginning of keys: any bytes.
///
/// ```
/// use admin::ObjectKey;
/// let text = serde_json::to_string(&ObjectKey::from("a/b")).unwrap();
/// assert_eq!(text, "\"a/b\"");
/// assert_eq!(serde_json::to_string(&ObjectKey(vec![255, 1])).unwrap(), "[255,1]");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey(pub Vec<u8>);

impl From<&str> for ObjectKey {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Display for ObjectKey {
    /// For people: what does not show itself, and what is no UTF-8, is escaped.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            write!(f, "{}", Escaped::line(chunk.valid()))?;
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => text.serialize(to),
            Err(_) => self.0.serialize(to),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrBytes {
    Text(String),
    Bytes(Vec<u8>),
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match TextOrBytes::deserialize(from)? {
            TextOrBytes::Text(text) => Self(text.into_bytes()),
            TextOrBytes::Bytes(bytes) => Self(bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ObjectKey;

    #[test]
    fn any_bytes_come_back_as_they_were() {
        for bytes in [&b"plain/text"[..], b"", b"\xff\xfe\0", "\u{e4}\n\"".as_bytes()] {
            let key = ObjectKey(bytes.to_vec());
            let said = serde_json::to_string(&key).unwrap();
            assert_eq!(serde_json::from_str::<ObjectKey>(&said).unwrap(), key, "{said}");
        }
        assert_eq!(ObjectKey(b"a\x1b[1m\xff".to_vec()).to_string(), "a\\u{1b}[1m\\xff");
    }
}
