//! What became of a store that was hit.

/// What became of one hit.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) detected: bool,
    pub(crate) repaired: bool,
    pub(crate) lost: bool,
    pub(crate) refused: bool,
    pub(crate) like_a_crash: bool,
    pub(crate) without_zone: bool,
    pub(crate) untold: bool,
}

/// What is wrong with the sentence of a refusal, if anything is.
pub(crate) fn must_name_a_structure(sentence: &str) -> Option<String> {
    let names = ["journal", "root", "geometry", "tables", "catalog", "superblock", "data"];
    let is_named = names.iter().any(|name| sentence.contains(name));
    (!is_named).then(|| format!("a refusal names no structure: {sentence}"))
}
