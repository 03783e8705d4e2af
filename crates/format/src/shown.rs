//! What people see of a text: which characters show themselves, and what stands for the others.
//!
//! A text that came from a disk, a peer or the giver of a name may hold characters that command a
//! terminal, turn the direction of what follows, end a line, or take no room at all. Names refuse
//! them ([`crate::catalog::VolumeName`]), and whatever is printed has them escaped ([`Escaped`]).
//!
//! The classes are Unicode's, of version 16: Cc, Cf, Zl and Zp, of Zs all but U+0020, what is
//! ignorable by default (`Default_Ignorable_Code_Point`), and U+2800, which is blank.

use std::fmt::{self, Display, Formatter, Write};
use std::ops::RangeInclusive;

/// Characters that do not show themselves, in order.
const HIDDEN: [RangeInclusive<char>; 30] = [
    '\0'..='\u{1f}',           // Cc
    '\u{7f}'..='\u{a0}',       // Cc, no-break space
    '\u{ad}'..='\u{ad}',       // soft hyphen
    '\u{34f}'..='\u{34f}',     // combining grapheme joiner
    '\u{600}'..='\u{605}',     // Cf: Arabic signs around numbers
    '\u{61c}'..='\u{61c}',     // Arabic letter mark, bidirectional
    '\u{6dd}'..='\u{6dd}',     // Cf
    '\u{70f}'..='\u{70f}',     // Cf
    '\u{890}'..='\u{891}',     // Cf
    '\u{8e2}'..='\u{8e2}',     // Cf
    '\u{115f}'..='\u{1160}',   // Hangul fillers
    '\u{1680}'..='\u{1680}',   // Zs
    '\u{17b4}'..='\u{17b5}',   // Khmer vowels that are not shown
    '\u{180b}'..='\u{180f}',   // Mongolian selectors and separator
    '\u{2000}'..='\u{200f}',   // Zs, zero width, marks of direction
    '\u{2028}'..='\u{202f}',   // Zl, Zp, bidirectional embeddings and overrides, Zs
    '\u{205f}'..='\u{206f}',   // Zs, word joiner, isolates
    '\u{2800}'..='\u{2800}',   // Braille without dots
    '\u{3000}'..='\u{3000}',   // Zs
    '\u{3164}'..='\u{3164}',   // Hangul filler
    '\u{fe00}'..='\u{fe0f}',   // variation selectors
    '\u{feff}'..='\u{feff}',   // zero width, byte order mark
    '\u{ffa0}'..='\u{ffa0}',   // Hangul filler
    '\u{fff0}'..='\u{fffb}',   // ignorable, annotations
    '\u{110bd}'..='\u{110bd}', // Cf
    '\u{110cd}'..='\u{110cd}', // Cf
    '\u{13430}'..='\u{1343f}', // Cf
    '\u{1bca0}'..='\u{1bca3}', // Cf
    '\u{1d173}'..='\u{1d17a}', // Cf
    '\u{e0000}'..='\u{e0fff}', // tags, variation selectors, ignorable
];

/// Whether a character shows itself, alone and in place; U+0020 does.
#[must_use]
pub fn is_shown(character: char) -> bool {
    let after = HIDDEN.partition_point(|range| *range.end() < character);
    HIDDEN.get(after).is_none_or(|range| !range.contains(&character))
}

/// What stands for a character that is not shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Form {
    /// `\n`, `\u{202e}`.
    Line,
    /// The same, but ends of lines and tabs stay.
    Lines,
    /// As JSON writes it in a string: `\u202e`. What JSON has between strings stays.
    Json,
}

/// A text as it is printed: what does not show itself is escaped. What is escaped already stays
/// as it is.
///
/// ```
/// use format::shown::Escaped;
/// assert_eq!(Escaped::line("a\x1b[31mb\n").to_string(), "a\\u{1b}[31mb\\n");
/// assert_eq!(Escaped::lines("a\u{202e}b\n").to_string(), "a\\u{202e}b\n");
/// assert_eq!(Escaped::json("[\"\u{e0001}\"]\n").to_string(), "[\"\\udb40\\udc01\"]\n");
/// ```
#[derive(Copy, Clone, Debug)]
pub struct Escaped<'a> {
    text: &'a str,
    form: Form,
}

impl<'a> Escaped<'a> {
    /// A text without lines of its own: a name, a cell, a sentence.
    #[must_use]
    pub fn line(text: &'a str) -> Self {
        Self { text, form: Form::Line }
    }

    /// A text of lines.
    #[must_use]
    pub fn lines(text: &'a str) -> Self {
        Self { text, form: Form::Lines }
    }

    /// A document of JSON, which means the same afterwards.
    #[must_use]
    pub fn json(text: &'a str) -> Self {
        Self { text, form: Form::Json }
    }
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.text.chars().try_for_each(|character| match (character, self.form) {
            ('\n' | '\t', Form::Lines | Form::Json) => f.write_char(character),
            (shown, _) if is_shown(shown) => f.write_char(shown),
            (hidden, Form::Line | Form::Lines) => write!(f, "{}", hidden.escape_default()),
            (hidden, Form::Json) => {
                let mut units = [0; 2];
                hidden
                    .encode_utf16(&mut units)
                    .iter()
                    .try_for_each(|unit| write!(f, "\\u{unit:04x}"))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Escaped, HIDDEN, is_shown};

    #[test]
    fn the_list_is_in_order_and_all_of_it_is_hidden() {
        assert!(HIDDEN.is_sorted_by(|one, next| one.end() < next.start()));
        assert!(HIDDEN.iter().cloned().flatten().all(|character| !is_shown(character)));
    }

    #[test]
    fn what_commands_turns_or_takes_no_room_is_hidden_and_letters_are_shown() {
        // Of each class, and those by which names were forged.
        for hidden in "\u{0}\u{1b}\u{7f}\u{9b}\u{a0}\u{2003}\u{3000}\u{2028}\u{2029}".chars() {
            assert!(!is_shown(hidden), "{hidden:?}");
        }
        for hidden in "\u{200b}\u{200d}\u{200e}\u{202e}\u{2066}\u{feff}\u{e0041}\u{fe0f}".chars() {
            assert!(!is_shown(hidden), "{hidden:?}");
        }
        for shown in " ~aäß\u{301}\u{3b1}\u{5d0}\u{627}\u{4e2d}\u{1f600}\u{10fffd}".chars() {
            assert!(is_shown(shown), "{shown:?}");
        }
    }

    /// The standard library knows Unicode's classes; it escapes what is unassigned as well.
    #[test]
    fn no_class_is_forgotten_that_the_standard_library_escapes_and_knows() {
        let blocks = ['\0'..='\u{2ff}', '\u{2000}'..='\u{2063}', '\u{20}'..='\u{7e}'];
        for character in blocks.into_iter().flatten() {
            let quoted = matches!(character, '\'' | '"' | '\\');
            let is_escaped = character.escape_debug().count() > 1 && !quoted;
            assert_eq!(!is_shown(character), is_escaped, "{character:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_printed_shows_itself_and_once_is_enough(text in any::<String>()) {
            let line = Escaped::line(&text).to_string();
            prop_assert!(line.chars().all(is_shown));
            prop_assert_eq!(Escaped::line(&line).to_string(), line);
            let lines = Escaped::lines(&text).to_string();
            prop_assert!(lines.chars().all(|it| is_shown(it) || matches!(it, '\n' | '\t')));
            if text.chars().all(is_shown) {
                prop_assert_eq!(lines, text);
            }
        }
    }
}
