//! What the simulator found, made short: each script in `findings` failed once.

use std::fs;
use std::path::Path;

use lab::{Look, Script, Simulation};

#[test]
fn what_was_found_stays_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings");
    let mut scripts = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let script: Script = fs::read_to_string(&path).unwrap().parse().unwrap();
        let run = Simulation::of_script(script, Look::Nowhere).and_then(Simulation::run);
        run.unwrap_or_else(|failure| panic!("{}: {failure}", path.display()));
        scripts += 1;
    }
    assert!(scripts > 0);
}
