//! The client in Go (`clients/go`): its form, its vet and its tests, where Go is installed.
//!
//! The tests talk to the model server of the room `memcached`, and to memcached where it is here.

use std::path::Path;

use crate::failure::Failure;
use crate::program::Program;
use crate::steps::{Counts, Steps};

/// Where Go is: on the path, or where its own installer puts it.
const PLACES: [&str; 2] = ["go", "/usr/local/go/bin/go"];

/// Runs what belongs to the client, or says why not.
pub(crate) fn run(root: &Path, steps: &mut Steps) {
    let go = PLACES.into_iter().find(|go| Program::new(*go).arg("version").succeeds());
    match go {
        Some(go) => steps.run("client in go", || check(root, go)),
        None => steps.skip("client in go", "needs go"),
    }
}

fn check(root: &Path, go: &str) -> Result<Counts, Failure> {
    let server = ["build", "--quiet", "-p", "memcached", "--example", "model_server"];
    Program::new("cargo").folder(root).args(server).show()?;
    let client = root.join("clients/go");
    // Beside `go`, wherever that is.
    let gofmt = format!("{go}fmt");
    let unformed = Program::new(gofmt).folder(&client).args(["-l", "."]).output()?;
    if !unformed.is_empty() {
        return Err(Failure::unmet("files that gofmt leaves alone", unformed.trim()));
    }
    // The module needs nothing: no Go and no module is to be fetched.
    let server = root.join("target/debug/examples/model_server");
    let offline = ["GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-mod=mod"];
    let command = || {
        let server = format!("TAMIS_MODEL_SERVER={}", server.display());
        Program::new("env").folder(&client).args(offline).arg(server).arg(go)
    };
    command().args(["vet", "./..."]).show()?;
    let mut counts = Counts { passed: 0, failed: 0 };
    let outcome = command().args(["test", "-count=1", "-v", "./..."]).watch(|line| {
        counts.passed += u64::from(line.starts_with("--- PASS"));
        counts.failed += u64::from(line.starts_with("--- FAIL"));
    });
    counts.of(outcome)
}
