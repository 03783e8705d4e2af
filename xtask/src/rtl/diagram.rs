//! The instances of the hardware as nested boxes, drawn from its sources.
//!
//! An instance is a line of a module's text that begins with the name of another module and ends
//! with an open parenthesis, which is how they are written in `rtl/`. The order of boxes is that of
//! the text.

use std::collections::BTreeMap;
use std::fmt::Write;

const LEAF_WIDTH: u32 = 190;
const LEAF_HEIGHT: u32 = 44;
const TITLE_HEIGHT: u32 = 40;
const GAP: u32 = 12;
/// Boxes beside each other.
const COLUMNS: usize = 3;
/// Fills by depth, light enough for black letters.
const FILLS: [&str; 4] = ["#f4f4f4", "#e3eef8", "#fdf3dc", "#e4f3ea"];

/// Instances of a module: their names and modules.
type Instances = BTreeMap<String, Vec<(String, String)>>;

/// A box with what is in it, measured.
#[derive(Debug)]
struct Box {
    name: String,
    module: String,
    inner: Vec<(u32, u32, Box)>,
    width: u32,
    height: u32,
}

/// The picture of `top`, as SVG.
pub(super) fn draw(top: &str, sources: &[String]) -> String {
    let instances = read(sources);
    let whole = measure(top, top, &instances);
    let (width, height) = (whole.width + 2 * GAP, whole.height + 2 * GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n"
    );
    paint(&whole, GAP, GAP, 0, &mut svg);
    svg += "</svg>\n";
    svg
}

/// The instances of every module in the sources.
fn read(sources: &[String]) -> Instances {
    let name_of = |line: &str| {
        let rest = line.strip_prefix("module ")?;
        rest.split_whitespace().next().map(str::to_owned)
    };
    let modules: Vec<String> =
        sources.iter().flat_map(|text| text.lines()).filter_map(name_of).collect();
    let mut instances = Instances::new();
    for text in sources {
        let mut module = String::new();
        for line in text.lines() {
            if let Some(name) = name_of(line) {
                module = name;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(first) = words.first().filter(|first| modules.iter().any(|m| m == *first))
            else {
                continue;
            };
            if let [.., name, "("] = words.as_slice() {
                let instance = ((*name).to_owned(), (*first).to_owned());
                instances.entry(module.clone()).or_default().push(instance);
            }
        }
    }
    instances
}

/// Lays out an instance: its inner ones in rows.
fn measure(name: &str, module: &str, instances: &Instances) -> Box {
    let inner = instances.get(module).map(Vec::as_slice).unwrap_or_default();
    let (mut placed, mut y, mut width) = (Vec::new(), TITLE_HEIGHT, LEAF_WIDTH);
    for row in inner.chunks(COLUMNS) {
        let (mut x, mut height) = (GAP, 0);
        for (name, module) in row {
            let one = measure(name, module, instances);
            let (at, own_height) = (x, one.height);
            x += one.width + GAP;
            height = height.max(own_height);
            placed.push((at, y, one));
        }
        width = width.max(x);
        y += height + GAP;
    }
    let height = if placed.is_empty() { LEAF_HEIGHT } else { y };
    Box { name: name.to_owned(), module: module.to_owned(), inner: placed, width, height }
}

fn paint(one: &Box, x: u32, y: u32, depth: usize, svg: &mut String) {
    let fill = FILLS[depth % FILLS.len()];
    let (width, height) = (one.width, one.height);
    let (text_x, name_y, module_y) = (x + 8, y + 17, y + 33);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" \
         fill=\"{fill}\" stroke=\"#444\"/>\n\
         <text x=\"{text_x}\" y=\"{name_y}\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{text_x}\" y=\"{module_y}\" fill=\"#555\" font-size=\"11\">{}</text>",
        one.name, one.module
    );
    for (inner_x, inner_y, inner) in &one.inner {
        paint(inner, x + inner_x, y + inner_y, depth + 1, svg);
    }
}

#[cfg(test)]
mod tests {
    use super::{draw, read};

    #[test]
    fn instances_are_found_with_and_without_parameters() {
        let sources = [
            "module a (\n);\n  b #(.N(2)) first (\n  c second (\n".to_owned(),
            "module b #(\n".to_owned(),
            "module c (\n".to_owned(),
        ];
        let instances = read(&sources);
        let expected = [("first", "b"), ("second", "c")];
        let found: Vec<(&str, &str)> =
            instances["a"].iter().map(|(name, module)| (name.as_str(), module.as_str())).collect();
        assert_eq!(found, expected);
        assert_eq!(draw("a", &sources).matches("<rect").count(), 3);
    }
}
