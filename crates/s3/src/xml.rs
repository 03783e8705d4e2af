//! Documents of answers that every reader of XML takes.
//!
//! Keys, tags and prefixes are any text, and XML 1.0 has no way to write most control characters,
//! not even as references. s3s writes them as they are, and a reader then refuses the whole
//! document. So here stands U+FFFD for each, as it does for bytes of a key that are no UTF-8; a
//! client that is to know such keys asks for `encoding-type=url`. A carriage return is written as a
//! reference, or a reader takes it for a line feed.

use bytes::Bytes;

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
const CARRIAGE_RETURN: &[u8] = b"&#13;";
/// U+FFFE and U+FFFF begin with these bytes and end with the one or the other below.
const NONCHARACTER: [u8; 2] = [0xef, 0xbf];

/// The document without what XML 1.0 cannot hold; `document` is UTF-8.
pub(crate) fn well_formed(document: Bytes) -> Bytes {
    if !(0..document.len()).any(|at| replaced(&document, at).is_some()) {
        return document;
    }
    let mut written = Vec::with_capacity(document.len() + 64);
    let mut at = 0;
    while at < document.len() {
        match replaced(&document, at) {
            Some((replacement, length)) => {
                written.extend(replacement);
                at += length;
            }
            None => {
                written.push(document[at]);
                at += 1;
            }
        }
    }
    written.into()
}

/// What is written for the character that begins here, and its length; none: itself.
fn replaced(document: &[u8], at: usize) -> Option<(&'static [u8], usize)> {
    match document[at] {
        b'\r' => Some((CARRIAGE_RETURN, 1)),
        b'\t' | b'\n' => None,
        0..0x20 => Some((REPLACEMENT, 1)),
        _ => match document.get(at..at + 3) {
            Some([first, second, 0xbe | 0xbf]) if [*first, *second] == NONCHARACTER => {
                Some((REPLACEMENT, 3))
            }
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::well_formed;

    #[test]
    fn what_xml_cannot_hold_is_replaced_and_nothing_else() {
        for (text, written) in [
            ("<a>b c\td\ne</a>", "<a>b c\td\ne</a>"),
            ("\0\u{1}\u{1f}", "\u{fffd}\u{fffd}\u{fffd}"),
            ("a\rb", "a&#13;b"),
            ("\u{fffe}\u{ffff}", "\u{fffd}\u{fffd}"),
            ("\u{fffd}\u{10ffff}\u{7f}é", "\u{fffd}\u{10ffff}\u{7f}é"),
        ] {
            assert_eq!(well_formed(Bytes::from(text)), written, "{text:?}");
        }
    }
}
