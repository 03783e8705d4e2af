//! Names that say nothing: a file called `utils` collects whatever has no home.

use super::finding::Finding;
use super::source::{SourceFile, is_word};

/// Words that name no thing of this field.
const EMPTY: [&str; 8] =
    ["util", "utils", "helper", "helpers", "common", "manager", "misc", "stuff"];
/// What a declaration of a type or module begins with.
const NOUNS: [&str; 6] = ["mod ", "struct ", "enum ", "trait ", "union ", "type "];

/// Every file, module and type whose name holds an empty word; functions only when it is all.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Finding> {
    sources.iter().flat_map(|file| check_path(file).into_iter().chain(check_items(file))).collect()
}

fn check_path(file: &SourceFile) -> Vec<Finding> {
    let plain = file.path.with_extension("");
    let parts = plain.iter().filter_map(|part| part.to_str());
    parts.filter_map(empty_word).map(|word| Finding::of(&file.path, message(word))).collect()
}

fn check_items(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in file.lines() {
        let nouns = NOUNS.iter().filter_map(|noun| declared(line.code, noun));
        let functions = declared(line.code, "fn ").filter(|name| EMPTY.contains(name));
        let words = nouns.chain(functions).filter_map(empty_word);
        findings.extend(words.map(|word| Finding::at(&file.path, line.number, message(word))));
    }
    findings
}

fn message(word: &str) -> String {
    format!("`{word}` names nothing: call it by what it holds or does")
}

/// The name that `keyword` declares on this line.
fn declared<'a>(code: &'a str, keyword: &str) -> Option<&'a str> {
    let (before, after) = code.split_once(keyword)?;
    let name = after.split(|character| !is_word(character)).next()?;
    (!before.ends_with(is_word) && !name.is_empty()).then_some(name)
}

/// The empty word that stands in a snake_case or CamelCase `name`.
fn empty_word(name: &str) -> Option<&'static str> {
    let words = split_words(name);
    EMPTY.iter().find(|empty| words.iter().any(|word| word == *empty)).copied()
}

fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if character == '_' || character == '-' || character.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character != '_' && character != '-') {
            word.extend(character.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::source::SourceFile;

    fn findings(path: &str, text: &str) -> usize {
        check(&[SourceFile::new(path, text)]).len()
    }

    #[test]
    fn empty_names_of_files_and_types_are_found() {
        assert_eq!(findings("crates/engine/src/utils.rs", ""), 1);
        assert_eq!(findings("crates/engine/src/common/a.rs", ""), 1);
        assert_eq!(findings("crates/engine/src/a.rs", "pub struct CacheManager;\n"), 1);
        assert_eq!(findings("crates/engine/src/a.rs", "mod test_helpers {}\n"), 1);
        assert_eq!(findings("crates/engine/src/a.rs", "fn helper() {}\n"), 1);
    }

    #[test]
    fn names_that_say_something_pass() {
        let text = "fn common_prefix() {}\nstruct Communal;\nlet manager = 1; // a helper\n";
        assert_eq!(findings("crates/engine/src/prefix.rs", text), 0);
    }
}
