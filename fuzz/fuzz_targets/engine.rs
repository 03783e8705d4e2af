//! The whole engine: an input is a script of requests, steps, crashes and troubles with the disk,
//! and the lab's oracle judges the run (`src/script.rs`, `crates/lab`).
//!
//! A crash prints the script: `lab replay FILE` runs it again, and the lab's tests keep it.
#![no_main]

use lab::{Look, Simulation};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::canary;
use tamis_fuzz::script::script;

fuzz_target!(init: canary::release(), |input: &[u8]| {
    let script = script(input);
    let text = script.to_string();
    let run = Simulation::of_script(script, Look::Nowhere).and_then(Simulation::run);
    if let Err(failure) = run {
        panic!("{failure}\n{text}");
    }
});
