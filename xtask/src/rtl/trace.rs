//! A simulation's trace, as Verilator writes it (VCD): the values of some signals, cycle by cycle.

use std::collections::BTreeMap;

/// The values that a signal had, each with the first cycle of it.
pub(super) type Changes = Vec<(u64, u64)>;

/// Reads the changes of the signals whose paths end with one of `wanted`. Paths are scopes and
/// names with dots between them; of a wide signal the lowest 64 bits are kept.
pub(super) fn read(text: &str, wanted: &[&str]) -> BTreeMap<String, Changes> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut changes: BTreeMap<String, Changes> = BTreeMap::new();
    let mut scopes: Vec<&str> = Vec::new();
    let mut cycle = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["$scope", _, scope, ..] => scopes.push(scope),
            ["$upscope", ..] => drop(scopes.pop()),
            ["$var", _, _, code, name, ..] => {
                let path = format!("{}.{name}", scopes.join("."));
                let found = wanted.iter().filter(|wanted| path.ends_with(&format!(".{wanted}")));
                names.entry(code).or_default().extend(found);
            }
            [time] if time.starts_with('#') => cycle = time[1..].parse().unwrap_or(cycle),
            [bits, code] if bits.starts_with('b') => {
                note(&names, &mut changes, code, cycle, number(&bits[1..]));
            }
            [bit] if bit.starts_with(['0', '1']) => {
                note(&names, &mut changes, &bit[1..], cycle, number(&bit[..1]));
            }
            _ => {}
        }
    }
    changes
}

fn note(
    names: &BTreeMap<&str, Vec<&str>>,
    changes: &mut BTreeMap<String, Changes>,
    code: &str,
    cycle: u64,
    value: u64,
) {
    for name in names.get(code).into_iter().flatten() {
        changes.entry((*name).to_owned()).or_default().push((cycle, value));
    }
}

fn number(bits: &str) -> u64 {
    let bits = bits.bytes().map(|bit| u64::from(bit == b'1'));
    bits.fold(0, |number, bit| number << 1 | bit)
}

/// The value in a cycle; 0 before the first.
pub(super) fn value_at(changes: &Changes, cycle: u64) -> u64 {
    let before = changes.partition_point(|(from, _)| *from <= cycle);
    before.checked_sub(1).map_or(0, |at| changes[at].1)
}

#[cfg(test)]
mod tests {
    use super::{read, value_at};

    #[test]
    fn values_are_those_of_the_last_change() {
        let text = "$scope module TOP $end\n$scope module a[0] $end\n$var wire 1 # go $end\n\
                    $var wire 4 $ phase [3:0] $end\n$upscope $end\n$var wire 1 % go $end\n\
                    $upscope $end\n$enddefinitions $end\n#0\n0#\nb0000 $\n1%\n#3\n1#\nb1010 $\n";
        let found = read(text, &["a[0].go", "phase"]);
        assert_eq!(found["a[0].go"], [(0, 0), (3, 1)]);
        assert_eq!(value_at(&found["phase"], 2), 0);
        assert_eq!(value_at(&found["phase"], 9), 10);
    }
}
