//! A backup tool reads, after each snapshot, only what changed since the one before.

use crate::acceptance::Setting;
use crate::acceptance::server::Store;
use crate::failure::Failure;

const VOLUME: &str = "disk";

/// `changed.py` over libnbd, and `nbdinfo` beside it.
pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let (capacity, size, rounds) =
        if setting.short { ("256M", "32M", "5") } else { ("2G", "256M", "40") };
    let store = Store::init(setting, capacity)?;
    let server = store.serve(&["--memory", "256M"])?;
    store.create_volume(VOLUME, size)?;
    let script = setting.script("changed.py").path(setting.tamis()).path(store.folder());
    let script = script.arg(store.uri(VOLUME)).arg(VOLUME).arg(rounds);
    println!("{}", script.arg(setting.seed.to_string()).output()?.trim());
    server.stop()?;
    store.check()
}
