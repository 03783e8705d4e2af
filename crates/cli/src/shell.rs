//! Words for a shell, so that every line that we print can be pasted as it is.

use std::path::Path;

/// `text` as one word of a POSIX shell, so that a line we print can be pasted.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/:=+,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// [`shell_word`] of a path.
pub(crate) fn shell_path(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn words_for_a_shell_are_quoted_when_they_must_be() {
        assert_eq!(shell_word("/srv/store"), "/srv/store");
        assert_eq!(shell_word("nbd+unix:///d?socket=/s"), "'nbd+unix:///d?socket=/s'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
