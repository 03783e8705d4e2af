//! How long files and functions may be: 400 lines of code a file, 60 a function.
//!
//! Only product code counts: no blank lines, no comments, no tests. A function is counted from the
//! line of its opening brace to that of its closing one. What is longer must stand in
//! `xtask/ratchet.txt` with its exact length and a reason.

use super::ratchet::Excess;
use super::source::{SourceFile, brace_end, is_word, line_index};

/// Lines of code a file may have.
const FILE_LINES_MAX: usize = 400;
/// Lines of code a function may have.
const FUNCTION_LINES_MAX: usize = 60;

/// A function of product code.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Function {
    name: String,
    /// Where it starts, from 1.
    line: usize,
    /// Its lines of code.
    lines: usize,
}

/// Everything that is longer than it may be.
pub(crate) fn too_long(sources: &[SourceFile]) -> Vec<Excess> {
    sources
        .iter()
        .flat_map(|file| file_excess(file).into_iter().chain(function_excess(file)))
        .collect()
}

fn file_excess(file: &SourceFile) -> Option<Excess> {
    let lines = file.code_lines();
    (lines > FILE_LINES_MAX).then(|| Excess {
        path: file.path.clone(),
        line: 0,
        place: file.path.display().to_string(),
        amount: lines,
        message: format!("a file of {lines} lines; {FILE_LINES_MAX} is the most"),
    })
}

fn function_excess(file: &SourceFile) -> Vec<Excess> {
    let functions = functions(file).into_iter();
    let long = functions.filter(|function| function.lines > FUNCTION_LINES_MAX);
    long.map(|function| Excess {
        path: file.path.clone(),
        line: function.line,
        place: format!("{}::{}", file.path.display(), function.name),
        amount: function.lines,
        message: format!(
            "a function of {} lines; {FUNCTION_LINES_MAX} is the most",
            function.lines
        ),
    })
    .collect()
}

/// The functions of a file's product code.
fn functions(file: &SourceFile) -> Vec<Function> {
    let counted: Vec<bool> =
        file.lines().map(|line| !line.test && !line.code.trim().is_empty()).collect();
    let mut functions = Vec::new();
    for (at, found) in file.code.match_indices("fn ") {
        let opens = !file.code.get(..at).is_some_and(|head| head.ends_with(is_word));
        let start = line_index(&file.code, at);
        let test = file.tests.get(start).copied().unwrap_or(false);
        let Some((open, close)) = body(&file.code, at).filter(|_| opens && !test) else { continue };
        let after = file.code.get(at + found.len()..).unwrap_or("");
        let first = line_index(&file.code, open);
        let last = line_index(&file.code, close);
        functions.push(Function {
            name: after.chars().take_while(|character| is_word(*character)).collect(),
            line: start + 1,
            lines: counted.iter().take(last + 1).skip(first).filter(|counts| **counts).count(),
        });
    }
    functions
}

/// The braces of the function whose `fn` stands at `at`; none for a mere signature.
fn body(code: &str, at: usize) -> Option<(usize, usize)> {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return Some((offset, brace_end(code, offset))),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{functions, too_long};
    use crate::tidy::source::SourceFile;

    #[test]
    fn a_long_function_is_found_and_comments_do_not_count() {
        let body = "    let a = 1;\n".repeat(61);
        let long = SourceFile::new("crates/x/src/a.rs", format!("fn f() {{\n{body}}}\n"));
        let found = too_long(&[long]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/x/src/a.rs::f");
        assert_eq!(found[0].amount, 63);
        let comments = "    // why\n\n".repeat(61);
        let short = SourceFile::new("crates/x/src/a.rs", format!("fn f() {{\n{comments}}}\n"));
        assert_eq!(too_long(&[short]), []);
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let product = "const A: u8 = 1;\n".repeat(401);
        let long = SourceFile::new("crates/x/src/a.rs", &product);
        assert_eq!(too_long(&[long])[0].amount, 401);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{product}}}\n");
        assert_eq!(too_long(&[SourceFile::new("crates/x/src/a.rs", tests)]), []);
    }

    #[test]
    fn signatures_and_function_pointers_are_no_functions() {
        let text = "trait T { fn f(a: [u8; 4]); }\ntype F = fn(u8);\nfn g() where u8: Copy { 1 }\n";
        let found = functions(&SourceFile::new("crates/x/src/a.rs", text));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].lines), ("g", 1));
    }
}
