//! The words of a line, which spaces separate.

/// Goes over the words of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (word, rest) = split_word(self.0)?;
        self.0 = rest;
        Some(word)
    }
}

/// The first word, and what follows it.
#[inline]
pub(crate) fn split_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = line.iter().position(|&byte| byte != b' ')?;
    let line = &line[start..];
    let end = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    Some(line.split_at(end))
}

/// Whether a line, whole or not, is one that may name many keys. Its word begins near its front,
/// so that this is known before the line is long.
pub(crate) fn starts_with_word_of_get(line: &[u8]) -> bool {
    const SPACES_MAX: usize = 100;
    let front = &line[..line.len().min(SPACES_MAX + 8)];
    let spaces = front.iter().take_while(|&&byte| byte == b' ').count();
    let word = split_word(front).map(|(word, _)| word);
    spaces <= SPACES_MAX && matches!(word, Some(b"get" | b"gets" | b"gat" | b"gats"))
}

/// Up to `N` words of a line, and how many it has in all.
pub(crate) fn first_words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut words = Words(line);
    let mut first = [&b""[..]; N];
    let mut count = 0;
    for (place, word) in first.iter_mut().zip(&mut words) {
        *place = word;
        count += 1;
    }
    // The zip takes no further word once the places are full.
    (first, count + words.count())
}

#[cfg(test)]
mod tests {
    use super::{Words, first_words, starts_with_word_of_get};

    #[test]
    fn words_are_what_stands_between_spaces() {
        let words = |line: &'static [u8]| Words(line).collect::<Vec<_>>();
        assert_eq!(words(b"  get  a b "), [&b"get"[..], b"a", b"b"]);
        assert_eq!(words(b"   "), Vec::<&[u8]>::new());
        assert_eq!(words(b"a\tb\r"), [b"a\tb\r"]);
    }

    #[test]
    fn a_get_is_known_by_its_front() {
        let spaces = |count: usize, rest: &str| [" ".repeat(count).as_str(), rest].concat();
        assert!(starts_with_word_of_get(b"get a"));
        assert!(starts_with_word_of_get(spaces(100, "gats a").as_bytes()));
        assert!(!starts_with_word_of_get(spaces(101, "get a").as_bytes()));
        assert!(!starts_with_word_of_get(b"getter"));
        assert!(!starts_with_word_of_get(b""));
    }

    #[test]
    fn all_words_are_counted_and_the_first_are_kept() {
        assert_eq!(first_words::<2>(b"a b c d"), ([&b"a"[..], b"b"], 4));
        assert_eq!(first_words::<2>(b"a b"), ([&b"a"[..], b"b"], 2));
        assert_eq!(first_words::<2>(b"a"), ([&b"a"[..], b""], 1));
    }
}
