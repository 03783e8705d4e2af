//! Snapshots by the thousand and trims of whole disks: what they held comes back, to the byte.
//!
//! What a store should hold in the end is counted independently: what is left is copied into a new
//! store, which has never known anything else.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::acceptance::memory::peak_bytes;
use crate::acceptance::server::{Server, Stats, Store};
use crate::failure::Failure;
use crate::program::Program;

const VOLUME: &str = "disk";
const OTHER: &str = "other";
/// After this what was deleted is taken to stay.
const PATIENCE: Duration = Duration::from_secs(300);
const TRIM_MEMORY: &str = "512M";
const TRIM_MEMORY_BYTES: u64 = 512 << 20;
/// By how much a large trim may raise the peak of memory beyond that, or beyond what it was.
const TRIM_BYTES_MAX: u64 = 64 << 20;

/// Snapshots of a volume that is being written, deleted in any order.
pub(super) fn run_snapshots(setting: &Setting) -> Result<(), Failure> {
    let (capacity, size, count) =
        if setting.short { ("256M", "64M", "30") } else { ("4G", "1G", "1000") };
    let store = Store::init(setting, capacity)?;
    let server = store.serve(&["--memory", "256M"])?;
    store.create_volume(VOLUME, size)?;
    let script = setting.script("versions.py").arg("snapshots").path(setting.tamis());
    let script = script.path(store.folder()).arg(store.uri(VOLUME)).arg(VOLUME);
    println!("{}", script.arg(count).arg(setting.seed.to_string()).output()?.trim());
    wait_for_deletions(&store)?;
    recount(setting, &store, server)
}

/// A volume of 100 GB is trimmed while another is written.
pub(super) fn run_trim(setting: &Setting) -> Result<(), Failure> {
    let (size, mebibytes) = if setting.short { ("4G", "4096") } else { ("100000M", "100000") };
    let store = Store::init(setting, "4G")?;
    let server = store.serve(&["--memory", TRIM_MEMORY])?;
    store.create_volume(VOLUME, size)?;
    store.create_volume(OTHER, "256M")?;
    let script = || setting.script("versions.py");
    script().arg("fill").arg(store.uri(VOLUME)).arg(mebibytes).run()?;
    let before = peak_bytes(&server)?;
    let trim = script().arg("trim").arg(store.uri(VOLUME)).arg(mebibytes);
    println!("{}", trim.arg(store.uri(OTHER)).output()?.trim());
    let after = peak_bytes(&server)?;
    println!("peak of memory: {} MiB before, {} MiB after", before >> 20, after >> 20);
    check_peak(before, after)?;
    wait_for_deletions(&store)?;
    recount(setting, &store, server)
}

fn check_peak(before: u64, after: u64) -> Result<(), Failure> {
    let most = before.max(TRIM_MEMORY_BYTES) + TRIM_BYTES_MAX;
    if after <= most {
        return Ok(());
    }
    Err(Failure::unmet(format!("at most {most} bytes of memory after a trim"), after.to_string()))
}

fn wait_for_deletions(store: &Store) -> Result<(), Failure> {
    let begun = Instant::now();
    while store.stats()?.number("deletions")? > 0 {
        if begun.elapsed() > PATIENCE {
            return Err(Failure::unmet(
                "a store that gives back what was deleted",
                "one that waits",
            ));
        }
        sleep(Duration::from_millis(100));
    }
    println!("all given back after {:.1} s more", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The store is sound, and holds exactly what a new one does that its volumes are copied into.
fn recount(setting: &Setting, store: &Store, server: Server) -> Result<(), Failure> {
    server.stop()?;
    store.check()?;
    let copy = setting.work.join("copy");
    let image = setting.work.join("image");
    tamis(setting, "init", &copy).args(["--capacity", "4G"]).run()?;
    for volume in store.volumes()? {
        let export = tamis(setting, "export", store.folder()).arg(&volume);
        export.path(&image).arg("--overwrite").run()?;
        tamis(setting, "import", &copy).arg(&volume).path(&image).run()?;
    }
    let counted = |folder: &Path| chunks_and_bytes(tamis(setting, "stats", folder));
    let (left, made) = (counted(store.folder())?, counted(&copy)?);
    println!("{} unique chunks and {} bytes of frames, as in a new store", left.0, left.1);
    if left == made {
        Ok(())
    } else {
        Err(Failure::unmet(format!("{made:?} chunks and bytes"), format!("{left:?}")))
    }
}

/// What a store holds, by its `stats`.
fn chunks_and_bytes(stats: Program) -> Result<(u64, u64), Failure> {
    let stats = Stats::ask(stats)?;
    Ok((stats.number("unique_chunks")?, stats.number("stored_bytes")?))
}

fn tamis(setting: &Setting, command: &str, folder: &Path) -> Program {
    Program::new(PathBuf::from(setting.tamis())).arg(command).path(folder)
}

#[cfg(test)]
mod tests {
    use super::{TRIM_BYTES_MAX, TRIM_MEMORY_BYTES, check_peak, chunks_and_bytes};
    use crate::program::Program;

    #[test]
    fn two_stores_without_the_figures_do_not_hold_the_same() {
        let stats = |answer: &str| Program::new("sh").args(["-c", &format!("echo '{answer}'")]);
        let all = stats("{\"unique_chunks\":3,\"stored_bytes\":700}");
        assert_eq!(chunks_and_bytes(all).unwrap(), (3, 700));
        assert!(chunks_and_bytes(stats("{\"unique_chunks\":3}")).is_err());
        assert!(chunks_and_bytes(stats("{}")).is_err());
    }

    #[test]
    fn a_trim_that_takes_much_memory_is_found() {
        let most = TRIM_MEMORY_BYTES + TRIM_BYTES_MAX;
        assert!(check_peak(100 << 20, most).is_ok(), "caches fill meanwhile");
        assert!(check_peak(100 << 20, most + 1).is_err());
        assert!(check_peak(most, most + TRIM_BYTES_MAX).is_ok());
        assert!(check_peak(most, most + TRIM_BYTES_MAX + 1).is_err());
    }
}
