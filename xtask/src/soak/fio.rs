//! fio over kills, with the state of its own verification: on a server with `--sync` every write
//! that fio saw answered before the kill is there after it.
//!
//! fio saves its state when its trigger fires, and the trigger kills the server. It reads back with
//! a depth of one: deeper, it runs ahead into the writes that were never answered and wants them.

use std::fs::{self, File};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::acceptance::server::Store;
use crate::failure::Failure;
use crate::program::Program;
use crate::soak::rounds::Rounds;

const LOAD: [&str; 7] = [
    "--name=load",
    "--ioengine=nbd",
    "--rw=randwrite",
    "--bsrange=4k-64k",
    "--size=1G",
    "--verify=crc32c",
    "--buffer_compress_percentage=50",
];
/// Between two looks at what is about to happen.
const GLANCE: Duration = Duration::from_millis(10);
const STATE: &str = "local-load-0-verify.state";
/// The trigger is pulled once the server has counted so many writes; it works a moment later.
const WRITES_MIN: u64 = 50;
const WRITES_MAX: u64 = 4_000;
/// How long fio may take to get there.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let mut rounds = Rounds::new(setting);
    let store = Store::init(setting, "2G")?;
    let mut server = store.serve(&["--sync"])?;
    store.create_volume("disk", "1G")?;
    let load = |seed: u64| {
        let load = Program::new("fio").folder(&setting.work).args(LOAD);
        load.arg(format!("--uri={}", store.uri("disk"))).arg(format!("--randseed={seed}"))
    };
    while let Some(round) = rounds.next() {
        let seed = rounds.dice.next() >> 33;
        let trigger = setting.work.join("trigger");
        let kill = format!("--trigger=kill -9 {}", server.process());
        let writes = load(seed).args(["--iodepth=16", "--do_verify=0", "--verify_state_save=1"]);
        let writes = writes.arg(format!("--trigger-file={}", trigger.display())).arg(kill);
        let enough = rounds.dice.between(WRITES_MIN, WRITES_MAX);
        let told = let_fire(writes, &trigger, || Ok(store.stats()?.counter("writes")? >= enough))?;
        server.kill()?;
        store.check()?;
        server = store.serve(&["--sync"])?;
        let reads = load(seed).args(["--iodepth=1", "--verify_only", "--verify_state_load=1"]);
        let read = reads.arg("--verify_fatal=1").output()?;
        let ((_, written), (verified, _)) = (issued(&told), issued(&read));
        println!("round {round}: {written} writes sent before the kill, {verified} verified");
        if verified == 0 {
            return Err(Failure::unmet("writes that fio can verify", read));
        }
        let state = setting.work.join(STATE);
        fs::remove_file(&state).map_err(Failure::file(&state))?;
    }
    server.stop()?;
    store.check()
}

/// Runs fio, makes its trigger file once it `has_written`, and returns what fio said. The trigger
/// ends fio, and its server with it, so its exit code says nothing; the saved state does.
fn let_fire(
    fio: Program,
    trigger: &Path,
    has_written: impl Fn() -> Result<bool, Failure>,
) -> Result<String, Failure> {
    let command = fio.to_string();
    let mut command_line = fio.into_command();
    command_line.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let started = |source| Failure::Start { command: command.clone(), source };
    let child = command_line.spawn().map_err(started)?;
    let begun = Instant::now();
    while !has_written()? && begun.elapsed() < PATIENCE {
        sleep(GLANCE);
    }
    File::create(trigger).map_err(Failure::file(trigger))?;
    let output = child.wait_with_output().map_err(started)?;
    // fio takes the trigger away itself once it has fired.
    if trigger.exists() {
        fs::remove_file(trigger).map_err(Failure::file(trigger))?;
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// How many reads and writes a run of fio says it issued.
fn issued(said: &str) -> (u64, u64) {
    let facts = said.lines().find_map(|line| line.trim().strip_prefix("issued rwts: total="));
    let mut numbers =
        facts.unwrap_or_default().split(',').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::issued;

    #[test]
    fn what_fio_issued_is_read() {
        let said = "x\n     issued rwts: total=3669,10750,0,0 short=0,0,0,0 dropped=0,0,0,0\n";
        assert_eq!(issued(said), (3669, 10750));
        assert_eq!(issued("fio: it failed"), (0, 0));
    }
}
