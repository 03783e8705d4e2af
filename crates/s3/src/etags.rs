//! ETags as headers have them: 32 hexadecimal digits, and behind a hyphen the number of parts.

use format::objects::record::ETag;
use s3s::dto;

/// As s3s has it.
pub(crate) fn outgoing(etag: &ETag) -> dto::ETag {
    dto::ETag::Strong(etag.to_string())
}

/// The ETag that a text is; none when no object of ours has such a one.
pub(crate) fn parse(text: &str) -> Option<ETag> {
    let (hex, parts) = match text.split_once('-') {
        Some((hex, parts)) => (hex, Some(parts.parse().ok()?)),
        None => (text, None),
    };
    if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut md5 = [0; 16];
    for (at, byte) in md5.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(ETag { md5, parts })
}

#[cfg(test)]
mod tests {
    use format::objects::record::ETag;

    use super::parse;

    #[test]
    fn etags_come_back() {
        for parts in [None, Some(1), Some(10_000)] {
            let etag = ETag { md5: [0xa7; 16], parts };
            assert_eq!(parse(&etag.to_string()), Some(etag));
        }
        for bad in ["", "a7", &"g".repeat(32), &format!("{}-x", "a".repeat(32)), &"é".repeat(16)] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
