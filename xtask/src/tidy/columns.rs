//! No line is wider than 100 columns, so that two files stand side by side on a screen.

use std::path::Path;

use super::finding::Finding;
use super::workspace::Workspace;

/// Columns a line may have.
const COLUMNS_MAX: usize = 100;

/// Every line that is too wide, in code, scripts and manifests.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let sources = workspace.sources.iter().map(|file| (file.path.as_path(), file.text.as_str()));
    let texts = workspace.texts.iter().map(|(path, text)| (path.as_path(), text.as_str()));
    sources.chain(texts).flat_map(|(path, text)| too_wide(path, text)).collect()
}

fn too_wide(path: &Path, text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.chars().count()));
    lines
        .filter(|(_, columns)| *columns > COLUMNS_MAX)
        .map(|(number, columns)| {
            Finding::at(path, number, format!("{columns} columns; {COLUMNS_MAX} is the most"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::workspace::Workspace;

    #[test]
    fn a_wide_line_is_found_in_any_text() {
        let wide = format!("# {}\n", "x".repeat(99));
        let texts = vec![("a.py".into(), wide), ("b.py".into(), "x".repeat(100))];
        let findings = check(&Workspace { texts, ..Workspace::default() });
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 1);
    }

    #[test]
    fn columns_are_characters_not_bytes() {
        let texts = vec![("a.py".into(), "é".repeat(100))];
        assert_eq!(check(&Workspace { texts, ..Workspace::default() }), []);
    }
}
